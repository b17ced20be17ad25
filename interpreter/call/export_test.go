package call

// State is the call's progress, for tests that compare or replace it.
func (c *Call) State() *State { return &c.state }
