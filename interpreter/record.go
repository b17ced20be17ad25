package interpreter

import (
	"time"

	"reprise/interpreter/expression"
)

// RunResult is how a run ended. It is the workflow's result, and the details of
// its failure or cancellation; kept in workflow history.
type RunResult struct {
	Status   Status           `json:"status"` // completed, partial_success, failed, cancelled
	Result   expression.Value `json:"result,omitzero"`
	Error    *ErrorObject     `json:"error,omitempty"`
	Steps    []StepRecord     `json:"steps"`
	Warnings []string         `json:"warnings,omitempty"`
	Late     bool             `json:"late,omitempty"` // it took longer than expected
}

// Fail makes the result that of a run which failed.
func (r *RunResult) Fail(failure *ErrorObject) {
	r.Status, r.Error, r.Result = Failed, failure, expression.Value{}
}

// StepRecord is one visit of a step: as part of RunResult kept in workflow
// history, and the answer to a query while the run goes on.
type StepRecord struct {
	Step        string       `json:"step"`
	Visit       int          `json:"visit"`
	Status      Status       `json:"status"`
	Attempts    int          `json:"attempts"` // made; while the step goes on, with the one under way
	Pages       int          `json:"pages"`
	StartedAt   time.Time    `json:"started_at,omitzero"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
	NextRetryAt time.Time    `json:"next_retry_at,omitzero"`
	Waiting     string       `json:"waiting,omitempty"` // summary of the wait under way
	Error       *ErrorObject `json:"error,omitempty"`
	Handled     bool         `json:"handled,omitempty"` // a route took the failure
	Loop        *LoopRecord  `json:"loop,omitempty"`
	// Call is the workflow ID of a call that goes on in histories of its own. Its
	// progress is there.
	Call string `json:"call,omitempty"`
	// Child is the workflow ID of the run of another playbook that the step has
	// started last.
	Child string `json:"child,omitempty"`
	// From is the workflow ID of the earlier run that has made the call, whose result
	// the step has.
	From string `json:"from,omitempty"`
	// MaxAttempts is how many attempts the policies give a request that goes on
	// failing; only progress tells it, and only while the step goes on.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// LastError is that of the last attempt, where that failed; told like MaxAttempts.
	LastError *ErrorObject `json:"last_error,omitempty"`
	// Awaits is the attempt that somebody outside answers; told like MaxAttempts.
	Awaits *Awaiting `json:"awaits,omitempty"`
}

// LoopRecord is the part of a StepRecord that only loops have.
type LoopRecord struct {
	WorkflowID string      `json:"workflow_id"`
	Stats      LoopStats   `json:"stats"`
	Errors     []LoopError `json:"errors,omitempty"`
}

// Await notes a wait of a call, or with nil its end. The error is the one that is
// waited for.
func (r *StepRecord) Await(call *Call, wait *Wait, until time.Time) {
	r.Status, r.Waiting, r.NextRetryAt, r.Error = Running, "", until, nil
	switch {
	case wait == nil:
	case wait.Reason == ReasonTurn, wait.Reason == ReasonAnswer: // nothing has failed
		r.Waiting = wait.Summary
	case wait.Reason == ReasonPaused:
		r.Status, r.Waiting = Paused, wait.Summary
	default:
		r.Status, r.Waiting = RetryPending, wait.Summary
		r.Error = call.State.Last.Error
	}
}

// Follow notes how far the step's call is.
func (r *StepRecord) Follow(call *Call) {
	r.Attempts, r.Pages, r.Awaits = call.Attempt(), call.State.Successes, call.Awaiting()
}

// CallsOutput is what the calls of a batch come to, or that of one step, which is an
// iteration without an index. Kept in workflow history.
type CallsOutput struct {
	Iterations []IterationResult `json:"iterations"`
	// Budget is the error of the loop where its failure budget was spent here.
	Budget *ErrorObject `json:"budget,omitempty"`
}
