package workflows

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/retry"
)

// IterationsQuery queries a loop, a shard of one, or one of its children for iterations;
// the answer is an Iterations.
const IterationsQuery = "iterations"

// mostListed bounds the iterations of each kind in an answer: readers want to see where
// the loop is, not all of it.
const mostListed = 500

// Iterations is the answer to IterationsQuery.
type Iterations struct {
	// Iterations are of a loop those that failed, of a child all that it has.
	Iterations []IterationRecord `json:"iterations"`
	// Left counts failed iterations that are not among them.
	Left int `json:"left,omitempty"`
	// Hosted says that an activity makes attempts of a child that has a rate limit: its
	// heartbeats know which of them wait for their turns.
	Hosted bool `json:"hosted,omitempty"`
}

// IterationRecord is the state of one iteration.
type IterationRecord struct {
	Index int `json:"index"`
	interpreter.CallStatus
	// Incremental is how far a call has read that keeps a state and has not ended, as of its last activity that has; nil for others.
	Incremental *interpreter.StateRecord `json:"incremental,omitempty"`
}

func (l *loop) iterations() (Iterations, error) {
	answer := Iterations{Iterations: []IterationRecord{}}
	for _, failure := range l.result.Errors {
		if len(answer.Iterations) == mostListed {
			break
		}
		answer.Iterations = append(answer.Iterations, IterationRecord{Index: failure.Index, CallStatus: interpreter.CallStatus{
			Status: interpreter.Failed, Attempts: failure.Attempts, Error: failure.Error.Shrunk(),
		}})
	}
	answer.Left = l.result.Stats.Failed - len(answer.Iterations)
	slices.SortStableFunc(answer.Iterations, func(x, y IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return answer, nil
}

// waiter records what an iteration, or a sink of it, waits for, and shows it.
func (b *batch) waiter(ctx workflow.Context, i int) waitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		b.waits[i], b.until[i] = wait, until
		b.describe(ctx)
		b.reportWaits(ctx)
		if news, waits := waitsForPeople(call, wait, b.input.Task.Visit); waits {
			b.herald.signal(ctx, news)
		}
	}
}

func (b *batch) iterations() (Iterations, error) {
	answer := Iterations{Iterations: b.records(), Hosted: len(b.hosted) > 0 && b.step.Action.RateLimit != nil}
	for i := range answer.Iterations {
		answer.Iterations[i].Error = answer.Iterations[i].Error.Shrunk()
	}
	return answer, nil
}

// records are the states of the batch's iterations, in their order.
func (b *batch) records() []IterationRecord {
	records := make([]IterationRecord, 0, len(b.input.Ended)+len(b.calls))
	most := retry.MostAttempts(b.step, b.input.Task.Limits)
	for _, ended := range b.input.Ended {
		records = append(records, IterationRecord{Index: ended.Index, CallStatus: ended.Result.CallStatus()})
	}
	for i, call := range b.calls {
		view := call.View()
		record := IterationRecord{CallStatus: view.Status(b.waits[i], b.until[i]), Incremental: view.Incremental().Record()}
		if index := call.Config().Index; index != nil {
			record.Index = *index
		}
		if record.Status == interpreter.Pending && record.Reason == "" && slices.Contains(b.hosted, i) {
			record.Status, record.Attempts = interpreter.Running, 1
		}
		if record.Child = b.children[i]; record.MaxAttempts == 0 && !record.Status.Ended() {
			record.MaxAttempts = most
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(x, y IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return records
}

// completeProgress completes the progress of a run with what is not in the records.
func (r *run) completeProgress(progress *Progress) {
	progress.Control, progress.Late, progress.Ticket, progress.States = r.controls.Control, r.Late, r.Ticket, r.queuedVisits()
	for _, parent := range r.controls.parents {
		progress.Parents = append(progress.Parents, interpreter.Parent{Run: parent.Run, Step: parent.Step})
	}
	for i, record := range r.records {
		shown := &progress.Steps[i]
		step := r.book.Step(record.Step)
		if step == nil || step.Action == nil || !record.EndedAt.IsZero() {
			continue
		}
		if r.controls.IsPaused(step.Name) && step.Loop != nil {
			shown.Status = interpreter.Paused
		}
		var failure *interpreter.ErrorObject
		if call := r.live[record]; call != nil {
			view := call.View()
			failure, shown.Incremental = view.Failure, view.Incremental().Record()
		}
		shown.Show(retry.MostAttempts(step, r.Limits), failure)
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
