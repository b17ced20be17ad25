package gate

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// A workflow continues as new beyond these, in events and bytes. Running work still
// ends within Temporal's own suggestion of 4,096 events and 4 MB.
const (
	LongHistory  = interpreter.LongHistory
	LargeHistory = interpreter.LargeHistory
	// ManyUpdates is how many commands and answers a history accepts before it counts
	// as long. Temporal refuses more than 2,000.
	ManyUpdates = 500
)

// HistoryIsLong reports whether a workflow should continue as new: its history has many events, bytes or updates, or Temporal
// suggests it.
func HistoryIsLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if c := ChildrenOf(ctx); c != nil && c.AcceptedUpdates() > ManyUpdates {
		return true
	}
	return info.GetCurrentHistoryLength() > LongHistory || info.GetCurrentHistorySize() > LargeHistory || info.GetContinueAsNewSuggested()
}

const (
	// QueueTimeout bounds an activity that sends a request to the workflow of a queue.
	QueueTimeout = 8 * time.Second
)
