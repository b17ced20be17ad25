package loop

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/control"
)

// reportWaits reports to the parent workflow when all calls of the batch that have begun are waiting. It reports
// nothing if the parent already knows why: the run is paused, the step awaits answers, or the slot was released.
func (b *batch) reportWaits(ctx workflow.Context) {
	waits := b.openWaits(ctx)
	if waits.Held || AwaitsAnswers(b.step) || b.slot.MayRelease() && !waits.Reported {
		waits = control.OpenWaits{}
	}
	control.ControlsOf(ctx).ReportWaits(ctx, waits, control.ShortestReported(ctx, b.input.Task.StartTime()))
}

// openWaits summarizes the calls that have begun.
func (b *batch) openWaits(ctx workflow.Context) (waits control.OpenWaits) {
	for i, call := range b.calls {
		if b.over[i] || call.Finished() {
			continue
		}
		switch status := call.View().Status(b.waits[i], b.until[i]); status.Status {
		case interpreter.Pending:
			if slices.Contains(b.hosted, i) {
				waits.AddWork(interpreter.Running, time.Time{})
			}
		case interpreter.Running:
			waits.AddChild(ctx, control.ControlsOf(ctx), b.children[i])
		default:
			waits.Held = waits.Held || status.Status == interpreter.Paused
			waits.AddWork(status.Status, status.NextRetryAt)
		}
	}
	return waits
}

// reportWaits reports to the parent workflow when all iterations that could run are waiting.
func (l *Loop) reportWaits(ctx workflow.Context) {
	if !l.controls.IsPaused(l.step.Name) && !AwaitsAnswers(l.step) {
		l.controls.ReportWaits(ctx, l.openWaits(ctx), control.ShortestReported(ctx, l.Input.Task.StartTime()))
	}
}

// openWaits summarizes the open batches and shards. A batch that has released its slot has sent no report.
func (l *Loop) openWaits(ctx workflow.Context) (waits control.OpenWaits) {
	for _, b := range l.batches {
		due := b.request.At
		if parked := !b.holds && !b.request.Now; parked && (due.IsZero() || due.After(workflow.Now(ctx))) {
			waits.AddWork(interpreter.RetryPending, due)
			continue
		}
		waits.AddChild(ctx, l.controls, b.id)
	}
	for _, p := range l.shards {
		waits.AddChild(ctx, l.controls, p.id)
	}
	if status := l.source.waitStatus(); status != nil {
		waits.AddWork(status.Status, status.NextRetryAt)
	}
	if l.startsMore() {
		waits.AddWork(interpreter.Running, time.Time{})
	}
	return waits
}

// startsMore reports whether the loop is about to start another batch.
func (l *Loop) startsMore() bool {
	return len(l.batches) > 0 && l.started == 0 && l.window.hasFree() && l.window.open < l.window.maxOpen()
}
