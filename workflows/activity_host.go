package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// maxDriveTime bounds one activity that hosts calls. It is far more than their
// share of it takes, and heartbeats notice a lost worker long before.
const maxDriveTime = 6 * time.Hour

// activityHost runs calls in an activity that does many things at once.
type activityHost struct {
	task     Task
	snapshot call.Snapshot
	// lost says that the last activity has not reported what it has done.
	lost bool
}

// forgetTimeout bounds how long ledgers may take to forget.
const forgetTimeout = 5 * time.Second

// forget has ledgers drop their entries of calls that have ended: the results are in
// history now, and no call continues from an entry any more. It costs one event.
func forget(ctx workflow.Context, task Task, noted call.Noted, calls ...call.Snapshot) {
	if noted == call.NotNoted {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a call may have ended by a cancel
	input := call.ForgetInput{Task: task, Calls: calls, Again: noted == call.NotedAgain}
	to := toLocal(interpreter.ForgetActivity, forgetTimeout, "notes of "+task.Step)
	if _, err := send[struct{}](ctx, to, input, "the calls that have ended"); err != nil {
		logger(ctx).Warn("notes of ledgers stay until they are old", "error", err)
	}
}

// hostCalls has DriveActivity drive calls, and applies its output: a cancelled or
// failed activity reports what it has done too. further says that one of them has
// progressed. Without a report the output has no calls.
func hostCalls(
	ctx workflow.Context, input call.DriveInput, calls []*call.Call, summary string,
) (output call.DriveOutput, further bool) {
	for at, call := range calls {
		input.Calls[at].State = call.View().SnapshotFor(input.Pages)
	}
	controls := controlsOf(ctx)
	input.ControlID, input.ControlVersion = controls.run, controls.Version
	input.Task = controls.task(input.Task)
	to := toHost(call.DriveActivity, maxDriveTime, summary)
	output, err := send[call.DriveOutput](ctx, to, hosted{input}, "the input of "+summary)
	if err != nil || len(output.Calls) != len(calls) {
		return call.DriveOutput{}, false
	}
	for at, driven := range output.Calls {
		further = calls[at].Apply(driven, workflow.Now(ctx)) || further
		if driven.Outcome != nil {
			logFailed(ctx, calls[at])
		}
	}
	return output, further
}
