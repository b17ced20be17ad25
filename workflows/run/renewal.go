package run

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// callInChild continues a call in a child workflow because it has become too long for the run's own history.
func (r *run) callInChild(
	ctx workflow.Context, task protocol.Task, snapshot call.Snapshot, machine *call.Call, admitted int,
) interpreter.CallResult {
	id := protocol.ChildID(task, "")
	r.controls.ChildCalls[id] = true
	defer delete(r.controls.ChildCalls, id)
	input := protocol.CallsInput{Task: task, Calls: []call.Snapshot{snapshot}, Control: r.controls.OfStep(task.Step), Admitted: admitted}
	to := gate.ToChild(protocol.CallsWorkflowName, id, task.Step, task.Step+": continues after many attempts", actsOnStep(task.Step))
	to.Details = protocol.DescribeChild(r.book, task)
	output, err := gate.Send[protocol.CallsOutput](ctx, to, input, "the state of step "+task.Step)
	switch {
	case err == nil && len(output.Iterations) == 1:
		return output.Iterations[0].Result
	case err == nil, protocol.IsCancelled(err), protocol.IsOwnCancel(ctx, err):
		return machine.Cancel(workflow.Now(ctx))
	}
	return interpreter.CallResult{Status: interpreter.StatusError, Error: protocol.ChildError(err), Meta: drive.MetaSoFar(ctx, machine)}
}
