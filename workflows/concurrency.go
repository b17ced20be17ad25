package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
)

// A run gets its turn under its concurrency key in three steps. It requests the turn
// from the workflow of the key, by an activity, because that workflow may have to be
// started. It waits until the workflow answers with a signal, which holds no worker and
// no activity. At its end it releases the turn. The workflow of the key may have been
// terminated with its whole state, so a run that waits for long requests its turn
// again.

const (
	// queueTimeout bounds an activity for a queue.
	queueTimeout = 8 * time.Second
	// turnRetry is how long a run waits before it requests its turn again, at first and
	// at most.
	turnRetry     = 2 * time.Minute
	mostTurnRetry = time.Hour
	// mostReleases is how often a run that ends has a terminated queue started again,
	// so that the next run gets its turn.
	mostReleases = 5
)

// acquireTurn returns when the run may begin, or is not to: because it failed, was
// cancelled or skipped. The error is the one with which it continues as new.
func (r *run) acquireTurn(ctx, branches workflow.Context) (next error) {
	r.listenToQueues(ctx)
	if r.book.Concurrency == nil {
		return nil
	}
	if r.Ticket == nil {
		name, err := queue.NameOf(r.book, interpreter.NewScope(r.book, r.Run, r.Data), budget(ctx))
		if err != nil {
			r.fail(interpreter.ExpressionFailure(r.book, "concurrency", err, workflow.Now(ctx)).Error)
			return nil
		}
		if failure := r.waitsForItself(name); failure != nil {
			r.fail(failure)
			return nil
		}
		r.Ticket = &queue.Ticket{Queue: name.ID(), Name: name, Since: workflow.GetInfo(ctx).WorkflowStartTime}
	}
	r.controls.awaitAnswers(ctx) // none may be due for long
	for wait := turnRetry; r.Ticket.Waits() && branches.Err() == nil; wait = min(2*wait, mostTurnRetry) {
		if next := r.renew(ctx); next != nil {
			return next
		}
		r.requestsTurn = false
		if err := r.requestTurn(branches); err != nil && branches.Err() == nil {
			r.fail(AttemptError(err))
			return nil
		}
		awaitDecision(branches, r.Ticket, wait, "is queued under its concurrency key", func() bool { return r.requestsTurn })
	}
	return nil
}

// waitsForItself is the failure of a run that can never get a turn: its parents, which
// wait for its end, have all turns. It is nil for other runs.
func (r *run) waitsForItself(name queue.Name) *interpreter.ErrorObject {
	if r.book.Concurrency.OnConflict == playbook.ConflictSkip {
		return nil
	}
	id, holders := name.ID(), []string{}
	for _, parent := range r.controls.parents {
		if parent.Queue == id {
			holders = append(holders, parent.Run)
		}
	}
	if len(holders) < r.book.Concurrency.Limit {
		return nil
	}
	return waitsForEver(fmt.Sprintf("the run waits for itself: %s, for which it runs, has the concurrency key %q until this run has ended; "+
		"give the playbook another key", strings.Join(holders, " and "), name.Key))
}

// waitsForEver is the failure of a run that would never get its turn, however often
// it is tried.
func waitsForEver(message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: message}
}

// awaitDecision waits until the queue of a ticket has decided or the request is to be
// repeated, for so long, or until ctx is cancelled. summary is that of the timer.
func awaitDecision(ctx workflow.Context, ticket *queue.Ticket, wait time.Duration, summary string, repeats func() bool) {
	if !ticket.Waits() {
		return
	}
	timed, stop := workflow.WithCancel(ctx)
	defer stop()
	over := workflow.NewTimerWithOptions(timed, wait, workflow.TimerOptions{Summary: summary})
	_ = workflow.Await(ctx, func() bool { return over.IsReady() || repeats() || !ticket.Waits() }) // an error is that of ctx
}

// requestTurn requests a turn, or repeats the request.
func (r *run) requestTurn(ctx workflow.Context) error {
	concurrency := r.book.Concurrency
	request := queue.Request{Member: r.member(ctx), Limit: concurrency.Limit, OnConflict: concurrency.OnConflict, Started: r.Ticket.Since}
	request.Known = r.Ticket.State
	for _, parent := range r.controls.parents {
		if parent.Queue != "" {
			request.Parents = append(request.Parents, queue.Holding{Run: parent.Run, Queue: parent.Queue})
		}
	}
	return sendToQueue(ctx, r.Ticket, toTool(queue.EnterActivity, queueTimeout, "requests its slot"), request)
}

// sendToQueue has a worker send a request to the queue of a ticket, whose workflow it starts
// where there is none.
func sendToQueue(ctx workflow.Context, ticket *queue.Ticket, to destination, request queue.Request) error {
	_, err := send[struct{}](ctx, to, queue.Enter{Name: ticket.Name, Request: request}, "the name of concurrency")
	return err
}

// member is the run as its queue knows it.
func (r *run) member(ctx workflow.Context) queue.Member {
	return queue.Member{WorkflowID: r.id, RunID: workflow.GetInfo(ctx).FirstRunID}
}

// listenToQueues applies the answers of queues, to the end of the run: a run that has its
// turn may be replaced.
func (r *run) listenToQueues(ctx workflow.Context) {
	onSignal(ctx, queue.DecisionSignal, func(ctx workflow.Context, answer queue.Decision) {
		switch {
		case answer.RunID != r.member(ctx).RunID:
		case answer.Visit != "":
			r.applyStateTurn(ctx, answer)
		case r.Ticket != nil:
			r.applyTurn(ctx, answer)
		}
	})
}

// applyTurn applies an answer of the queue.
func (r *run) applyTurn(ctx workflow.Context, answer queue.Decision) {
	waited := r.Ticket.State == queue.Queued
	if !r.Ticket.Apply(answer) {
		return
	}
	key := r.Ticket.Name.Key
	switch answer.State {
	case queue.Queued:
		r.showTicket(ctx, r.Ticket)
	case queue.Granted:
		if waited {
			r.showTicket(ctx, &queue.Ticket{})
		}
	case queue.Skipped:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the run was skipped: %s has the concurrency key %q (on_conflict: skip)", answer.By, key))
	case queue.Replaced: // the queue has the run cancelled too
		r.Warnings = append(r.Warnings, fmt.Sprintf("the run was cancelled: %s takes the concurrency key %q (on_conflict: cancel_running)", answer.By, key))
	case queue.Deadlocked:
		r.fail(waitsForEver(fmt.Sprintf("the run waits in a circle: under the concurrency key %q %s", key, answer.Why)))
	case queue.Full:
		r.fail(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
			Message: fmt.Sprintf("too many runs are queued under the concurrency key %q", key),
		})
	}
	r.describe(ctx)
}

// showTicket shows in lists of runs whether the run waits for its turn.
func (r *run) showTicket(ctx workflow.Context, ticket *queue.Ticket) {
	if err := workflow.UpsertMemo(ctx, map[string]any{queue.Memo: *ticket}); err != nil {
		logger(ctx).Warn("cannot write the memo", "error", err)
	}
	r.publishOpen(ctx, r.controls.Control)
}

// wasSkipped reports whether the run ended before it began, as its playbook requires or as another
// backfill runs its partitions.
func (r *run) wasSkipped() bool {
	return r.Conflict != nil || r.Ticket != nil && r.Ticket.State == queue.Skipped
}

// releaseTurn releases the run's turn, and returns when the server has the message: a
// message that a workflow has not sent when it ends is lost. A run that still waits
// uses the activity with which it has requested its turn: thousands may be cancelled at
// once, where only so many have a turn.
func (r *run) releaseTurn(ctx workflow.Context) {
	if r.Ticket != nil && r.Ticket.State != queue.Skipped {
		leaveQueue(ctx, r.Ticket, r.member(ctx))
	}
}

// leaveQueue has a run, or a visit of one, leave the queue of a ticket.
func leaveQueue(ctx workflow.Context, ticket *queue.Ticket, member queue.Member) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	request := queue.Request{Member: member, Leave: true}
	queued := ticket.Waits()
	var err error
	if !queued {
		err = signal(ctx, ticket.Queue, queue.RequestSignal, request).Get(ctx, nil)
	}
	if err != nil || queued {
		to := toTool(queue.EnterActivity, queueTimeout, "leaves the queue of "+source.Cut(ticket.Name.Describe(), mostText))
		to.tries = mostReleases
		err = sendToQueue(ctx, ticket, to, request)
	}
	if err != nil {
		logger(ctx).Warn("cannot leave a queue; the slot is free once the queue has checked", "queue", ticket.Queue, "error", err)
	}
}
