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
