package render

import (
	"reprise/internal/base/terminal"
	"reprise/interpreter"
)

// styleOf is what a status looks like at a terminal.
func styleOf(status interpreter.Status) terminal.Style {
	switch status {
	case interpreter.Failed:
		return terminal.Bad
	case interpreter.Partial, interpreter.RetryPending:
		return terminal.Warning
	case interpreter.Completed:
		return terminal.Good
	case interpreter.Running:
		return terminal.Active
	case interpreter.Awaiting:
		return terminal.Asks
	case interpreter.Paused, interpreter.Queued:
		return terminal.Held
	case interpreter.Pending, interpreter.Cancelled, interpreter.Skipped:
		return terminal.Quiet
	}
	return terminal.Plain
}
