package workflows

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// IterationsQuery asks a loop, a part of one, or one of its children for
// iterations; answered with an Iterations.
const IterationsQuery = "iterations"

// mostTold bounds the iterations of each kind in an answer: whoever asks wants to
// see where the loop is, not all of it.
const mostTold = 500

// Iterations is the answer to IterationsQuery.
type Iterations struct {
	// Iterations are of a loop those that failed, of a child all that it has.
	Iterations []IterationRecord `json:"iterations"`
	// Left counts failed iterations that are not among them.
	Left int `json:"left,omitempty"`
}

// IterationRecord is the state of one iteration.
type IterationRecord struct {
	Index       int                `json:"index"`
	Status      interpreter.Status `json:"status"`
	Attempts    int                `json:"attempts"` // made; while it goes on, with the one under way
	MaxAttempts int                `json:"max_attempts,omitempty"`
	Pages       int                `json:"pages"`
	NextRetryAt time.Time          `json:"next_retry_at,omitzero"`
	Waiting     string             `json:"waiting,omitempty"` // summary of the wait under way
	// Awaits is the attempt that somebody outside answers, nil for none.
	Awaits *interpreter.Awaiting `json:"awaits,omitempty"`
	// Child is the workflow ID of the run of another playbook that it has started last.
	Child string                   `json:"child,omitempty"`
	Error *interpreter.ErrorObject `json:"error,omitempty"` // the last one
}

// answerLooks lets a loop be asked for its iterations.
func (l *loop) answerLooks(ctx workflow.Context) error {
	return workflow.SetQueryHandler(ctx, IterationsQuery, l.iterations)
}

func (l *loop) iterations() (Iterations, error) {
	answer := Iterations{Iterations: []IterationRecord{}}
	most := interpreter.MostAttempts(l.step, l.input.Task.Limits)
	for _, failure := range l.result.Errors {
		if len(answer.Iterations) == mostTold {
			break
		}
		answer.Iterations = append(answer.Iterations, IterationRecord{
			Index: failure.Index, Status: interpreter.Failed, Attempts: failure.Attempts, MaxAttempts: most,
			Error: failure.Error.Shrunk(),
		})
	}
	answer.Left = l.result.Stats.Failed - len(answer.Iterations)
	slices.SortStableFunc(answer.Iterations, func(x, y IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return answer, nil
}

// answerLooks lets a child of a loop be asked for its iterations.
func (b *batch) answerLooks(ctx workflow.Context) error {
	return workflow.SetQueryHandler(ctx, IterationsQuery, b.iterations)
}

// waiter notes what an iteration, or a sink of it, waits for, and shows it.
func (b *batch) waiter(ctx workflow.Context, i int) waiter {
	return func(call *interpreter.Call, wait *interpreter.Wait, until time.Time) {
		b.waits[i], b.until[i] = wait, until
		b.describe(ctx)
		if news, waits := waitsForPeople(call, wait, b.input.Task.Visit); waits {
			b.herald.tell(ctx, news)
		}
	}
}

// plays notes the run of another playbook that an iteration starts, and shows it.
func (b *batch) plays(ctx workflow.Context, i int, child string) {
	b.children[i] = child
	b.describe(ctx)
}

func (b *batch) iterations() (Iterations, error) {
	answer := Iterations{Iterations: b.records()}
	for i := range answer.Iterations {
		answer.Iterations[i].Error = answer.Iterations[i].Error.Shrunk()
	}
	return answer, nil
}

// records are the states of the batch's iterations, in their order.
func (b *batch) records() []IterationRecord {
	records := make([]IterationRecord, 0, len(b.input.Ended)+len(b.calls))
	most := interpreter.MostAttempts(b.step, b.input.Task.Limits)
	for _, ended := range b.input.Ended {
		state := interpreter.CallState{Todo: []interpreter.Todo{{End: &ended.Result}}}
		record := iterationOf(state, time.Time{}, most)
		record.Index = ended.Index
		records = append(records, record)
	}
	for i, call := range b.calls {
		record := iterationOf(call.State, b.until[i], most)
		if index := call.Index(); index != nil {
			record.Index = *index
		}
		record.Child = b.children[i]
		switch wait := b.waits[i]; {
		case wait != nil && wait.Reason == interpreter.ReasonPlace:
			record.Status, record.Waiting, record.NextRetryAt = interpreter.Pending, wait.Summary, time.Time{}
		case wait != nil && wait.Reason == interpreter.ReasonAnswer:
			record.Waiting, record.Attempts, record.Awaits = wait.Summary, call.Attempt(), call.Awaiting()
		case record.Status == interpreter.Running && wait != nil && wait.Reason != interpreter.ReasonTurn: // in a sink
			record.Status, record.Waiting, record.NextRetryAt = interpreter.RetryPending, wait.Summary, b.until[i]
		case record.Status == interpreter.Pending && slices.Contains(b.hosted, i):
			record.Status, record.Attempts = interpreter.Running, 1
		case record.Status == interpreter.Running:
			record.Attempts = call.Attempt()
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(x, y IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return records
}

// iterationOf tells the state of a call.
func iterationOf(state interpreter.CallState, until time.Time, most int) IterationRecord {
	record := IterationRecord{
		Status: interpreter.Running, Attempts: state.Attempts, MaxAttempts: most, Pages: state.Successes,
		Error: state.Failure(),
	}
	if len(state.Todo) == 0 {
		record.Status = interpreter.Pending
		return record
	}
	switch head := state.Todo[0]; {
	case head.Wait != nil:
		record.Waiting, record.NextRetryAt = head.Wait.Summary, until
		if head.Wait.Reason != interpreter.ReasonTurn {
			record.Status = interpreter.RetryPending
		}
	case head.Hold != nil:
		wait := head.Hold.Wait(state.Failure())
		record.Waiting, record.Status = wait.Summary, interpreter.Paused
		if head.Hold.Exhausted {
			record.Status = interpreter.RetryPending
		}
	case head.End != nil:
		record.Status, record.Error = recordStatus(*head.End), head.End.Error
		record.Attempts, record.Pages = head.End.Meta.Attempts, head.End.Meta.Pages
	}
	return record
}

// look completes the progress of a run: what its queries tell beyond the records.
func (r *run) look(progress *Progress) {
	progress.Control, progress.Late, progress.Ticket = r.controls.Control, r.Late, r.Ticket
	for _, above := range r.controls.above {
		progress.Above = append(progress.Above, interpreter.Above{Run: above.Run, Step: above.Step})
	}
	for i, record := range r.records {
		shown := &progress.Steps[i]
		step := r.book.Step(record.Step)
		if step == nil || step.Action == nil || !record.EndedAt.IsZero() {
			continue
		}
		if r.controls.Holds(step.Name) && step.Loop != nil {
			shown.Status = interpreter.Paused
		}
		shown.MaxAttempts = interpreter.MostAttempts(step, r.Limits)
		if call := r.live[record]; call != nil {
			shown.LastError = call.State.Failure().Shrunk()
		}
	}
	if r.input.Reprocess != nil {
		return
	}
	for _, step := range r.book.Steps {
		if r.Routing.Visits[step.Name] == 0 {
			progress.Pending = append(progress.Pending, step.Name)
		}
	}
}
