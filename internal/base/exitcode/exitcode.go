// Package exitcode defines the exit statuses of the commands (docs/reference/exit-codes.md).
package exitcode

// Exit statuses. A worker never ends with the last two.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	NoServer    = 3 // or it is not known how the run ended
	Partial     = 4
	Interrupted = 130 // what shells use for a command ended by Ctrl-C
)

// Doc is the meaning of a status.
type Doc struct {
	Status int
	Doc    string
}

// AllStatuses returns the statuses of starter run in ascending order, as starter explain shows them. Other commands use a
// subset.
func AllStatuses() []Doc {
	return []Doc{
		{OK, "the run completed, or was skipped under its concurrency key. For validate: no problems found"},
		{Failed, "the run failed or was cancelled. For validate and migrate: problems were found. For commands to a run: the run refused them"},
		{Usage, "the command line is wrong, or the playbook is invalid; nothing was started"},
		{NoServer, "the server was not reached, or did not report how the run ended"},
		{Partial, "partial success: some iterations failed. With --strict, any failed iteration leads to this code"},
		{Interrupted, "interrupted by Ctrl-C. On a server that keeps running, the run continues"},
	}
}
