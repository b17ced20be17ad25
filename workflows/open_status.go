package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/queue"
)

// The status of a run that has not ended is a search attribute, by which lists find runs that
// people hold or have to answer. Each change of it is an event of the run's history, so it changes
// only where a status begins that people care for:
//
//   - paused: people hold the run, or all of it that is open;
//   - queued: it waits for its turn under its concurrency key;
//   - awaiting: an attempt of a step awaits its answer, or a loop whose attempts are answered from
//     outside is running, which sends no signal for each of its iterations;
//   - retry_pending: all that is open waits for a retry, for at least shownWait each;
//   - running: all other runs, those among them whose loops wait or whose child runs are held. A
//     loop would have to signal each time that all of it begins to wait, or no longer does: about
//     ten events of two histories, twice for each element of a sequential loop.
//
// So an attempt costs two events at most, and none where it waits for less than shownWait.

// shownWait is the shortest wait for a retry that changes the status of a run.
const shownWait = 30 * time.Second

// publishOpen publishes the status of a run that has not ended, where it has changed. The control
// is the one that the run is about to have.
func (r *run) publishOpen(ctx workflow.Context, control interpreter.Control) {
	if ctx.Err() != nil || r.Failure != nil || r.Published.Ended() {
		return // another status follows at once
	}
	if status := r.openStatus(ctx, control); status != r.Published && (r.Published != "" || status != interpreter.Running) {
		r.publish(ctx, status)
	}
}

// openStatus is the status of a run that has not ended.
func (r *run) openStatus(ctx workflow.Context, control interpreter.Control) interpreter.Status {
	switch {
	case control.Paused:
		return interpreter.Paused
	case r.Ticket != nil && r.Ticket.State == queue.Queued:
		return interpreter.Queued
	}
	open := map[interpreter.Status]int{}
	count := 0
	for _, record := range r.records {
		if record.EndedAt.IsZero() {
			open[r.visitStatus(ctx, record, control)]++
			count++
		}
	}
	switch {
	case count == 0:
		return interpreter.Running
	case open[interpreter.Awaiting] > 0:
		return interpreter.Awaiting
	case open[interpreter.Paused] == count:
		return interpreter.Paused
	case open[interpreter.Paused]+open[interpreter.RetryPending] == count:
		return interpreter.RetryPending
	}
	return interpreter.Running
}

// visitStatus is what a visit of a step that has not ended makes of the status of its run.
func (r *run) visitStatus(ctx workflow.Context, record *StepRecord, control interpreter.Control) interpreter.Status {
	elsewhere := record.Loop != nil || record.Call != ""
	switch {
	case elsewhere && control.IsPaused(record.Step):
		return interpreter.Paused
	case elsewhere && awaitsAnswers(r.book.Step(record.Step)):
		return interpreter.Awaiting
	case record.Status != interpreter.RetryPending:
		return record.Status
	case record.NextRetryAt.IsZero(): // people decide
		return interpreter.RetryPending
	}
	since := record.Since
	if since.IsZero() {
		since = workflow.Now(ctx)
	}
	if record.NextRetryAt.Sub(since) < shownWait {
		return interpreter.Running
	}
	return interpreter.RetryPending
}
