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
//   - queued: it waits for its turn under its concurrency key, or all of it that is open does;
//   - awaiting: an attempt of a step awaits its answer, or a loop whose attempts are answered from
//     outside is running, which sends no signal for each of its iterations;
//   - retry_pending: all that is open waits for a retry, for at least shownWait each;
//   - running: all other runs.
//
// So an attempt costs two events at most, and none where it waits for less than shownWait. What
// waits in a child workflow is known from its reports (wait_report.go).

// shownWait is the shortest wait for a retry that changes the status of a run.
const shownWait = 30 * time.Second

// openWaits adds up what is open of a workflow, and what of it waits.
type openWaits struct {
	open  int
	of    map[interpreter.Status]int
	until time.Time // when the first wait for a retry is over; zero where people decide about all
	// expires is when the first of those that children have reported is over.
	expires time.Time
	// reported says that a child has reported a wait, held that something is paused here, and
	// fresh that a wait without an end may have just begun.
	reported, held, fresh bool
}

// add adds something that is open, and until when it waits for a retry.
func (w *openWaits) add(status interpreter.Status, until time.Time) {
	if w.of == nil {
		w.of = map[interpreter.Status]int{}
	}
	w.open++
	w.of[status]++
	if status == interpreter.RetryPending {
		w.until = interpreter.Sooner(w.until, until)
	}
	if status != interpreter.Running && until.IsZero() {
		w.fresh = true
	}
}

// addReport adds what a child has reported.
func (w *openWaits) addReport(report waitReport) {
	fresh := w.fresh
	w.add(report.Status, report.Until)
	w.fresh, w.reported, w.expires = fresh, true, interpreter.Sooner(w.expires, report.Until)
}

// status is that of a workflow of which this is open.
func (w *openWaits) status() interpreter.Status {
	paused, queued, waiting := w.of[interpreter.Paused], w.of[interpreter.Queued], w.of[interpreter.RetryPending]
	switch {
	case w.open == 0:
		return interpreter.Running
	case w.of[interpreter.Awaiting] > 0:
		return interpreter.Awaiting
	case paused == w.open:
		return interpreter.Paused
	case queued == w.open:
		return interpreter.Queued
	case paused+queued+waiting == w.open:
		return interpreter.RetryPending
	}
	return interpreter.Running
}

// report is that of the status.
func (w *openWaits) report() waitReport {
	report := waitReport{Status: w.status()}
	if report.Status == interpreter.RetryPending {
		report.Until = w.until
	}
	return report
}

// publishOpen publishes the status of a run that has not ended, where it has changed, and reports
// it to the parent run. The control is the one that the run is about to have.
func (r *run) publishOpen(ctx workflow.Context, control interpreter.Control) {
	if ctx.Err() != nil || r.Failure != nil || r.Published.Ended() {
		return // another status follows at once
	}
	waits := r.openWaits(ctx, control)
	if status := waits.status(); status != r.Published && (r.Published != "" || status != interpreter.Running) {
		r.publish(ctx, status)
	}
	r.watchReports(ctx, waits)
	if len(r.controls.parents) > 0 {
		r.controls.report(ctx, waits, shortestReported(ctx, r.startedAt()))
	}
}

// openWaits adds up what is open of a run that has not ended.
func (r *run) openWaits(ctx workflow.Context, control interpreter.Control) (waits openWaits) {
	switch {
	case control.Paused:
		waits.add(interpreter.Paused, time.Time{})
		return waits
	case r.Ticket != nil && r.Ticket.State == queue.Queued:
		waits.add(interpreter.Queued, time.Time{})
		return waits
	case r.moving != nil:
		waits.add(interpreter.RetryPending, time.Time{})
		return waits
	}
	for _, record := range r.records {
		if record.EndedAt.IsZero() {
			r.addVisit(ctx, &waits, record, control)
		}
	}
	return waits
}

// addVisit adds a visit of a step that has not ended.
func (r *run) addVisit(ctx workflow.Context, waits *openWaits, record *StepRecord, control interpreter.Control) {
	elsewhere := record.Loop != nil || record.Call != ""
	since := record.Since
	if since.IsZero() {
		since = workflow.Now(ctx)
	}
	switch due := record.NextRetryAt; {
	case elsewhere && control.IsPaused(record.Step):
		waits.add(interpreter.Paused, time.Time{})
	case elsewhere && awaitsAnswers(r.book.Step(record.Step)):
		waits.add(interpreter.Awaiting, time.Time{})
	case record.Status == interpreter.Running:
		waits.addChild(ctx, r.controls, r.childOf(record))
	case record.Status != interpreter.RetryPending:
		waits.add(record.Status, time.Time{})
	case !due.IsZero() && due.Sub(since) < shownWait:
		waits.add(interpreter.Running, time.Time{})
	default: // without a time people decide
		waits.add(interpreter.RetryPending, due)
	}
}

// childOf is the workflow ID of the child in which a visit continues, "" for none.
func (r *run) childOf(record *StepRecord) string {
	switch {
	case record.Loop != nil:
		return record.Loop.WorkflowID
	case record.Call != "":
		return record.Call
	}
	return record.Child
}

// watchReports has the status published again once the first wait is over that a child has
// reported: the child sends no signal then.
func (r *run) watchReports(ctx workflow.Context, waits openWaits) {
	expires := waits.expires
	if waits.status() != interpreter.RetryPending {
		expires = time.Time{}
	}
	if expires.Equal(r.reportsUntil) {
		return
	}
	if r.reportsUntil = expires; r.dropTimer != nil {
		r.dropTimer()
		r.dropTimer = nil
	}
	if expires.IsZero() {
		return
	}
	r.dropTimer = after(ctx, expires.Sub(workflow.Now(ctx)), "until the first retry is due", func(ctx workflow.Context) {
		if r.reportsUntil.Equal(expires) {
			r.reportsUntil, r.dropTimer = time.Time{}, nil
			r.describe(ctx)
		}
	})
}

// after does something once a time has passed, unless drop is called before. The summary says in
// Temporal's UI what the timer is for.
func after(ctx workflow.Context, wait time.Duration, summary string, do func(workflow.Context)) (drop workflow.CancelFunc) {
	timed, drop := workflow.WithCancel(ctx)
	workflow.Go(timed, func(ctx workflow.Context) {
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: summary}).Get(ctx, nil) == nil {
			do(ctx)
		}
	})
	return drop
}
