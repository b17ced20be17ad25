// Package workflows is the Temporal side of Reprise: it lets package interpreter decide, waits durably, and calls
// activities by name. It contains no rules of the playbook language.
// Each package below imports only packages before it: protocol, gate, keeper, control, drive, loop, run.
package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/login"
	"reprise/interpreter/mailbox"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/tree"
	"reprise/workflows/keeper"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
	"reprise/workflows/run"
)

// Registry is where workflows are registered: a worker, a replayer or the test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers the workflows under their names. On a worker that has a build, runs and their children stay with the build
// that has started them unless that worker says otherwise. All builds share the workflows that outlive runs, so these move to the
// current build with each task.
func Register(registry Registry) {
	registry.RegisterWorkflowWithOptions(run.PlaybookWorkflow, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	registry.RegisterWorkflowWithOptions(refuseTopLevel(loop.LoopWorkflow), workflow.RegisterOptions{Name: protocol.LoopWorkflowName})
	registry.RegisterWorkflowWithOptions(refuseTopLevel(loop.CallsWorkflow), workflow.RegisterOptions{Name: protocol.CallsWorkflowName})
	for name, shared := range map[string]any{
		queue.WorkflowName:               keeper.ConcurrencyWorkflow,
		login.WorkflowName:               keeper.LoginWorkflow,
		mailbox.WorkflowName:             keeper.MailboxWorkflow,
		interpreter.PlanWorkflow:         keeper.PlanWorkflow,
		ratelimit.WorkflowName:           keeper.RateLimitWorkflow,
		incremental.WorkflowName:         keeper.StateWorkflow,
		partition.WorkflowName:           keeper.PartitionsWorkflow,
		interpreter.StateCommandWorkflow: keeper.StateCommandWorkflow,
		tree.WorkflowName:                keeper.TreeWorkflow,
	} {
		registry.RegisterWorkflowWithOptions(shared, workflow.RegisterOptions{Name: name, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade})
	}
}
