package call

// Facts say whose a call is, without any value of its data.
type Facts struct {
	Playbook string
	Step     string
	Visit    int
	Index    *int   // iteration, nil without a loop
	Tool     string // "" where it cannot be known
	Place    string // of a sink, "" for a step's own call
	Page     int    // of a sink
}

// Facts identify a call in metrics and spans: its playbook, step and iteration.
func (c *Call) Facts() Facts {
	facts := Facts{
		Playbook: c.config.Run.Playbook, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Tool: c.toolName(),
	}
	if sink := c.config.Sink; sink != nil {
		facts.Place, facts.Page = sink.Place, sink.Page
	}
	return facts
}
