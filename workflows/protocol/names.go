// Package protocol has what workflows and their clients share: names of workflows, queries, updates and
// signals, their inputs and results, and the IDs by which children are found. All of it is part of histories: names
// and JSON never change.
package protocol

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// Names under which workflows and queries are registered. They are part of
// every history, so they never change.
const (
	PlaybookWorkflowName = "PlaybookWorkflow"
	LoopWorkflowName     = "LoopWorkflow"
	CallsWorkflowName    = "CallsWorkflow"

	// ProgressQuery answers with a Progress.
	ProgressQuery = "progress"

	// DefaultTaskQueue is polled by workers without another setting.
	DefaultTaskQueue = "reprise"
)

// Search attributes of a run. They are set only where the starter has made
// sure that the namespace knows them.
const (
	StatusAttribute   = "RepriseStatus"
	PlaybookAttribute = "ReprisePlaybook"
	// DeadLettersAttribute counts the iterations that failed.
	DeadLettersAttribute = "RepriseDeadLetters"
	// NextRetryAttribute is the time of the first retry of a step's own call that is due,
	// updated only together with other attributes, so that it costs no event of its own.
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

// ExpectMemo is the memo that has in how many seconds a run is expected to end, as its playbook says. Runs without an
// expectation have none.
const ExpectMemo = "expect_within"

// RowsMemo is the memo of a run with an interpreter.RowTotals of its steps that have ended. It is written when the run ends, and at
// most once a minute before; never where nothing was counted.
const RowsMemo = "rows"

// TriggersMemo is the memo that says who triggered runs of a schedule: an interpreter.Said for each time of a
// trigger, under TriggerKey. It is in the memo of the schedule's action, so that a run has it from its start.
// A run was triggered if its ScheduledAttribute is such a time.
const TriggersMemo = "triggers"

// TriggerKey is the key of a time in TriggersMemo.
func TriggerKey(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// ScheduledAttribute is the search attribute in which Temporal's schedules name the
// time that they start a workflow for, without jitter.
const ScheduledAttribute = "TemporalScheduledStartTime"

// ScheduleAttribute is the search attribute in which Temporal's schedules name themselves.
const ScheduleAttribute = "TemporalScheduledById"

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

// PartitionRefused is the type of the failure if there is no room for a note.
const PartitionRefused = "partition_refused"

// StateRefused is the type of the failure of a change that a person may not make.
const StateRefused = "state_refused"
