package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// A step may run another playbook as a child run. This file reads child runs by way of the runs that started them.

// ChildRuns is what was found in the runs that a step or an iteration started, and in their child runs, as far as
// they were queried.
type ChildRuns struct {
	// Awaited are the attempts of child runs that await answers.
	Awaited []AwaitedAttempt `json:"below,omitempty"`
	// Held are the steps of child runs that are held by something else, and child runs that are queued or paused.
	Held []ChildWait `json:"held_below,omitempty"`
}

// ChildWait is a waiting step of a child run, or a child run that waits as a whole.
type ChildWait struct {
	Run   string `json:"run"` // workflow ID
	Step  string `json:"step,omitempty"`
	Visit int    `json:"visit,omitempty"`
	Item
	// Queue is what a queued run waits for; nil for a step.
	Queue *QueuePosition `json:"queue,omitempty"`
	// Control is what people have paused in the run; nil for a step.
	Control *interpreter.Control `json:"control,omitempty"`
}

// addStep adds a step of a child run that waits: for an answer, or because it was paused.
func (c *ChildRuns) addStep(run string, record protocol.StepRecord) {
	switch step := stepOf(record); {
	case step.Awaits != nil:
		c.Awaited = append(c.Awaited, AwaitedAttempt{
			WorkflowID: cmp.Or(record.Call, run), Run: run, Step: step.Step, Visit: step.Visit, AwaitedDetails: *step.Awaits,
		})
	case step.HeldBy != "":
		c.Held = append(c.Held, ChildWait{Run: run, Step: step.Step, Visit: step.Visit, Item: step.Item})
	}
}

// describeChild queries a run, and the child runs of its steps, for what holds them. spend takes a call to the server
// from a budget; missed is the first run that was not queried because the budget was used up, "" if there is none.
func (r *Reader) describeChild(ctx context.Context, run string, spend func() bool) (children ChildRuns, missed string) {
	for next := []string{run}; len(next) > 0; next = next[1:] {
		if !spend() {
			return children, next[0]
		}
		progress, err := r.Progress(ctx, next[0], "")
		if err != nil {
			continue // it is about to begin or to end
		}
		if ticket := progress.Ticket; ticket.Waits() && spend() {
			queue, _ := r.queuePosition(ctx, ticket, queue.Member{WorkflowID: next[0]}) // its place may be unknown
			children.Held = append(children.Held, ChildWait{
				Run: next[0], Item: Item{Status: interpreter.Queued, HeldBy: HeldByConcurrency, Since: ticket.Since}, Queue: queue,
			})
		}
		if control := progress.Control; control.AnyPaused() {
			children.Held = append(children.Held, ChildWait{
				Run: next[0], Item: Item{Status: interpreter.Paused, HeldBy: HeldByPause, Since: control.Held[""].At}, Control: &control,
			})
		}
		for _, record := range progress.Steps {
			if !record.EndedAt.IsZero() {
				continue
			}
			children.addStep(next[0], record)
			if record.Awaits == nil && record.Child != "" {
				next = append(next, record.Child)
			}
		}
	}
	return children, ""
}

// HeldByParents returns the parent runs that hold a run because they, or their step that started it, are paused; the
// direct parent first. It makes a call for each parent run and one more, and none for a run without a parent.
func (r *Reader) HeldByParents(ctx context.Context, run Found) ([]ChildWait, error) {
	if !run.isChild {
		return nil, nil
	}
	progress, err := r.Progress(ctx, run.WorkflowID, "")
	if err != nil {
		return nil, err
	}
	held, missed := r.heldByParents(ctx, progress.Parents, func() bool { return true })
	if missed != "" {
		return held, fmt.Errorf("query whether the run %s holds %s: no answer", missed, run.WorkflowID)
	}
	return held, nil
}

// heldByParents describes the parent runs that are paused, the direct parent first. Pauses are in their memos; a
// child run learns of them with its next attempt. missed is the first run that was not described because the budget
// was used up or the server did not respond.
func (r *Reader) heldByParents(ctx context.Context, runs []interpreter.Parent, spend func() bool) (held []ChildWait, missed string) {
	for _, parent := range slices.Backward(runs) {
		if !spend() {
			return held, cmp.Or(missed, parent.Run)
		}
		described, err := r.Client.DescribeWorkflowExecution(ctx, parent.Run, "")
		if err != nil {
			missed = cmp.Or(missed, parent.Run)
			continue
		}
		control := controlOf(described.GetWorkflowExecutionInfo().GetMemo())
		if described.GetWorkflowExecutionInfo().GetCloseTime() == nil && control.IsPaused(parent.Step) {
			held = append(held, ChildWait{
				Run: parent.Run, Step: parent.Step, Control: &control,
				Item: Item{Status: interpreter.Paused, HeldBy: HeldByPause, Since: control.PausedBy(parent.Step).At},
			})
		}
	}
	return held, missed
}

// controlOf reads the commands that people gave to a run from its memo.
func controlOf(memo *commonpb.Memo) (control interpreter.Control) {
	if payload := memo.GetFields()[interpreter.ControlMemo]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &control) // what cannot be read holds nothing
	}
	return control
}

// mostChildRuns bounds the child runs that are queried for one run. Each is a request to a worker, and a loop may
// have 100,000 of them.
const mostChildRuns = 100

// AwaitingInChildren is AwaitingAttempts for the running child runs of a run's steps, and their child runs.
// AwaitedAttempt.Run names them. It queries a hundred; left counts the others.
func (r *Reader) AwaitingInChildren(ctx context.Context, workflowID, step string, index *int) (awaited []AwaitedAttempt, left int, err error) {
	progress, err := r.Progress(ctx, workflowID, "")
	if err != nil {
		return nil, 0, err
	}
	below, left := r.openChildRuns(ctx, progress.Steps)
	for looked := 0; len(below) > 0; {
		most := min(len(below), mostChildRuns-looked)
		left += len(below) - most
		below, looked = below[:most], looked+most
		found := make([][]AwaitedAttempt, most)
		var next []string
		var mu sync.Mutex
		runConcurrently(most, func(i int) {
			progress, err := r.Progress(ctx, below[i], "")
			if err != nil {
				return // it is about to begin or to end
			}
			of, missed := r.awaitingOf(ctx, below[i], progress.Steps, step, index)
			deeper, more := r.openChildRuns(ctx, progress.Steps)
			for at := range of {
				of[at].Run = below[i]
			}
			mu.Lock()
			defer mu.Unlock()
			found[i], next, left = of, append(next, deeper...), left+missed+more
		})
		awaited, below = append(awaited, slices.Concat(found...)...), next
	}
	return awaited, left, ctx.Err()
}

// openChildRuns returns the running child runs that steps wait for.
func (r *Reader) openChildRuns(ctx context.Context, records []protocol.StepRecord) (ids []string, left int) {
	for _, record := range records {
		switch {
		case !record.EndedAt.IsZero():
		case isOpenLoop(record.Loop):
			_, answers, more := r.openIterations(ctx, record.Loop.WorkflowID, nil, func(of protocol.Progress) bool { return of.Plays })
			left += more
			for _, answer := range answers {
				for _, iteration := range answer.Iterations {
					if iteration.Child != "" {
						ids = append(ids, iteration.Child)
					}
				}
			}
		case record.Child != "":
			ids = append(ids, record.Child)
		case record.Call != "":
			if call, err := r.CallProgress(ctx, record.Call); err == nil && call.Child != "" {
				ids = append(ids, call.Child)
			}
		}
	}
	return ids, left
}
