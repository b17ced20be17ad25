package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// A workflow continues as new beyond these, in events and bytes. Running work still
// ends within Temporal's own suggestion of 4,096 events and 4 MB.
const (
	longHistory  = interpreter.LongHistory
	largeHistory = interpreter.LargeHistory
	// manyUpdates is how many commands and answers a history accepts before it counts
	// as long. Temporal refuses more than 2,000.
	manyUpdates = 500
)

// historyIsLong reports whether a workflow should continue as new. Temporal also
// suggests it of a workflow that has nearly had the updates that it may have.
func historyIsLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if c, steered := ctx.Value(controlsKey{}).(*controls); steered && c.updates > manyUpdates {
		return true
	}
	return info.GetCurrentHistoryLength() > longHistory || info.GetCurrentHistorySize() > largeHistory || info.GetContinueAsNewSuggested()
}
