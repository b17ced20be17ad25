package drive

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// ContinueCall continues the call that the run by was making when it was stopped. If the request has changed, the
// call starts anew, with a warning. If the state cannot be read, the call fails, because its request may have been
// sent before.
func ContinueCall(ctx workflow.Context, task protocol.Task, machine *call.Call, by string) (warning string) {
	name := gate.WithIndex(task.Step, machine.Config().Index)
	question := call.StoppedInput{By: by, Key: task.Run.KeyPrefix(), Step: task.Step, Visit: task.Visit, Index: machine.Config().Index}
	stopped, err := gate.Send[call.StoppedCall](ctx, ToRecall(interpreter.StoppedActivity, name+": how far an earlier run has come"),
		question, "the name of an earlier run")
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		machine.Abandon(*protocol.NotContinuedError(fmt.Sprintf("step %s: an earlier run was stopped during its call, and the progress of that call cannot be read: %v",
			name, err)), workflow.Now(ctx))
		return ""
	case stopped.State == nil:
		return ""
	}
	if task.CanContinue(machine, stopped) {
		machine.ContinueFrom(stopped)
		return ""
	}
	if stopped.State.CanStartAnew() {
		return ""
	}
	return fmt.Sprintf("step %s: its request has changed since an earlier run was stopped during the call, which starts again with the same keys", name)
}

// recallLedgers applies the entries in ledgers that are newer than the state of a call.
func (c *ActivityHost) recallLedgers(ctx workflow.Context, machine *call.Call) {
	if len(machine.View().LedgerQueries(workflow.Now(ctx))) == 0 {
		machine.MarkRecalled()
		return
	}
	name := gate.WithIndex(c.Task.Step, c.Snapshot.Index)
	HostCalls(ctx, call.DriveInput{
		Task: c.Task, Calls: []call.Snapshot{c.Snapshot}, Width: 1, Pages: machine.View().CanDetachPages(), Recall: true,
	}, []*call.Call{machine}, name+": what an earlier run has written")
	if machine.View().Recalls && ctx.Err() == nil {
		machine.Abandon(*protocol.NotContinuedError("step " + name + ": an earlier run was stopped during its call, and its sinks do not say what was written"),
			workflow.Now(ctx))
	}
}

// BegunBetween returns the iterations in a range of indexes that an earlier loop had begun.
func BegunBetween(all []interpreter.BegunIteration, first, last int) []interpreter.BegunIteration {
	return lists.Filter(all, func(begun interpreter.BegunIteration) bool { return begun.Index >= first && begun.Index <= last })
}
