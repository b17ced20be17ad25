package call

import (
	"strconv"

	"reprise/interpreter"
)

// WaitMark is that of a timer by which the call waits.
func (c *Call) WaitMark(wait interpreter.Wait) interpreter.TimerMark {
	return interpreter.TimerMark{Call: c.Place(), Index: c.Index(), Reason: wait.Reason}
}

// place is the step, or the place of the sink.
func (c *Config) place() string {
	if c.Sink != nil {
		return c.Sink.Place
	}
	return c.Step.Name
}

// name is that of the call in summaries: the step, with the index of its
// iteration, or the place of the sink.
func (c *Config) name() string {
	name := c.place()
	if c.Index != nil {
		name += "[" + strconv.Itoa(*c.Index) + "]"
	}
	return name
}
