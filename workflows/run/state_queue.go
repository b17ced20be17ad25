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

// Only one visit of a step at a time has the state that the step keeps between runs. It is the slot of a queue,
// served by the workflow of concurrency keys. A visit waits for no other queue while it has a state, so visits
// never wait for each other in a circle. A run does not continue as new before its steps have ended, so these slots
// are not part of its state.

// stateTicket is the position of a visit in the queue of its step's state.
type stateTicket struct {
	queue.Ticket
	visit  string
	record *protocol.StepRecord
	// repeats says that people have requested that the visit repeat its request, and skipped that they ended its
	// wait.
	repeats bool
	skipped *interpreter.Settlement
}

// queuedVisits returns the tickets of visits that wait for the state of their step, by VisitName.
func (q *queues) queuedVisits() map[string]queue.Ticket {
	queued := map[string]queue.Ticket{}
	for _, t := range q.visits {
		if t.State == queue.Queued {
			queued[t.visit] = t.Ticket
		}
	}
	return queued
}

// withState calls visit once the visit has the state of its step, if the step keeps one.
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

// acquireState returns when the visit has the state of its step, or the reason why it cannot get it. release must
// be called in both cases.
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
		Ticket: queue.Ticket{Queue: name.WorkflowID(), Name: name, Since: workflow.Now(ctx)}, record: record,
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
	return release, t.grantFailure()
}

// visitOf returns the identity of the visit in its queue.
func (q *queues) visitOf(ctx workflow.Context, t *stateTicket) queue.Member {
	member := q.queueMember(ctx)
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

// applyStateDecision applies a decision of the queue of a state. If the visit has ended, the slot is released at
// once: its request was delivered twice.
func (q *queues) applyStateDecision(ctx workflow.Context, answer queue.Decision) {
	at := slices.IndexFunc(q.visits, func(t *stateTicket) bool { return t.Queue == answer.Queue && t.visit == answer.Visit })
	if at < 0 {
		if answer.State == queue.Granted {
			member := q.queueMember(ctx)
			member.Visit = answer.Visit
			gate.SignalWorkflow(ctx, answer.Queue, queue.RequestSignal, queue.Request{Member: member, Leave: true})
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

// waitText describes what a waiting visit waits for.
func (t *stateTicket) waitText() string {
	text := "waits for the state " + t.Name.Key
	if t.By != "" {
		text += ", which run " + t.By + " holds"
	}
	return text
}

// skipFailure returns the failure of a visit that a person skipped while it waited for its state.
func (t *stateTicket) skipFailure() *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("step %s: %s (%s)", t.record.Step, t.skipped.SkipText(), t.waitText()),
	}
}

// waitingTickets returns the tickets of visits that wait for the state of their step, for the step of a command, or for
// all if it names none. There are none for an iteration.
func (q *queues) waitingTickets(command protocol.CommandInput) []*stateTicket {
	if command.Index != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.visits), func(t *stateTicket) bool {
		return !t.Waits() || t.skipped != nil || command.Step != "" && command.Step != t.record.Step
	})
}

// waitingVisits returns the number of visits, among those that a command applies to, that wait for the state of
// their step.
func (q *queues) waitingVisits(command protocol.CommandInput) int {
	return len(q.waitingTickets(command))
}

// settleTickets makes the waiting visits that a command applies to repeat their requests or, if it skips them, fail.
func (q *queues) settleTickets(command protocol.CommandInput, settlement interpreter.Settlement) (ended int) {
	waiting := q.waitingTickets(command)
	for _, t := range waiting {
		if t.repeats = true; settlement.Skip {
			t.skipped = &settlement
		}
	}
	return len(waiting)
}

// grantFailure returns why the queue has not granted the state; nil if it has.
func (t *stateTicket) grantFailure() *interpreter.ErrorObject {
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

// releaseState releases the state for the next visit that waits for it, whatever the outcome of this one.
func (q *queues) releaseState(ctx workflow.Context, t *stateTicket) {
	if t.grantFailure() == nil {
		leaveQueue(ctx, &t.Ticket, q.visitOf(ctx, t))
	}
	q.visits = slices.DeleteFunc(q.visits, func(other *stateTicket) bool { return other == t })
}
