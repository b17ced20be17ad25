// Package workflows is the Temporal side of Reprise: it has package interpreter decide,
// waits durably, and calls the activities by name. It holds no rule of the language.
package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/interpreter/ratelimit"
)

// Names under which workflows and queries are registered. They are part of
// every history, so they never change.
const (
	PlaybookWorkflowName = "PlaybookWorkflow"
	LoopWorkflowName     = "LoopWorkflow"
	CallsWorkflowName    = "CallsWorkflow"

	// ProgressQuery answers with a Progress.
	ProgressQuery = "progress"

	// DefaultTaskQueue is the one that workers poll by default.
	DefaultTaskQueue = "reprise"
)

// Search attributes of a run. They are set only where the starter has made
// sure that the namespace knows them.
const (
	StatusAttribute   = "RepriseStatus"
	PlaybookAttribute = "ReprisePlaybook"
	// DeadLettersAttribute counts the iterations that failed.
	DeadLettersAttribute = "RepriseDeadLetters"
	// NextRetryAttribute is when the first retry of a step's own call is due, as that was
	// at the last change of what else the attributes say. It costs no event of its own.
	NextRetryAttribute = "RepriseNextRetry"
	// OriginAttribute is the workflow ID of the run whose iterations a reprocess runs
	// again.
	OriginAttribute = "RepriseOrigin"
	// LabelsAttribute has the labels of the run's playbook, each as name=value.
	LabelsAttribute = "RepriseLabels"
)

// The memo of a run that a person has started on the page of runs: who did it, and why.
const (
	StartedByMemo   = "started_by"
	StartReasonMemo = "reason"
)

// TriggersMemo is the memo in which the runs of a schedule have who triggered it: an interpreter.Said for
// each time of a trigger, as TriggerKey has it. It is the memo of the schedule's action, so that a run has it
// from its start. The run whose ScheduledAttribute is such a time was triggered.
const TriggersMemo = "triggers"

// TriggerKey is the key of a time in TriggersMemo.
func TriggerKey(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// ScheduledAttribute is the search attribute in which Temporal's schedules name the
// time that they start a workflow for, without jitter.
const ScheduledAttribute = "TemporalScheduledStartTime"

// SearchAttributes are the types of all of them.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		StatusAttribute:      enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		PlaybookAttribute:    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		DeadLettersAttribute: enumspb.INDEXED_VALUE_TYPE_INT,
		NextRetryAttribute:   enumspb.INDEXED_VALUE_TYPE_DATETIME,
		OriginAttribute:      enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		LabelsAttribute:      enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	}
}

// Registry is what workflows are registered with: a worker, a replayer or the
// test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register binds the workflows to their names.
func Register(registry Registry) {
	registry.RegisterWorkflowWithOptions(PlaybookWorkflow, workflow.RegisterOptions{Name: PlaybookWorkflowName})
	registry.RegisterWorkflowWithOptions(childOnly(LoopWorkflow), workflow.RegisterOptions{Name: LoopWorkflowName})
	registry.RegisterWorkflowWithOptions(childOnly(CallsWorkflow), workflow.RegisterOptions{Name: CallsWorkflowName})
	registry.RegisterWorkflowWithOptions(ConcurrencyWorkflow, workflow.RegisterOptions{Name: queue.WorkflowName})
	registry.RegisterWorkflowWithOptions(MailboxWorkflow, workflow.RegisterOptions{Name: interpreter.MailboxWorkflow})
	registry.RegisterWorkflowWithOptions(PlanWorkflow, workflow.RegisterOptions{Name: interpreter.PlanWorkflow})
	registry.RegisterWorkflowWithOptions(RateLimitWorkflow, workflow.RegisterOptions{Name: ratelimit.WorkflowName})
	registry.RegisterWorkflowWithOptions(StateWorkflow, workflow.RegisterOptions{Name: incremental.WorkflowName})
	registry.RegisterWorkflowWithOptions(PartitionsWorkflow, workflow.RegisterOptions{Name: partition.WorkflowName})
	registry.RegisterWorkflowWithOptions(StateCommandWorkflow, workflow.RegisterOptions{Name: interpreter.StateCommandWorkflow})
	registry.RegisterWorkflowWithOptions(TreeWorkflow, workflow.RegisterOptions{Name: interpreter.TreeWorkflow})
}
