package call

import (
	"reprise/interpreter"
)

// AwaitedDetails is the attempt of the call that awaits its answer, nil for none.
func (c *Call) AwaitedDetails() *interpreter.AwaitedDetails {
	awaited := c.Awaited()
	if awaited == nil || c.HasAnswer() {
		return nil
	}
	shown := &interpreter.AwaitedDetails{Attempt: c.Attempt(), Since: awaited.Since, Until: awaited.Until, Approval: c.Approval()}
	if reported := c.state.Reported; reported != nil {
		shown.Done, shown.Total, shown.Message, shown.Reported = reported.Done, reported.Total, reported.Message, reported.At
	}
	return shown
}
