package run

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// One visit of a step at a time has the state that the step keeps between runs: its slot is that
// of a queue of its own, by the workflow of concurrency keys. A visit waits for no other queue while it
// has a state, so that visits never wait for each other in a circle. No run continues as new
// while a step has not ended, so the slots are no part of what it continues with.

// stateTicket is the slot of a visit.
type stateTicket struct {
	queue.Ticket
	visit  string
	record *protocol.StepRecord
	// repeats says that people have requested that the visit ask for its state again, and skipped
	// that they ended its wait.
	repeats bool
	skipped *interpreter.Settlement
}

// queuedVisits are the tickets of visits that are queued for the state of their step, by name.
func (q *queues) queuedVisits() map[string]queue.Ticket {
	queued := map[string]queue.Ticket{}
	for _, t := range q.visits {
		if t.State == queue.Queued {
			queued[t.visit] = t.Ticket
		}
	}
	return queued
}

// withState makes a visit of a step once it has the state of the step.
func (q *queues) withState(
	ctx workflow.Context, start interpreter.Start, record *protocol.StepRecord, visit func() interpreter.CallResult,
) interpreter.CallResult {
	release, failure := q.acquireState(ctx, start, record)
	defer release()
	if failure != nil {
		return interpreter.CallResult{
			Status: interpreter.StatusError, Error: failure,
			Meta: interpreter.CallMeta{StartedAt: record.StartedAt, EndedAt: workflow.Now(ctx)},
		}
	}
	return visit()
}

// acquireState returns when the visit has the state of its step, or why it cannot have it. release
// is called in both cases.
func (q *queues) acquireState(
	ctx workflow.Context, start interpreter.Start, record *protocol.StepRecord,
) (release func(), failure *interpreter.ErrorObject) {
	if start.Step.Incremental == nil {
		return func() {}, nil
	}
	key, err := q.book.StateKey(start.Step, q.newScope(), gate.ExpressionBudget(ctx))
	if err != nil {
		return func() {}, interpreter.ExpressionFailure(q.book, "step "+start.Step.Name, err, workflow.Now(ctx)).Error
	}
	name := queue.Name{Key: key, State: true}
	t := &stateTicket{
		Ticket: queue.Ticket{Queue: name.ID(), Name: name, Since: workflow.Now(ctx)}, record: record,
		visit: protocol.VisitName(start.Step.Name, start.Visit),
	}
	q.visits = append(q.visits, t)
	release = func() { q.releaseState(ctx, t) }
	for wait := slotRetry; t.Waits() && t.skipped == nil && ctx.Err() == nil; wait = min(2*wait, mostSlotRetry) {
		t.repeats = false
		if err := q.requestState(ctx, t, start.Step.Incremental.OnConflict); err != nil && ctx.Err() == nil {
			return release, protocol.AttemptError(err)
		}
		awaitDecision(ctx, &t.Ticket, wait, "waits for the state of "+t.record.Step,
			func() bool { return t.repeats || t.skipped != nil })
	}
	switch {
	case ctx.Err() != nil:
		return release, protocol.CancelledError()
	case t.skipped != nil && t.Waits():
		return release, t.skipFailure()
	}
	return release, t.failure()
}

// visitOf is the visit as its queue knows it.
func (q *queues) visitOf(ctx workflow.Context, t *stateTicket) queue.Member {
	member := q.member(ctx)
	member.Visit = t.visit
	return member
}

// requestState requests the state, or repeats the request.
func (q *queues) requestState(ctx workflow.Context, t *stateTicket, conflict playbook.OnConflict) error {
	request := queue.Request{Member: q.visitOf(ctx, t), Limit: 1, OnConflict: playbook.ConflictQueue, Started: t.Since, Known: t.State}
	if conflict == playbook.ConflictFail {
		request.OnConflict = playbook.ConflictSkip
	}
	return sendToQueue(ctx, &t.Ticket, gate.ToTool(queue.EnterActivity, gate.QueueTimeout, "asks for the state of "+t.record.Step), request)
}

// applyStateDecision applies an answer of the queue of a state. A visit that has ended returns a slot
// that it is given after all: its request has arrived twice.
func (q *queues) applyStateDecision(ctx workflow.Context, answer queue.Decision) {
	at := slices.IndexFunc(q.visits, func(t *stateTicket) bool { return t.Queue == answer.Queue && t.visit == answer.Visit })
	if at < 0 {
		if answer.State == queue.Granted {
			member := q.member(ctx)
			member.Visit = answer.Visit
			gate.Signal(ctx, answer.Queue, queue.RequestSignal, queue.Request{Member: member, Leave: true})
		}
		return
	}
	t := q.visits[at]
	if !t.Apply(answer) {
		return
	}
	switch t.State {
	case queue.Queued:
		t.record.Await(&interpreter.Wait{Reason: interpreter.ReasonState, Summary: t.waitText()}, time.Time{}, nil)
		t.record.Since = t.Since
	default:
		t.record.Await(nil, time.Time{}, nil)
	}
	q.describe(ctx)
}

// waitText says of a visit that waits what it waits for.
func (t *stateTicket) waitText() string {
	text := "waits for the state " + t.Name.Key
	if t.By != "" {
		text += ", which run " + t.By + " holds"
	}
	return text
}

// skipFailure is the failure of a visit that a person skipped while it waited for its state.
func (t *stateTicket) skipFailure() *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("step %s: %s (%s)", t.record.Step, t.skipped.SkipText(), t.waitText()),
	}
}

// waiting are the tickets of visits that wait for the state of their step; of the one that is named,
// or of all for "". An iteration waits for none.
func (q *queues) waiting(command protocol.CommandInput) []*stateTicket {
	if command.Index != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.visits), func(t *stateTicket) bool {
		return !t.Waits() || t.skipped != nil || command.Step != "" && command.Step != t.record.Step
	})
}

// waitingVisits counts the visits that wait for the state of their step.
func (q *queues) waitingVisits(command protocol.CommandInput) int { return len(q.waiting(command)) }

// settle has visits that wait for the state of their step request it again, or fail.
func (q *queues) settle(command protocol.CommandInput, settlement interpreter.Settlement) (ended int) {
	waiting := q.waiting(command)
	for _, t := range waiting {
		if t.repeats = true; settlement.Skip {
			t.skipped = &settlement
		}
	}
	return len(waiting)
}

// failure is why the queue has not given the state, nil where it has.
func (t *stateTicket) failure() *interpreter.ErrorObject {
	message := ""
	switch t.State {
	case queue.Skipped:
		message = fmt.Sprintf("the run %s holds %s (on_conflict: fail)", t.By, t.Name.Describe())
	case queue.Full:
		message = fmt.Sprintf("too many runs wait for %s", t.Name.Describe())
	default:
		return nil
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindIncremental, Class: interpreter.ClassRetryable, Type: incremental.TypeConflict,
		Message: fmt.Sprintf("step %s: %s", t.record.Step, message),
	}
}

// releaseState gives the state to the next visit that waits for it, whatever came of this one.
func (q *queues) releaseState(ctx workflow.Context, t *stateTicket) {
	if t.failure() == nil {
		leaveQueue(ctx, &t.Ticket, q.visitOf(ctx, t))
	}
	q.visits = slices.DeleteFunc(q.visits, func(other *stateTicket) bool { return other == t })
}
