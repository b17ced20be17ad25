package drive

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// A run started by a step may replace an earlier one: as another attempt of the call, or because a reprocess
// repeats the call. It reads the results of completed steps from the earlier runs and does not repeat these steps.

// recallTime bounds a query of earlier runs, recallTries how often it is sent.
const (
	recallTime  = 2 * time.Minute
	recallTries = 10
)

// ToRecall returns an activity that queries earlier runs, for Send.
func ToRecall(name, summary string) gate.Recipient {
	to := gate.ToTool(name, recallTime, summary)
	to.Tries = recallTries
	return to
}

// earlierRuns returns the runs that may have made an attempt's call before: earlier attempts of the same request,
// and the earlier runs that this run replaces. It is nil if there are none.
func (d *Driver) earlierRuns(task protocol.Task, nesting *call.Nesting, in interpreter.ToolInput) *interpreter.Recall {
	recall := &interpreter.Recall{Key: in.OperationKey, Runs: nesting.Before}
	first := in.Attempt - min(d.Call.View().RequestAttempts, interpreter.MaxEarlier)
	for attempt := in.Attempt - 1; attempt >= max(first, 1); attempt-- {
		before := in
		before.Attempt = attempt
		recall.Attempts = append(recall.Attempts, protocol.PlayID(task, before))
	}
	if len(recall.Runs) > 0 {
		recall.Suffix = fmt.Sprintf("/%s#%d%s!", task.Step, task.Visit, protocol.IndexSuffix(in))
	}
	if len(recall.Attempts)+len(recall.Runs) == 0 {
		return nil
	}
	return recall
}
