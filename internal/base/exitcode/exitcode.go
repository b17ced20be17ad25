// Package exitcode holds what the commands exit with (docs/reference/exit-codes.md).
package exitcode

// The exit statuses. A worker never ends with the last two.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	NoServer    = 3 // or it is not known how the run ended
	Partial     = 4
	Interrupted = 130 // what shells use for a command ended by Ctrl-C
)

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
