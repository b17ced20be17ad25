package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// maxDriveTime bounds one activity that hosts calls. It is far more than their
// share of it takes, and heartbeats notice a lost worker long before.
const maxDriveTime = 6 * time.Hour

// carrier takes a call to an activity that does many things at once.
type carrier struct {
	task    Task
	carried interpreter.Carried
	// lost says that the last activity has not said what it has done.
	lost bool
}

// turnPages has an activity fetch pages of the call until something else is
// due. It reports whether the call came further: a page that is too large to
// travel with others has to be fetched by an attempt of its own. The error is
// that of a cancelled ctx.
func (c *carrier) turnPages(ctx workflow.Context, call *interpreter.Call) (further bool, err error) {
	carried := c.carried
	state := call.Detach()
	carried.State = &state
	output := hostCalls(ctx, interpreter.DriveInput{
		Task: c.task, Calls: []interpreter.Carried{carried}, Width: 1, Pages: true,
	}, fmt.Sprintf("%s from page %d", indexed(c.task.Step, c.carried.Index), call.State.Successes+1))
	c.lost = len(output.Calls) != 1 || output.Calls[0].State == nil
	if !c.lost {
		call.Attach(output.Calls[0], workflow.Now(ctx))
		if output.Calls[0].Outcome != nil {
			logVerdict(ctx, call)
		}
	}
	// A cancelled activity has given its pages too.
	return call.Beyond(state), ctx.Err()
}

// forgetTimeout bounds how long ledgers may take to forget.
const forgetTimeout = 5 * time.Second

// forget has ledgers drop their notes of calls that have ended: what they gave is in
// history now, and nobody goes on from a note any more. It costs one event.
func forget(ctx workflow.Context, task Task, noted interpreter.Noted, calls ...interpreter.Carried) {
	if noted == interpreter.NotNoted {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a call may have ended by a cancel
	input := interpreter.ForgetInput{Task: task, Calls: calls, Again: noted == interpreter.NotedAgain}
	to := toDoor(interpreter.ForgetActivity, forgetTimeout, "notes of "+task.Step)
	if _, err := send[struct{}](ctx, to, input, "the calls that have ended"); err != nil {
		logger(ctx).Warn("notes of ledgers stay until they are old", "error", err)
	}
}

// hostCalls runs DriveActivity. What a cancelled or failed one has done comes back
// too; where nothing does, the output has no calls.
func hostCalls(ctx workflow.Context, input interpreter.DriveInput, summary string) interpreter.DriveOutput {
	controls := controlsOf(ctx)
	input.ControlID, input.ControlVersion = controls.run, controls.Version
	input.Task = controls.task(input.Task)
	to := toHost(interpreter.DriveActivity, maxDriveTime, summary)
	output, err := send[interpreter.DriveOutput](ctx, to, hosted{input}, "the input of "+summary)
	if err != nil || len(output.Calls) != len(input.Calls) {
		return interpreter.DriveOutput{}
	}
	return output
}
