// Package protocol has what workflows and their clients share: names of workflows, queries, updates and signals,
// their inputs and results, and the IDs by which children are found. All of it is part of histories, so names and
// JSON never change.
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

	// ProgressQuery returns a Progress.
	ProgressQuery = "progress"

	// DefaultTaskQueue is the task queue of workers for which none is configured.
	DefaultTaskQueue = "reprise"
)

// Search attributes of a run. They are set only if the starter has verified that the namespace has them.
const (
	StatusAttribute   = "RepriseStatus"
	PlaybookAttribute = "ReprisePlaybook"
	// DeadLettersAttribute counts the iterations that failed.
	DeadLettersAttribute = "RepriseDeadLetters"
	// NextRetryAttribute is the time of the first due retry of a step's own call. It is updated only together with
	// other attributes, so that it costs no extra event.
	NextRetryAttribute = "RepriseNextRetry"
	// OriginAttribute is the workflow ID of the run that a reprocess repeats.
	OriginAttribute = "RepriseOrigin"
	// LabelsAttribute has the labels of the run's playbook, in the form name=value.
	LabelsAttribute = "RepriseLabels"
)

// Memos of a run that a person started on the page of runs: who did it, and why.
const (
	StartedByMemo   = "started_by"
	StartReasonMemo = "reason"
)

// RequestMemo is the memo of a run that was started over HTTP: the caller and its request.
const RequestMemo = "reprise_request"

// ExpectMemo is the memo with the number of seconds in which a run should end, according to its playbook. Runs
// without an expectation have none.
const ExpectMemo = "expect_within"

// RowsMemo is the memo with an interpreter.RowTotals of the ended steps. It is written at most once a minute, and
// when the run ends; never if nothing was counted.
const RowsMemo = "rows"

// PartitionMemo is the memo with the key of the partition that a run was started for, by a backfill, a step or a person. Other runs have
// none: a run that chooses its partition by the time has it in its status.
const PartitionMemo = "partition"

// TriggersMemo is the memo that records who triggered runs of a schedule: an interpreter.Said for each trigger
// time, under TriggerKey. It is part of the memo of the schedule's action, so that a run has it from its start. A
// run was triggered if its ScheduledAttribute is such a time.
const TriggersMemo = "triggers"

// TriggerKey returns the key of a time in TriggersMemo.
func TriggerKey(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// ScheduledAttribute is the search attribute in which Temporal's schedules store the time for which they start a
// workflow, without jitter.
const ScheduledAttribute = "TemporalScheduledStartTime"

// ScheduleAttribute is the search attribute in which Temporal's schedules store their ID.
const ScheduleAttribute = "TemporalScheduledById"

// SearchAttributes returns the types of all search attributes that must be registered.
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

// PartitionRefused is the error type of a record of a partition for which there is no room.
const PartitionRefused = "partition_refused"

// StateRefused is the error type of a change of a state that a person may not make.
const StateRefused = "state_refused"
