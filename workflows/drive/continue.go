package drive

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// A run that a step has started may replace an earlier one: it is another attempt of
// the call, or a reprocess runs the call again. It reads the results of what has
// completed from the earlier runs, and its steps have them without a call.

// recallTime bounds the queries of earlier runs, recallTries how often they are sent.
const (
	recallTime  = 2 * time.Minute
	recallTries = 10
)

// ToRecall is an activity that queries earlier runs.
func ToRecall(name, summary string) gate.Recipient {
	to := gate.ToTool(name, recallTime, summary)
	to.Tries = recallTries
	return to
}

// earlierRuns names the runs that may have made an attempt's call before: earlier attempts of
// the same request, and those of the earlier runs that this run replaces. It is nil if there
// are none.
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
