package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// A child reports to its parent workflow that all of it waits, so that lists show that of the run.
// A report costs some twenty events of three histories, so it is sent only for what lasts: a wait
// that takes long when it begins, or one without an end that has lasted as long. When a wait is
// over at the time that was reported, nothing is sent: the parent knows the time.

// waitsSignal passes a report from a child to its parent workflow; kept in histories.
const waitsSignal = "waits"

// reportedShare is the part of the time that a run has taken which a wait has to take to be
// reported: it bounds the reports of a run, however long it takes.
const reportedShare = 100

// waitReport is what a child reports: the status of all of it that is open. Kept in workflow
// history.
type waitReport struct {
	From   string             `json:"from,omitempty"`   // workflow ID of the child
	Status interpreter.Status `json:"status,omitempty"` // "" is running
	// Until is when the first wait for a retry is over; zero where that is not known.
	Until time.Time `json:"until,omitzero"`
}

// waits reports whether the report still says that the child waits.
func (w waitReport) waits(now time.Time) bool {
	return w.Status != "" && w.Status != interpreter.Running && (w.Until.IsZero() || w.Until.After(now))
}

func (w waitReport) equal(other waitReport) bool {
	return w.Status == other.Status && w.Until.Equal(other.Until)
}

// shortestReported is how long a wait has to take to be reported by a run that began at a time.
func shortestReported(ctx workflow.Context, began time.Time) time.Duration {
	return max(shownWait, workflow.Now(ctx).Sub(began)/reportedShare)
}

// addChild adds a child that has not ended, by its last report.
func (w *openWaits) addChild(ctx workflow.Context, controls *controls, id string) {
	if report := controls.reports[id]; report.waits(workflow.Now(ctx)) {
		w.addReport(report)
		return
	}
	w.add(interpreter.Running, time.Time{})
}

// listenForReports records what children report. changed is called after each.
func (c *controls) listenForReports(ctx workflow.Context, changed func(workflow.Context)) {
	c.changed = changed
	onSignal(ctx, waitsSignal, func(ctx workflow.Context, report waitReport) {
		for _, child := range c.children {
			if child.id == report.From {
				c.reports[report.From] = report
				changed(ctx)
				return
			}
		}
	})
}

// report reports to the parent workflow what is open here, where that has changed and what waits
// takes at least so long.
func (c *controls) report(ctx workflow.Context, waits openWaits, shortest time.Duration) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || ctx.Err() != nil {
		return
	}
	next, now := waits.report(), workflow.Now(ctx)
	if next.equal(c.reported) {
		c.dropDebounce()
		return
	}
	switch {
	case next.Status == interpreter.Running, !next.Until.IsZero() && next.Until.Sub(now) < shortest:
		next = waitReport{}
	case next.Until.IsZero() && waits.fresh && !c.lasted(ctx, next.Status, shortest):
		return
	}
	c.dropDebounce()
	if next.Status == "" && !c.reported.waits(now) {
		return
	}
	next.From = workflow.GetInfo(ctx).WorkflowExecution.ID
	c.reported = next
	signal(ctx, parent.ID, waitsSignal, next)
}

// debounce is a status without a known end that is reported once it has lasted.
type debounce struct {
	status interpreter.Status
	due    time.Time
	drop   workflow.CancelFunc
}

// lasted reports whether a status has lasted so long. Where it has not, what is open is looked at
// again once it may have.
func (c *controls) lasted(ctx workflow.Context, status interpreter.Status, long time.Duration) bool {
	now := workflow.Now(ctx)
	if c.debounce.status == status {
		return !now.Before(c.debounce.due)
	}
	c.dropDebounce()
	drop := after(ctx, long, "until lists show that it waits", c.changed)
	c.debounce = debounce{status: status, due: now.Add(long), drop: drop}
	return false
}

// dropDebounce forgets a status that has not lasted.
func (c *controls) dropDebounce() {
	if c.debounce.drop != nil {
		c.debounce.drop()
	}
	c.debounce = debounce{}
}

// reportWaits reports to the loop, or the run, that all calls that have begun wait. The parent
// knows what the run holds, which steps await answers, and why a slot was released.
func (b *batch) reportWaits(ctx workflow.Context) {
	waits := b.openWaits(ctx)
	if waits.held || awaitsAnswers(b.step) || b.slot.releases() && !waits.reported {
		waits = openWaits{}
	}
	controlsOf(ctx).report(ctx, waits, shortestReported(ctx, b.input.Task.Began()))
}

// openWaits adds up the calls that have begun.
func (b *batch) openWaits(ctx workflow.Context) (waits openWaits) {
	for i, call := range b.calls {
		if b.over[i] || call.Finished() {
			continue
		}
		switch status := call.View().Status(b.waits[i], b.until[i]); status.Status {
		case interpreter.Pending:
			if slices.Contains(b.hosted, i) {
				waits.add(interpreter.Running, time.Time{})
			}
		case interpreter.Running:
			waits.addChild(ctx, controlsOf(ctx), b.children[i])
		default:
			waits.held = waits.held || status.Status == interpreter.Paused
			waits.add(status.Status, status.NextRetryAt)
		}
	}
	return waits
}

// reportWaits reports to the run, or to the loop that this is a shard of, that all iterations that
// may act wait.
func (l *loop) reportWaits(ctx workflow.Context) {
	if !l.controls.IsPaused(l.step.Name) && !awaitsAnswers(l.step) {
		l.controls.report(ctx, l.openWaits(ctx), shortestReported(ctx, l.input.Task.Began()))
	}
}

// openWaits adds up the batches and shards that are open. A batch that has released its slot has
// sent no report.
func (l *loop) openWaits(ctx workflow.Context) (waits openWaits) {
	for _, b := range l.batches {
		due := b.request.At
		if parked := !b.holds && !b.request.Now; parked && (due.IsZero() || due.After(workflow.Now(ctx))) {
			waits.add(interpreter.RetryPending, due)
			continue
		}
		waits.addChild(ctx, l.controls, b.id)
	}
	for _, p := range l.shards {
		waits.addChild(ctx, l.controls, p.id)
	}
	if l.startsMore() {
		waits.add(interpreter.Running, time.Time{})
	}
	return waits
}

// startsMore reports whether the loop is about to start another batch.
func (l *loop) startsMore() bool {
	return len(l.batches) > 0 && l.started == 0 && l.window.free() && l.window.open < l.window.maxOpen()
}
