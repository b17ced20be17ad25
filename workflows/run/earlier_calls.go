package run

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/workflows/drive"
	"reprise/workflows/protocol"
)

// resumeCall continues the call that an earlier run had begun for a visit, if there is one.
func (e *earlier) resumeCall(ctx workflow.Context, record *protocol.StepRecord, task protocol.Task, call *call.Call) {
	at := e.callAt(record)
	if at < 0 {
		return
	}
	if by := e.Work.Calls[at].By; by != "" {
		warning := drive.ContinueCall(ctx, task, call, by)
		if ctx.Err() != nil || call.View().Stopped {
			return
		}
		if warning != "" {
			e.Warnings = append(e.Warnings, warning)
		}
	}
	e.Work.Calls = slices.Delete(slices.Clone(e.Work.Calls), at, at+1)
}

func (e *earlier) callAt(record *protocol.StepRecord) int {
	return slices.IndexFunc(e.Work.Calls, func(call interpreter.EarlierCall) bool {
		return call.Step == record.Step && call.Visit == record.Visit
	})
}

// openCalls returns the calls that have begun, in this run or earlier ones, and have not succeeded.
func (e *earlier) openCalls() []interpreter.EarlierCall {
	calls := slices.Clone(e.Work.Calls)
	for _, record := range e.records {
		step := e.book.Step(record.Step)
		if record.From != "" || step == nil || step.Action == nil || step.Loop != nil || e.stepAt(record) >= 0 || e.callAt(record) >= 0 {
			continue
		}
		open := interpreter.EarlierCall{Step: record.Step, Visit: record.Visit, By: record.Call}
		if call := e.callOf(record); open.By == "" && call != nil {
			if state := call.StoppedState(); state != nil && !state.CanStartAnew() {
				open.By = e.id
			}
		}
		calls = append(calls, open)
	}
	return calls
}

// stoppedCall answers the query of a run that continues a call of this one.
func (e *earlier) stoppedCall(question protocol.StoppedQuestion) (call.StoppedCall, error) {
	for _, record := range slices.Backward(e.records) {
		call := e.callOf(record)
		if call == nil || record.Step != question.Step || record.Visit != question.Visit {
			continue
		}
		return e.task(interpreter.Start{Step: e.book.Step(record.Step), Visit: record.Visit}).StoppedAs(call), nil
	}
	return call.StoppedCall{Key: e.Run.KeyPrefix()}, nil
}

// earlierLoops returns the workflow IDs of the loops of a visit in the runs that a reprocess replaces, latest
// first.
func (e *earlier) earlierLoops(record *protocol.StepRecord) []string {
	within := fmt.Sprintf("/%s#%d", record.Step, record.Visit)
	return lists.Map(e.replacedRuns(), func(run string) string { return protocol.SuffixedID(run, within) })
}
