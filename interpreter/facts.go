package interpreter

import (
	"sync/atomic"
)

// CallFacts say whose a call is, without any value of its data.
type CallFacts struct {
	Playbook string
	Step     string
	Visit    int
	Index    *int   // iteration, nil without a loop
	Tool     string // "" where it cannot be known
	Place    string // of a sink, "" for a step's own call
	Page     int    // of a sink
}

// Facts tell whose the call is.
func (c *Call) Facts() CallFacts {
	facts := CallFacts{
		Playbook: c.config.Run.Playbook, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Tool: c.toolName(),
	}
	if sink := c.config.Sink; sink != nil {
		facts.Place, facts.Page = sink.Place, sink.Page
	}
	return facts
}

// loads counts what Load has done.
var loads struct{ cached, compiled atomic.Int64 }

// Loads are how often this process took a playbook from its cache, and how
// often it compiled one.
func Loads() (cached, compiled int64) { return loads.cached.Load(), loads.compiled.Load() }
