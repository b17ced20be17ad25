package drive

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

const (
	// timeoutSlack is the time that an activity has beyond the time limit that its tool enforces.
	timeoutSlack = 15 * time.Second
	// maxTurnWait bounds the wait of an attempt for its rate limit slot within its activity, before the time limit
	// of the tool begins. It is generous, because longer waits happen in the workflow.
	maxTurnWait = 10 * time.Minute
)

// storeSlack returns how long an attempt may wait for the payload store, before and after it.
func storeSlack(ctx workflow.Context) time.Duration {
	if gate.OutboxOf(ctx).Limits.OffloadAbove == 0 {
		return 0
	}
	return 2*interpreter.StorePatience + time.Minute
}

// runTool runs a tool once.
func runTool(ctx workflow.Context, input interpreter.ToolInput) interpreter.Outcome {
	limit := input.Timeout() + timeoutSlack + storeSlack(ctx)
	if input.RateLimit != nil {
		limit += maxTurnWait
	}
	controls := control.ControlsOf(ctx)
	input.ControlID, input.ControlVersion = controls.Run, controls.Version
	input.Parents = (&call.Nesting{Parents: controls.Parents}).BriefParents()
	to := gate.ToTool(input.ActivityName(), limit, attemptSummary(input))
	result, err := gate.Send[interpreter.ToolResult](ctx, to, input, "the request of step "+input.Step)
	switch {
	case err == nil:
		return result.Outcome()
	case ctx.Err() != nil && protocol.IsTimeout(err): // after a cancel, a lost worker's activity is not delivered again
		return interpreter.Outcome{Err: protocol.CancelledError()}
	}
	return interpreter.Outcome{Err: protocol.AttemptError(err)}
}

// attemptSummary returns the text shown beside the activity in Temporal's UI.
func attemptSummary(input interpreter.ToolInput) string {
	name := input.Step
	if input.Place != "" {
		name = input.Place
	}
	return fmt.Sprintf("%s page %d attempt %d", gate.WithIndex(name, input.Index), input.Page, input.Attempt)
}

// maxDriveTime bounds an activity that hosts calls. It is far longer than these usually take, and missing
// heartbeats reveal a lost worker much earlier.
const maxDriveTime = 6 * time.Hour

// ActivityHost drives calls in an activity that carries out several commands at once.
type ActivityHost struct {
	Task     protocol.Task
	Snapshot call.Snapshot
	// HasSiblings says that the workflow makes several calls.
	HasSiblings bool
	// MostPages returns a bound on the pages that the next activity fetches; nil for none.
	MostPages func() int
	// lost says that the last activity has not reported its progress.
	lost bool
}

// forgetTimeout bounds the deletion of ledger entries.
const forgetTimeout = 5 * time.Second

// ForgetNotes deletes the ledger entries of calls that have ended: their results are in history now, so no call
// continues from an entry any more. It costs one event.
func ForgetNotes(ctx workflow.Context, task protocol.Task, noted call.LedgerUse, calls ...call.Snapshot) {
	if noted == call.NotNoted {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a call may have ended by a cancel
	input := call.ForgetInput{Task: task, Calls: calls, Again: noted == call.NotedAgain}
	to := gate.ToLocal(interpreter.ForgetActivity, forgetTimeout, "notes of "+task.Step)
	if _, err := gate.Send[struct{}](ctx, to, input, "the calls that have ended"); err != nil {
		gate.Logger(ctx).Warn("cannot delete entries of ledgers; they are deleted when they are old", "error", err)
	}
}

// HostCalls drives calls with DriveActivity and applies its output; a cancelled or failed activity also reports its
// progress. further says whether any call has advanced. Without a report the output has no calls.
func HostCalls(
	ctx workflow.Context, input call.DriveInput, calls []*call.Call, summary string,
) (output call.DriveOutput, further bool) {
	for at, call := range calls {
		input.Calls[at].State = call.View().SnapshotFor(input.Pages)
	}
	controls := control.ControlsOf(ctx)
	input.ControlID, input.ControlVersion = controls.Run, controls.Version
	input.Task = controls.WithControls(input.Task)
	to := gate.ToHost(call.DriveActivity, maxDriveTime, summary)
	output, err := gate.Send[call.DriveOutput](ctx, to, hostInput{input}, "the input of "+summary)
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

// LoadStep compiles a task's playbook and returns it with the task's step.
func LoadStep(task protocol.Task) (*playbook.Playbook, *playbook.Step, error) {
	book, step, err := task.LoadStep()
	if err != nil {
		return nil, nil, gate.InvalidError(err)
	}
	return book, step, nil
}

// hostInput is the input of an activity that hosts calls, in the form in which Send can separate the script.
type hostInput struct{ call.DriveInput }

// SplitScript separates the script of the task, which is sent as an argument of its own.
func (h hostInput) SplitScript() (any, call.Script) {
	task, script := h.Task.SplitScript()
	h.Task = task
	return h.DriveInput, script
}
