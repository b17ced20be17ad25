package queue

import "time"

// Ticket is the position of a run in the queue of its key; kept in workflow history.
type Ticket struct {
	Queue string    `json:"queue"` // workflow ID of the WorkflowName
	Name  Name      `json:"name"`
	State State     `json:"state,omitempty"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"` // when the run began
}

// Waits reports whether the run may not begin yet.
func (t *Ticket) Waits() bool { return t != nil && (t.State == "" || t.State == Queued) }

// Apply notes a decision of the queue; false where that changes nothing. What was
// decided stays, except that a run with a turn may be replaced.
func (t *Ticket) Apply(decision Decision) bool {
	if t.State == decision.State || !t.Waits() && (t.State != Granted || decision.State != Replaced) {
		return false
	}
	t.State, t.By = decision.State, decision.By
	return true
}
