package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// childAfter is by how many events the history of a run grows while a step makes its
// call, before the call continues in one of its own. An attempt takes six, with a wait
// eleven; pages that are fetched together take far fewer.
const childAfter = 900

const (
	// snapshotFactor bounds what it costs to pass a large state from history to
	// history: a call continues as new where its history is so many times larger than
	// its state.
	snapshotFactor = 4
	// fullestHistory is the size in bytes at which a call continues as new in any case,
	// or fails where it cannot. Temporal ends a workflow at 50 MB.
	fullestHistory = 40_000_000
)

// renewal decides when calls continue as new.
type renewal struct {
	after int // events from which they do; 0 is those of a long history
	began int // length of the history at which they began
	again int // size of the history from which the next check is made
}

func (r *renewal) due(ctx workflow.Context, calls ...*call.Call) bool {
	info := workflow.GetInfo(ctx)
	length, size := info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()
	switch {
	case r.after > 0 && length-r.began > r.after || size > fullestHistory:
		return true
	case !historyIsLong(ctx) || size < r.again:
		return false
	}
	limits, state := outboxOf(ctx).limits, 0
	for _, call := range calls {
		if !call.Finished() {
			state += interpreter.EncodedSize(call.View().Snapshot())
		}
	}
	if state > limits.PayloadCap() {
		return false // it is less once the sinks of their pages have written
	}
	if length <= longHistory && size > largeHistory {
		r.again = snapshotFactor * limits.InlineSize(state)
	}
	return size >= r.again
}

// later has the calls stay until the history has grown once more by what a large one
// has.
func (r *renewal) later(ctx workflow.Context) {
	r.again = workflow.GetInfo(ctx).GetCurrentHistorySize() + largeHistory
}

// callInChild has a child continue a call that has become too long for the run's own
// history.
func (r *run) callInChild(
	ctx workflow.Context, task Task, snapshot call.Snapshot, machine *call.Call, admitted int,
) interpreter.CallResult {
	id := childID(task, "")
	r.controls.childCalls[id] = true
	defer delete(r.controls.childCalls, id)
	input := CallsInput{Task: task, Calls: []call.Snapshot{snapshot}, Control: r.controls.Of(task.Step), Admitted: admitted}
	to := toChild(CallsWorkflowName, id, task.Step, task.Step+": continues after many attempts", actsOnStep(task.Step))
	to.details = describeChild(r.book, task)
	output, err := send[CallsOutput](ctx, to, input, "the state of step "+task.Step)
	switch {
	case err == nil && len(output.Iterations) == 1:
		return output.Iterations[0].Result
	case err == nil, isCancelled(err), abandoned(ctx, err):
		return machine.Cancel(workflow.Now(ctx))
	}
	return interpreter.CallResult{Status: interpreter.StatusError, Error: childError(err), Meta: metaSoFar(ctx, machine)}
}

func metaSoFar(ctx workflow.Context, call *call.Call) interpreter.CallMeta {
	view := call.View()
	return interpreter.CallMeta{Attempts: view.Attempts, Pages: view.Pages, StartedAt: view.StartedAt, EndedAt: workflow.Now(ctx)}
}
