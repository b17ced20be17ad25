package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/answers"
	"reprise/internal/base/connect"
	"reprise/interpreter"
	"reprise/interpreter/mailbox"
	"reprise/workflows/protocol"
)

// AwaitedAttempt is an attempt that waits for an answer, and the workflow that accepts it.
type AwaitedAttempt struct {
	WorkflowID string `json:"workflow_id"`
	// Run is the workflow ID of the child run that the attempt belongs to; "" for the run that was read.
	Run   string `json:"run,omitempty"`
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Index *int   `json:"index,omitempty"`
	interpreter.AwaitedDetails
}

// AttemptAddress returns the address of the attempt.
func (a AwaitedAttempt) AttemptAddress() interpreter.AnswerTo {
	return interpreter.AnswerTo{Step: a.Step, Visit: a.Visit, Index: a.Index, Attempt: a.Attempt}
}

// AwaitingAttempts finds the attempts of a run that await answers: of one step or, for "", of all steps, and of one iteration
// if index is not nil. It queries at most a hundred children of a loop; left counts the others. The error is
// answers.ErrNoAnswer if no worker responds.
func (r *Reader) AwaitingAttempts(ctx context.Context, workflowID, step string, index *int) (awaited []AwaitedAttempt, left int, err error) {
	progress, err := r.Progress(ctx, workflowID, "")
	switch {
	case err != nil && ctx.Err() == nil && !connect.IsUnavailable(err):
		return nil, 0, fmt.Errorf("%w: %w", answers.ErrNoAnswer, err)
	case err != nil:
		return nil, 0, err
	}
	awaited, left = r.awaitingOf(ctx, workflowID, progress.Steps, step, index)
	return awaited, left, nil
}

// awaitingOf is AwaitingAttempts for a run whose progress is known.
func (r *Reader) awaitingOf(
	ctx context.Context, workflowID string, records []protocol.StepRecord, step string, index *int,
) (awaited []AwaitedAttempt, left int) {
	for _, record := range records {
		if step != "" && record.Step != step || !record.EndedAt.IsZero() {
			continue
		}
		at := AwaitedAttempt{WorkflowID: workflowID, Step: record.Step, Visit: record.Visit}
		switch {
		case isOpenLoop(record.Loop):
			of, more := r.awaitingIn(ctx, record.Loop.WorkflowID, at, index)
			awaited, left = append(awaited, of...), left+more
			continue
		case index != nil:
			continue
		case record.Call != "":
			at.WorkflowID = record.Call
			if call, err := r.CallProgress(ctx, record.Call); err == nil {
				record = WithCall(record, call)
			}
		}
		if record.Awaits != nil {
			at.AwaitedDetails = *record.Awaits
			awaited = append(awaited, at)
		}
	}
	return awaited, left
}

// awaitingIn queries the open children of a loop for awaiting attempts.
func (r *Reader) awaitingIn(ctx context.Context, loop string, at AwaitedAttempt, index *int) (awaited []AwaitedAttempt, left int) {
	open, answers, left := r.openIterations(ctx, loop, index, func(protocol.Progress) bool { return true })
	for i, answer := range answers {
		for _, iteration := range answer.Iterations {
			if iteration.Awaits == nil || index != nil && iteration.Index != *index {
				continue
			}
			one := at
			one.WorkflowID, one.Index, one.AwaitedDetails = open[i], &iteration.Index, *iteration.Awaits
			awaited = append(awaited, one)
		}
	}
	slices.SortStableFunc(awaited, func(x, y AwaitedAttempt) int { return cmp.Compare(*x.Index, *y.Index) })
	return awaited, left
}

// openIterations queries the open children of a loop for their iterations, those near index first if it is given.
// wants decides by a loop's progress whether to query its children.
func (r *Reader) openIterations(
	ctx context.Context, loop string, index *int, wants func(protocol.Progress) bool,
) (open []string, answers []protocol.Iterations, left int) {
	progress, unread, err := r.loopProgress(ctx, loop, func() bool { return true })
	switch {
	case err != nil:
		return nil, nil, 1 // it is about to begin or to end
	case !wants(progress):
		return nil, nil, 0
	case unread != "":
		left = 1
	}
	open = progress.Open
	if index != nil {
		open = nearestFirst(open, *index)
	}
	answers = make([]protocol.Iterations, min(len(open), mostQueried))
	left += len(open) - len(answers)
	runConcurrently(len(answers), func(i int) {
		_ = r.queryWorkflow(ctx, open[i], "", protocol.IterationsQuery, &answers[i]) // one that gives none awaits nothing yet
	})
	return open, answers, left
}

// nearestFirst puts those children first that may contain an iteration: the workflow ID of a child ends with the
// index of its first iteration.
func nearestFirst(open []string, index int) []string {
	distance := func(id string) int {
		first, err := firstIndex(id)
		if err != nil || first > index {
			return 1 << 30
		}
		return index - first
	}
	open = slices.Clone(open)
	slices.SortStableFunc(open, func(x, y string) int { return cmp.Compare(distance(x), distance(y)) })
	return open
}

// SendAnswer sends an answer to a workflow and follows redirects, as answers.SendAnswer does.
func (r *Reader) SendAnswer(ctx context.Context, workflowID string, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	taken, _, err := answers.SendAnswer(ctx, r.Client, workflowID, answer, r.patienceTime())
	return taken, err
}

// mostRecalled bounds the attempts that FindReceipt queries: each has its own mailbox, and a call may have a thousand
// attempts.
const mostRecalled = 10

// FindReceipt finds the reply to an answer in a workflow that has ended since; false if it accepted no such answer.
// attempts is the number of the step's attempts, 0 if unknown; the last ten are queried.
func (r *Reader) FindReceipt(ctx context.Context, workflowID string, answer interpreter.Answer, attempts int) (taken interpreter.AnswerReceipt, found bool) {
	attempts = cmp.Or(attempts, mostRecalled)
	for attempt := attempts; attempt > max(0, attempts-mostRecalled); attempt-- {
		if answer.Attempt = attempt; answers.UpdateID(answer) == "" {
			return taken, false
		}
		limited, cancel := context.WithTimeout(ctx, r.patienceTime())
		handle := r.Client.GetWorkflowUpdateHandle(client.GetWorkflowUpdateHandleOptions{WorkflowID: workflowID, UpdateID: answers.UpdateID(answer)})
		err := handle.Get(limited, &taken)
		cancel()
		if err == nil {
			return taken, true
		}
	}
	return taken, false
}

// DepositAnswer stores an answer in a mailbox until a worker responds, as answers.DepositAnswer does.
func (r *Reader) DepositAnswer(ctx context.Context, workflowID string, answer interpreter.Answer) error {
	return answers.DepositAnswer(ctx, r.Client, mailbox.StoredAnswer{Workflow: workflowID, Answer: answer})
}
