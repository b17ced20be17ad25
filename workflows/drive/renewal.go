package drive

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
)

// ChildAfter is the number of events that a call may add to the run's history before it continues in a child
// workflow. An attempt adds six, with a wait eleven; pages fetched by one activity far fewer.
const ChildAfter = 900

const (
	// snapshotFactor bounds the cost of continuing as new with a large state: the history must be this many times
	// larger than the state.
	snapshotFactor = 4
	// FullestHistory is the size in bytes at which a call continues as new in any case, or fails if it cannot.
	// Temporal ends a workflow at 50 MB.
	FullestHistory = 40_000_000
)

// Renewal decides when calls continue as new.
type Renewal struct {
	After int // number of events after which they do; 0 means that of a long history
	Began int // length of the history when they began
	again int // size of the history at which the next check is made
}

// IsDue reports whether the calls should continue in another history.
func (r *Renewal) IsDue(ctx workflow.Context, calls ...*call.Call) bool {
	info := workflow.GetInfo(ctx)
	length, size := info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()
	switch {
	case r.After > 0 && length-r.Began > r.After || size > FullestHistory:
		return true
	case !gate.HistoryIsLong(ctx) || size < r.again:
		return false
	}
	limits, state := gate.OutboxOf(ctx).Limits, 0
	for _, call := range calls {
		if !call.Finished() {
			state += interpreter.EncodedSize(call.View().Snapshot())
		}
	}
	if state > limits.PayloadCap() {
		return false // the state shrinks once the sinks of its pages have written
	}
	if length <= gate.LongHistory && size > gate.LargeHistory {
		r.again = snapshotFactor * limits.InlineSize(state)
	}
	return size >= r.again
}

// RenewLater postpones the next check until the history has grown by the size of a large one.
func (r *Renewal) RenewLater(ctx workflow.Context) {
	r.again = workflow.GetInfo(ctx).GetCurrentHistorySize() + gate.LargeHistory
}

// MetaSoFar returns what is known about a call that was lost with its child workflow.
func MetaSoFar(ctx workflow.Context, call *call.Call) interpreter.CallMeta {
	view := call.View()
	return interpreter.CallMeta{Attempts: view.Attempts, Pages: view.Pages, StartedAt: view.StartedAt, EndedAt: workflow.Now(ctx)}
}
