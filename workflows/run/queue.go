package run

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

const (
	// slotRetry is how long a run waits before it repeats the request for its slot; the interval then doubles.
	slotRetry = 2 * time.Minute
	// mostSlotRetry bounds that interval. The workflow of the key may have been terminated in the meantime.
	mostSlotRetry = time.Hour
	// mostReleases bounds how often an ending run restarts a terminated queue to release its slot for the next run.
	// Without a bound the run itself might never end.
	mostReleases = 5
)

// queues is the part of a run that waits in queues: for the slot of the run under its concurrency key, and for the
// slots of visits that need the state of their step.
type queues struct {
	*frame
	protocol.RunQueues
	// visits are the tickets of visits that need the state of their step, or have it.
	visits []*stateTicket
	// again says that people have requested that the run repeat its request for a slot.
	again bool
	// describe updates the displayed status of the run, and publish the search attribute.
	describe func(workflow.Context)
	publish  func(workflow.Context, interpreter.Control)
}

// isSkipped reports whether the run must not begin, because other runs have its key.
func (q *queues) isSkipped() bool { return q.Ticket != nil && q.Ticket.State == queue.Skipped }

// isQueued reports whether the run waits in the queue of its key.
func (q *queues) isQueued() bool { return q.Ticket != nil && q.Ticket.State == queue.Queued }

// isWaitingForSlot reports whether the run has requested its slot and is waiting for the decision.
func (q *queues) isWaitingForSlot() bool { return q.Ticket.Waits() }

func (q *queues) requestAgain() { q.again = true }

func (q *queues) currentTicket() *queue.Ticket { return q.Ticket }

// acquireSlot returns when the run may begin, or must end because it failed, was cancelled or was skipped. The
// error is the one with which it continues as new: see renew.
func (q *queues) acquireSlot(ctx, branches workflow.Context, renew func(workflow.Context) error) (next error) {
	q.listenToQueues(ctx)
	if q.book.Concurrency == nil {
		return nil
	}
	if q.Ticket == nil {
		name, err := queue.NameOf(q.book, q.newScope(), gate.ExpressionBudget(ctx))
		if err != nil {
			q.failRun(interpreter.ExpressionFailure(q.book, "concurrency", err, workflow.Now(ctx)).Error)
			return nil
		}
		if failure := q.waitsForItself(name); failure != nil {
			q.failRun(failure)
			return nil
		}
		q.Ticket = &queue.Ticket{Queue: name.WorkflowID(), Name: name, Since: workflow.GetInfo(ctx).WorkflowStartTime}
	}
	q.controls.AwaitAnswers(ctx) // the slot may take a long time
	for wait := slotRetry; q.Ticket.Waits() && branches.Err() == nil; wait = min(2*wait, mostSlotRetry) {
		if next := renew(ctx); next != nil {
			return next
		}
		q.again = false
		if err := q.requestSlot(branches); err != nil && branches.Err() == nil {
			q.failRun(protocol.AttemptError(err))
			return nil
		}
		awaitDecision(branches, q.Ticket, wait, "is queued under its concurrency key", func() bool { return q.again })
	}
	return nil
}

// waitsForItself returns the failure of a run that can never get a slot, because all slots are held by its parents,
// which wait for its end; nil for other runs.
func (q *queues) waitsForItself(name queue.Name) *interpreter.ErrorObject {
	if q.book.Concurrency.OnConflict == playbook.ConflictSkip {
		return nil
	}
	id, holders := name.WorkflowID(), []string{}
	for _, parent := range q.controls.Parents {
		if parent.Queue == id {
			holders = append(holders, parent.Run)
		}
	}
	if len(holders) < q.book.Concurrency.Limit {
		return nil
	}
	return foreverError(fmt.Sprintf("the run waits for itself: %s, which started it, holds the concurrency key %q until this run has ended; "+
		"use another key in the playbook", strings.Join(holders, " and "), name.Key))
}

// foreverError returns the failure of a run that would never get its slot; it is final, so that it is not retried.
func foreverError(message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: message}
}

// awaitDecision waits until the queue of a ticket has decided, repeats returns true, the time wait is over, or ctx
// is cancelled. summary is that of the timer.
func awaitDecision(ctx workflow.Context, ticket *queue.Ticket, wait time.Duration, summary string, repeats func() bool) {
	if !ticket.Waits() {
		return
	}
	timed, stop := workflow.WithCancel(ctx)
	defer stop()
	over := workflow.NewTimerWithOptions(timed, wait, workflow.TimerOptions{Summary: summary})
	_ = workflow.Await(ctx, func() bool { return over.IsReady() || repeats() || !ticket.Waits() }) // an error is ctx.Err()
}

// requestSlot requests a slot, or repeats the request.
func (q *queues) requestSlot(ctx workflow.Context) error {
	concurrency := q.book.Concurrency
	request := queue.Request{Member: q.queueMember(ctx), Limit: concurrency.Limit, OnConflict: concurrency.OnConflict, Started: q.Ticket.Since}
	request.Known = q.Ticket.State
	for _, parent := range q.controls.Parents {
		if parent.Queue != "" {
			request.Parents = append(request.Parents, queue.Holding{Run: parent.Run, Queue: parent.Queue})
		}
	}
	return sendToQueue(ctx, q.Ticket, gate.ToTool(queue.EnterActivity, gate.QueueTimeout, "requests its slot"), request)
}

// sendToQueue lets a worker send a request to the queue of a ticket, and start the queue's workflow if it is not
// running.
func sendToQueue(ctx workflow.Context, ticket *queue.Ticket, to gate.Recipient, request queue.Request) error {
	_, err := gate.Send[struct{}](ctx, to, queue.Enter{Name: ticket.Name, Request: request}, "the name of concurrency")
	return err
}

// queueMember returns the identity of the run in queues.
func (q *queues) queueMember(ctx workflow.Context) queue.Member {
	return queue.Member{WorkflowID: q.id, RunID: workflow.GetInfo(ctx).FirstRunID}
}

// listenToQueues applies decisions of queues until the end of the run: even a run that has its slot may be
// replaced.
func (q *queues) listenToQueues(ctx workflow.Context) {
	gate.HandleSignal(ctx, queue.DecisionSignal, func(ctx workflow.Context, answer queue.Decision) {
		switch {
		case answer.RunID != q.queueMember(ctx).RunID:
		case answer.Visit != "":
			q.applyStateDecision(ctx, answer)
		case q.Ticket != nil:
			q.applyDecision(ctx, answer)
		}
	})
}

// applyDecision applies a decision about the slot of the run.
func (q *queues) applyDecision(ctx workflow.Context, answer queue.Decision) {
	waited := q.Ticket.State == queue.Queued
	if !q.Ticket.Apply(answer) {
		return
	}
	key := q.Ticket.Name.Key
	switch answer.State {
	case queue.Queued:
		q.showTicket(ctx, q.Ticket)
	case queue.Granted:
		if waited {
			q.showTicket(ctx, &queue.Ticket{})
		}
	case queue.Skipped:
		q.Warnings = append(q.Warnings, fmt.Sprintf("the run was skipped: %s holds the concurrency key %q (on_conflict: skip)", answer.By, key))
	case queue.Replaced: // the queue also cancels the run
		q.Warnings = append(q.Warnings, fmt.Sprintf("the run was cancelled: %s took the concurrency key %q (on_conflict: cancel_running)", answer.By, key))
	case queue.Deadlocked:
		q.failRun(foreverError(fmt.Sprintf("runs wait for each other in a circle: under the concurrency key %q %s", key, answer.Why)))
	case queue.Full:
		q.failRun(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
			Message: fmt.Sprintf("too many runs are queued under the concurrency key %q", key),
		})
	}
	q.describe(ctx)
}

// showTicket shows in lists of runs whether the run waits for its slot.
func (q *queues) showTicket(ctx workflow.Context, ticket *queue.Ticket) {
	if err := workflow.UpsertMemo(ctx, map[string]any{queue.Memo: *ticket}); err != nil {
		gate.Logger(ctx).Warn("cannot show in the memo of the run that it is queued", "error", err)
	}
	q.publish(ctx, q.controls.Control)
}

// releaseSlot releases the run's slot, and returns when the server has the message, because a message not sent when
// a workflow ends is lost. A run that still waits sends it with the activity that requested the slot: thousands of
// waiting runs may be cancelled at once, while only a few have a slot.
func (q *queues) releaseSlot(ctx workflow.Context) {
	if q.Ticket != nil && q.Ticket.State != queue.Skipped {
		leaveQueue(ctx, q.Ticket, q.queueMember(ctx))
	}
}

// leaveQueue removes a run, or a visit of one, from the queue of a ticket.
func leaveQueue(ctx workflow.Context, ticket *queue.Ticket, member queue.Member) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	request := queue.Request{Member: member, Leave: true}
	queued := ticket.Waits()
	var err error
	if !queued {
		err = gate.SignalWorkflow(ctx, ticket.Queue, queue.RequestSignal, request).Get(ctx, nil)
	}
	if err != nil || queued {
		to := gate.ToTool(queue.EnterActivity, gate.QueueTimeout, "leaves the queue of "+source.CutText(ticket.Name.Describe(), protocol.MaxText))
		to.Tries = mostReleases
		err = sendToQueue(ctx, ticket, to, request)
	}
	if err != nil {
		gate.Logger(ctx).Warn("cannot leave a queue; the slot becomes free when the queue next checks its runs", "queue", ticket.Queue, "error", err)
	}
}
