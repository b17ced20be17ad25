package call

import "encoding/json"

// State is the call's progress, for tests that compare or replace it.
func (c *Call) State() *State { return &c.state }

// Beyond reports whether the call has come further than a state it had.
func (c *Call) Beyond(before State) bool { return c.state.isBeyond(before) }

// Packed is a continuation of the given JSON.
func Packed(text string) ([]byte, error) {
	var next continuation
	if err := json.Unmarshal([]byte(text), &next); err != nil {
		return nil, err
	}
	return next.packState()
}
