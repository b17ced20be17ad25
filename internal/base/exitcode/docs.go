package exitcode

// Doc says what a status means.
type Doc struct {
	Status int
	Doc    string
}

// All are the statuses of starter run, in their order, as starter explain shows them. Other
// commands give those that fit.
func All() []Doc {
	return []Doc{
		{OK, "completed, or skipped as concurrency asks; of validate: no problem was found"},
		{Failed, "failed or cancelled; of validate and migrate: problems were found; of a command: it was refused"},
		{Usage, "wrong usage, or an invalid playbook; nothing was started"},
		{NoServer, "no server, or it did not report how the run ended"},
		{Partial, "partial success: not every iteration succeeded; with --strict whenever one failed"},
		{Interrupted, "left by Ctrl-C; on a server that stays the run continues"},
	}
}
