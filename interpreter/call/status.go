package call

import (
	"time"

	"reprise/interpreter"
)

// Status is that of the call. wait is what its host has it, or a sink of it, wait for, nil for
// nothing, and until is when that is over.
func (c *Call) Status(wait *interpreter.Wait, until time.Time) interpreter.CallStatus {
	status := interpreter.CallStatus{Attempts: c.state.Attempts, Pages: c.state.Successes, Error: c.state.Failure()}
	if wait == nil {
		wait = c.state.wait()
	}
	switch end := c.state.head().End; {
	case end != nil:
		return end.CallStatus()
	case wait == nil && !c.Begun():
		status.Status = interpreter.Pending
		return status
	}
	status.Await(wait, until)
	status.After(status.Error)
	if awaited := c.AwaitedDetails(); awaited != nil {
		status.Awaits, status.Attempts = awaited, c.Attempt()
		if status.Status == interpreter.Running {
			status.Status = interpreter.Awaiting
		}
	}
	if wait == nil {
		status.Attempts = c.Attempt()
	}
	return status
}
