package gate

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// Bounds of a history, in events and bytes, beyond which a workflow continues as new. They leave running work room
// to end below the 4,096 events and 4 MB at which Temporal suggests to continue as new.
const (
	LongHistory  = interpreter.LongHistory
	LargeHistory = interpreter.LargeHistory
	// ManyUpdates is the number of commands and answers after which a history counts as long. Temporal rejects more
	// than 2,000.
	ManyUpdates = 500
)

// HistoryIsLong reports whether a workflow should continue as new: its history has many events, bytes or updates, or
// Temporal suggests it.
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
