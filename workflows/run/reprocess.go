package run

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// reprocessLoops runs iterations of another run that failed or were cancelled, loop by loop, under that run's keys,
// so that nothing is written twice. Steps before and after the loops do not run. If a loop fails, the others still
// run.
func (r *run) reprocessLoops(ctx, branches workflow.Context) (*protocol.Result, error) {
	loops := r.input.Reprocess.Loops
	for r.Reprocessed < len(loops) && branches.Err() == nil {
		if next := r.continueAsNew(ctx); next != nil {
			return nil, next
		}
		again := loops[r.Reprocessed]
		r.Data.Vars, r.Data.Steps = again.Vars, again.Steps
		done := r.runStep(branches, interpreter.Start{Step: r.book.Step(again.Step), Visit: again.Visit, Args: again.Args.Data})
		r.recordLoopEnd(ctx, done)
		r.Reprocessed++
	}
	return r.finishRun(ctx)
}

// recordLoopEnd records the end of a loop of a reprocess.
func (r *run) recordLoopEnd(ctx workflow.Context, done stepEnd) {
	r.Last = done.result.Data
	r.addWarnings(done)
	r.warnAbsent("step "+done.start.Step.Name, interpreter.AbsentAtEnd(done.start.Step, done.result))
	r.Partial = r.Partial || done.record.Status == interpreter.Partial || r.isStrict(done.record)
	switch done.record.Status {
	case interpreter.Failed, interpreter.Cancelled:
		if r.Failure == nil && ctx.Err() == nil {
			r.Failure = done.result.Error
		}
	}
}
