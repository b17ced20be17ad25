package control

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// reportedShare limits the reports of a long run: a wait is reported only if it lasts at least 1/reportedShare of
// the age of the run.
const reportedShare = 100

// reportGrowth limits the reports of children that have siblings: after one, a wait is reported only if it is that many
// times longer. Each report is an event of the parent's history, and hundreds of children that poll each minute would
// fill it: Temporal terminates a workflow with 51,200 events, and accepts 10,000 signals.
const reportGrowth = 8

// ShortestReported returns the shortest wait that is reported, for a run that started at began.
func ShortestReported(ctx workflow.Context, began time.Time) time.Duration {
	return max(MinShownWait, workflow.Now(ctx).Sub(began)/reportedShare)
}

// AddChild adds an open child, with the status from its last report.
func (w *OpenWaits) AddChild(ctx workflow.Context, controls *Controls, id string) {
	if report := controls.Reports[id]; report.StillWaits(workflow.Now(ctx)) {
		w.addReport(report)
		return
	}
	w.AddWork(interpreter.Running, time.Time{})
}

// ListenForReports records the reports of children. changed is called after each.
func (c *Controls) ListenForReports(ctx workflow.Context, changed func(workflow.Context)) {
	c.changed = changed
	gate.HandleSignal(ctx, protocol.WaitsSignal, func(ctx workflow.Context, report protocol.WaitReport) {
		for _, child := range c.Children {
			if child.ID == report.From {
				c.Reports[report.From] = report
				changed(ctx)
				return
			}
		}
	})
}

// ReportWaits sends the open work of this workflow to the parent workflow if it has changed; waits shorter than shortest
// are not reported.
func (c *Controls) ReportWaits(ctx workflow.Context, waits OpenWaits, shortest time.Duration) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || ctx.Err() != nil {
		return
	}
	next, now := waits.waitReport(), workflow.Now(ctx)
	if c.HasSiblings && !next.Until.IsZero() {
		shortest = max(shortest, c.LongestReported*reportGrowth)
	}
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
	if next.Status == "" && !c.Reported.StillWaits(now) {
		return
	}
	next.From = workflow.GetInfo(ctx).WorkflowExecution.ID
	c.Reported = next
	if c.HasSiblings && !next.Until.IsZero() {
		c.LongestReported = max(c.LongestReported, next.Until.Sub(now))
	}
	gate.SignalWorkflow(ctx, parent.ID, protocol.WaitsSignal, next)
}

// debounce is a status without a known end, which is reported only if it lasts for a while.
type debounce struct {
	status interpreter.Status
	due    time.Time
	drop   workflow.CancelFunc
}

// hasLasted reports whether a status has lasted for at least long. If not, the open work is checked again at the
// time when it may have.
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

// dropDebounce discards a status that has not lasted.
func (c *Controls) dropDebounce() {
	if c.debounce.drop != nil {
		c.debounce.drop()
	}
	c.debounce = debounce{}
}
