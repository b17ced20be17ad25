package control

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// reportedShare is the fraction of the run's age that a wait must last to be reported: it
// bounds the number of reports of a run of any length.
const reportedShare = 100

// ShortestReported is the duration from which a wait is reported, for a run that began at the
// given time.
func ShortestReported(ctx workflow.Context, began time.Time) time.Duration {
	return max(MinShownWait, workflow.Now(ctx).Sub(began)/reportedShare)
}

// AddChild adds a child that has not ended, by its last report.
func (w *OpenWaits) AddChild(ctx workflow.Context, controls *Controls, id string) {
	if report := controls.Reports[id]; report.Waits(workflow.Now(ctx)) {
		w.addReport(report)
		return
	}
	w.Add(interpreter.Running, time.Time{})
}

// ListenForReports records what children report. changed is called after each.
func (c *Controls) ListenForReports(ctx workflow.Context, changed func(workflow.Context)) {
	c.changed = changed
	gate.OnSignal(ctx, protocol.WaitsSignal, func(ctx workflow.Context, report protocol.WaitReport) {
		for _, child := range c.Children {
			if child.ID == report.From {
				c.Reports[report.From] = report
				changed(ctx)
				return
			}
		}
	})
}

// Report reports to the parent workflow what is open here, where that has changed and what waits
// takes at least so long.
func (c *Controls) Report(ctx workflow.Context, waits OpenWaits, shortest time.Duration) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || ctx.Err() != nil {
		return
	}
	next, now := waits.waitReport(), workflow.Now(ctx)
	if next.Equal(c.Reported) {
		c.dropDebounce()
		return
	}
	switch {
	case next.Status == interpreter.Running, !next.Until.IsZero() && next.Until.Sub(now) < shortest:
		next = protocol.WaitReport{}
	case next.Until.IsZero() && waits.fresh && !c.hasLasted(ctx, next.Status, shortest):
		return
	}
	c.dropDebounce()
	if next.Status == "" && !c.Reported.Waits(now) {
		return
	}
	next.From = workflow.GetInfo(ctx).WorkflowExecution.ID
	c.Reported = next
	gate.Signal(ctx, parent.ID, protocol.WaitsSignal, next)
}

// debounce is a status without a known end that is reported once it has lasted.
type debounce struct {
	status interpreter.Status
	due    time.Time
	drop   workflow.CancelFunc
}

// hasLasted reports whether a status has lasted so long. Where it has not, what is open is looked at
// again once it may have.
func (c *Controls) hasLasted(ctx workflow.Context, status interpreter.Status, long time.Duration) bool {
	now := workflow.Now(ctx)
	if c.debounce.status == status {
		return !now.Before(c.debounce.due)
	}
	c.dropDebounce()
	drop := gate.AfterWait(ctx, long, "until lists show that it waits", c.changed)
	c.debounce = debounce{status: status, due: now.Add(long), drop: drop}
	return false
}

// dropDebounce forgets a status that has not lasted.
func (c *Controls) dropDebounce() {
	if c.debounce.drop != nil {
		c.debounce.drop()
	}
	c.debounce = debounce{}
}
