// Package workflows is the Temporal side of Reprise: it lets package interpreter decide, waits durably, and calls
// activities by name. It contains no rules of the playbook language.
// || Each package below imports only packages before it: protocol, gate, keeper, control, drive, loop, run.
package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/login"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/interpreter/ratelimit"
	"reprise/workflows/keeper"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
	"reprise/workflows/run"
)

// Registry is where workflows are registered: a worker, a replayer or the test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers the workflows under their names.
func Register(registry Registry) {
	registry.RegisterWorkflowWithOptions(run.PlaybookWorkflow, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	registry.RegisterWorkflowWithOptions(childOnly(loop.LoopWorkflow), workflow.RegisterOptions{Name: protocol.LoopWorkflowName})
	registry.RegisterWorkflowWithOptions(childOnly(loop.CallsWorkflow), workflow.RegisterOptions{Name: protocol.CallsWorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.ConcurrencyWorkflow, workflow.RegisterOptions{Name: queue.WorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.LoginWorkflow, workflow.RegisterOptions{Name: login.WorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.MailboxWorkflow, workflow.RegisterOptions{Name: interpreter.MailboxWorkflow})
	registry.RegisterWorkflowWithOptions(keeper.PlanWorkflow, workflow.RegisterOptions{Name: interpreter.PlanWorkflow})
	registry.RegisterWorkflowWithOptions(keeper.RateLimitWorkflow, workflow.RegisterOptions{Name: ratelimit.WorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.StateWorkflow, workflow.RegisterOptions{Name: incremental.WorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.PartitionsWorkflow, workflow.RegisterOptions{Name: partition.WorkflowName})
	registry.RegisterWorkflowWithOptions(keeper.StateCommandWorkflow, workflow.RegisterOptions{Name: interpreter.StateCommandWorkflow})
	registry.RegisterWorkflowWithOptions(keeper.TreeWorkflow, workflow.RegisterOptions{Name: interpreter.TreeWorkflow})
}
