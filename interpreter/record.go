package interpreter

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// RunResult is the result of a run. It is the result of the workflow, or the details of its failure or
// cancellation; kept in workflow history.
type RunResult struct {
	Status   Status           `json:"status"` // completed, partial_success, failed, cancelled
	Result   expression.Value `json:"result,omitzero"`
	Error    *ErrorObject     `json:"error,omitempty"`
	Steps    []StepRecord     `json:"steps"`
	Warnings []string         `json:"warnings,omitempty"`
	// ValidationWarnings are the warnings of the validation when the run began. They are separate from Warnings,
	// because a warning added to the validation must not change the expected result of runs.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	Late               bool     `json:"late,omitempty"` // it took longer than expected
	// Rows counts what the run's steps and child runs did to data; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// FurtherWarnings returns the warnings that add something to the errors of the steps: it omits those of a failed
// loop whose error says the same.
func (r *RunResult) FurtherWarnings() (further []string) {
	for i, warning := range r.Warnings {
		repeats := func(record StepRecord) bool {
			return record.Loop != nil && record.Loop.Warning == i+1 && record.Error.SaysWhatFailed()
		}
		if !slices.ContainsFunc(r.Steps, repeats) {
			further = append(further, warning)
		}
	}
	return further
}

// SetFailure makes r the result of a failed run.
func (r *RunResult) SetFailure(failure *ErrorObject) {
	r.Status, r.Error, r.Result = Failed, failure, expression.Value{}
}

// StepRecord describes one visit of a step: kept in workflow history as part of RunResult, and returned by a query
// while the run is open.
type StepRecord struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	CallStatus
	StartedAt time.Time   `json:"started_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
	Handled   bool        `json:"handled,omitempty"` // a route handled the failure
	Loop      *LoopRecord `json:"loop,omitempty"`
	// Call is the workflow ID of a call that continues in a child workflow, which has its progress.
	Call string `json:"call,omitempty"`
	// From is the workflow ID of the earlier run that made the call, if its result was reused.
	From string `json:"from,omitempty"`
	// Incremental describes the state of the call, or the states of a loop's iterations; nil for none.
	Incremental *StateRecord `json:"incremental,omitempty"`
	// Rows counts what the call or loop has done to data so far; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// StateRecord is the part of CallIncremental that people see: the progress of reading.
type StateRecord struct {
	State     string                 `json:"state"`
	States    int                    `json:"states,omitempty"`
	Type      incremental.CursorType `json:"type,omitempty"`
	Format    string                 `json:"format,omitempty"` // the format of incremental.Form
	From      expression.Value       `json:"from"`
	Watermark expression.Value       `json:"watermark"`
	// Before is the watermark before the call; From is Before minus the lag. Zero if unknown.
	Before expression.Value `json:"before,omitzero"`
	// MovesTo is the watermark after the run has completed, for a step that writes nothing; for a loop, the lowest
	// of its states.
	MovesTo expression.Value `json:"moves_to,omitzero"`
	Rows    int              `json:"rows"`
}

// Form returns the format of the cursors.
func (r *StateRecord) Form() incremental.Form {
	return incremental.Form{Type: r.Type, Format: r.Format}
}

// BeginValue returns the watermark before the call or, if unknown, where the call began to read.
func (r *StateRecord) BeginValue() expression.Value {
	if r.Before.Data == nil {
		return r.From
	}
	return r.Before
}

// HostedStep is the progress of a step's call in a running activity; kept in its heartbeats.
type HostedStep struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	// At is when the call had its last response, or when its last sink was written.
	At          time.Time    `json:"at"`
	Incremental *StateRecord `json:"incremental,omitempty"`
	Rows        *Rows        `json:"rows,omitempty"`
}

// Record returns the part that people see; nil for none.
func (i *CallIncremental) Record() *StateRecord {
	if i == nil {
		return nil
	}
	return &StateRecord{
		State: i.State, States: i.States, Type: i.Type, Format: i.Format, From: i.From.Value, Before: i.Before.Value, Watermark: i.Watermark.Value,
		MovesTo: incremental.LowestWatermark(i.Pending).Value, Rows: i.Rows,
	}
}

// LoopRecord is the part of a StepRecord that only loops have.
type LoopRecord struct {
	WorkflowID string    `json:"workflow_id"` // of the child workflow that runs the loop
	Stats      LoopStats `json:"stats"`
	// Open says that the loop runs over a source and has not ended, so only it knows the number of elements.
	Open   bool        `json:"open,omitempty"`
	Errors []LoopError `json:"errors,omitempty"`
	// Warning is the number, from 1, of the run's warning that counts the failed iterations; 0 for none.
	Warning int `json:"warning,omitempty"`
}

// Await records a wait of the step's call or of a sink and, with nil, its end. last is the failure of the previous
// attempt, which becomes the error if the wait is for a retry.
func (r *StepRecord) Await(wait *Wait, until time.Time, last *ErrorObject) {
	r.RecordWait(wait, until)
	r.SetWaitStart(last)
	if r.Error = nil; r.Status == RetryPending {
		r.Error = last
	}
}

// CompleteForDisplay completes the record of an open step for display: most is the number of attempts that a
// request gets, and failure the last failure of its call, nil for none.
func (r *StepRecord) CompleteForDisplay(most int, failure *ErrorObject) {
	r.MaxAttempts = cmp.Or(r.MaxAttempts, most)
	if r.Error == nil {
		r.Error = failure
	}
	r.Error = r.Error.ShownError()
}

// CallsOutput is the result of the calls of a batch, or of the single call of a step, which is an iteration without
// an index. Kept in workflow history.
type CallsOutput struct {
	Iterations []IterationResult `json:"iterations"`
	// Budget is the error of the loop if its failure budget was spent in this batch.
	Budget *ErrorObject `json:"budget,omitempty"`
}
