package interpreter

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// RunResult is how a run ended. It is the workflow's result, and the details of
// its failure or cancellation; kept in workflow history.
type RunResult struct {
	Status   Status           `json:"status"` // completed, partial_success, failed, cancelled
	Result   expression.Value `json:"result,omitzero"`
	Error    *ErrorObject     `json:"error,omitempty"`
	Steps    []StepRecord     `json:"steps"`
	Warnings []string         `json:"warnings,omitempty"`
	// ValidationWarnings are what validation has warned of when the run began. They are not among Warnings: a warning that
	// validation learns would change what is expected of runs.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	Late               bool     `json:"late,omitempty"` // it took longer than expected
	// Rows is what the run's steps and child runs did to data; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// FurtherWarnings are the warnings that say more than the errors of the steps: a loop that has failed warns of what its error
// says.
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

// SetFailure makes the result that of a run which failed.
func (r *RunResult) SetFailure(failure *ErrorObject) {
	r.Status, r.Error, r.Result = Failed, failure, expression.Value{}
}

// StepRecord is one visit of a step: as part of RunResult kept in workflow
// history, and the answer to a query while the run is open.
type StepRecord struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	CallStatus
	StartedAt time.Time   `json:"started_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
	Handled   bool        `json:"handled,omitempty"` // a route took the failure
	Loop      *LoopRecord `json:"loop,omitempty"`
	// Call is the workflow ID of a call that continues in a workflow of its own. Its
	// progress is there.
	Call string `json:"call,omitempty"`
	// From is the workflow ID of the earlier run that has made the call, whose result
	// the step has.
	From string `json:"from,omitempty"`
	// Incremental describes the state of the call, or the states of a loop's iterations; nil for
	// none.
	Incremental *StateRecord `json:"incremental,omitempty"`
	// Rows is what the call or loop has done to data, so far if it is open; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// StateRecord shows people a call's progress in reading: the part of CallIncremental that
// matters to them.
type StateRecord struct {
	State     string                 `json:"state"`
	States    int                    `json:"states,omitempty"`
	Type      incremental.CursorType `json:"type,omitempty"`
	Format    string                 `json:"format,omitempty"` // that of incremental.Form
	From      expression.Value       `json:"from"`
	Watermark expression.Value       `json:"watermark"`
	// Before is the watermark before the call; From is Before minus the lag. Zero if unknown.
	Before expression.Value `json:"before,omitzero"`
	// MovesTo is where the watermark moves once the run has completed, of a loop the lowest of its
	// states: of a step that writes nothing.
	MovesTo expression.Value `json:"moves_to,omitzero"`
	Rows    int              `json:"rows"`
}

// Form is how the cursors of the source are written.
func (r *StateRecord) Form() incremental.Form {
	return incremental.Form{Type: r.Type, Format: r.Format}
}

// BeginValue is the watermark before the call; where that is not known, where the call begins to read.
func (r *StateRecord) BeginValue() expression.Value {
	if r.Before.Data == nil {
		return r.From
	}
	return r.Before
}

// HostedStep is the progress of a step's call in an activity that has not ended; kept in its heartbeats.
type HostedStep struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	// At is when the call had its last answer, or its last sink was written.
	At          time.Time    `json:"at"`
	Incremental *StateRecord `json:"incremental,omitempty"`
	Rows        *Rows        `json:"rows,omitempty"`
}

// Record returns the part of it that people see; nil for none.
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
	WorkflowID string    `json:"workflow_id"`
	Stats      LoopStats `json:"stats"`
	// Open says that the loop runs over a source and has not ended: only it knows how many elements there are.
	Open   bool        `json:"open,omitempty"`
	Errors []LoopError `json:"errors,omitempty"`
	// Warning is which warning of the run, from 1, says how many iterations failed; 0 for none.
	Warning int `json:"warning,omitempty"`
}

// Await notes a wait of the step's call, or of a sink of it, and with nil its end. last is the
// failure of the attempt before, which is the error where it is waited for.
func (r *StepRecord) Await(wait *Wait, until time.Time, last *ErrorObject) {
	r.CallStatus.Await(wait, until)
	r.After(last)
	if r.Error = nil; r.Status == RetryPending {
		r.Error = last
	}
}

// CompleteForDisplay completes the record of a step that has not ended, for display: most is how many
// attempts its policies give a request, and failure that of its call, nil for none.
func (r *StepRecord) CompleteForDisplay(most int, failure *ErrorObject) {
	r.MaxAttempts = cmp.Or(r.MaxAttempts, most)
	if r.Error == nil {
		r.Error = failure
	}
	r.Error = r.Error.ShrunkError()
}

// CallsOutput is the outcome of the calls of a batch, or of the call of one step, which is an
// iteration without an index. Kept in workflow history.
type CallsOutput struct {
	Iterations []IterationResult `json:"iterations"`
	// Budget is the error of the loop where its failure budget was spent here.
	Budget *ErrorObject `json:"budget,omitempty"`
}
