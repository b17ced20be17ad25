package protocol

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
)

// RunState is the state with which a run continues as new; kept in workflow history. Each part of a run owns one of
// the embedded structs, whose fields are flat in the JSON.
type RunState struct {
	RunFrame
	RunPath
	RunStatus
	RunEarlier
	RunNotices
	RunQueues
	RunPartitions
	RunMoves
	Control interpreter.Control `json:"control,omitzero"`
	// Answered are the latest accepted answers, by which a repeated answer is recognised.
	Answered []AcceptedAnswer `json:"answered,omitempty"`
	// Asked are the latest questions to people.
	Asked []AskedQuestion `json:"asked,omitempty"`
	// Reported is the last report to the parent workflow.
	Reported WaitReport `json:"reported,omitzero"`
	// LongestReported is as in CallsInput.
	LongestReported time.Duration `json:"longest_reported,omitempty"`
}

// RunFrame is what all parts of a run share.
type RunFrame struct {
	// First is the run ID of the first history of the chain, as the server knows it.
	First  string                `json:"first"`
	Run    interpreter.RunInfo   `json:"run"`
	Limits interpreter.RunLimits `json:"limits,omitzero"`
	// Files are the playbooks from the worker's folder that the run names, as found by the validation.
	Files map[string]string `json:"files,omitempty"`
	// Data has the workload, vars and results of steps, which expressions read.
	Data     interpreter.Data `json:"data"`
	Warnings []string         `json:"warnings,omitempty"`
	// ValidationWarnings are the warnings of the validation when the run began.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// Failure is the failure of the run. For a reprocess it is the failure of the first loop that failed.
	Failure *interpreter.ErrorObject `json:"failure,omitempty"`
	// StartedAt is when a reprocess started. It is zero for other runs, which started at Run.StartedAt.
	StartedAt time.Time `json:"started_at,omitzero"`
}

// RunPath is the progress of a run through its steps.
type RunPath struct {
	// Sinks says which connections of sinks a worker had when the run began; nil if none were checked.
	Sinks   *interpreter.SinkCheck `json:"sinks,omitempty"`
	Routing interpreter.Routing    `json:"routing"`
	// Last is the result of the last ended step that has a tool, which is the result of a run without `output`.
	Last    expression.Value `json:"last,omitzero"`
	Partial bool             `json:"partial,omitempty"`
	// Reprocessed counts the loops of a reprocess that have ended.
	Reprocessed int `json:"reprocessed,omitempty"`
}

// RunStatus is the displayed status of a run.
type RunStatus struct {
	Records []StepRecord `json:"records,omitempty"`
	// DeadLetters counts the iterations that failed.
	DeadLetters int `json:"dead_letters,omitempty"`
	// Rows sums up what the ended steps of this run and its child runs did to data; nil if nothing was counted.
	// ShownRows is when RowsMemo was last written, zero for never.
	Rows      *interpreter.Rows `json:"rows,omitempty"`
	ShownRows time.Time         `json:"shown_rows,omitzero"`
	// Published is the status that was last written to StatusAttribute, "" before the first; only changes are
	// written.
	Published interpreter.Status `json:"published,omitempty"`
}

// RunEarlier is what a run stores for later runs that replace it, and what it knows of runs that it replaces.
type RunEarlier struct {
	// Work holds the results of calls that a later run in place of this one can reuse, including results that it
	// has reused itself. Earlier are the workflow IDs of the runs that it replaces, latest first.
	Work    interpreter.EarlierWork `json:"kept,omitzero"`
	Earlier []string                `json:"earlier,omitempty"`
}

// RunNotices records which notices of a run have been sent.
type RunNotices struct {
	// Notified counts the events that notices have reported, so that each gets a different operation key. Late says
	// that the run has taken longer than expected.
	Notified int  `json:"notified,omitempty"`
	Late     bool `json:"late,omitempty"`
	// Unsent are the notices to be sent in the next history.
	Unsent []UnsentNotice `json:"unsent,omitempty"`
}

// RunQueues is the position of the run in queues.
type RunQueues struct {
	// Ticket is the position of the run in the queue of its concurrency key; nil without a key.
	Ticket *queue.Ticket `json:"ticket,omitempty"`
}

// RunPartitions is what a run has recorded and claimed in the ledger of partitions.
type RunPartitions struct {
	// Identity identifies the playbook that the run's partition belongs to; "" for a run without one. Noted says
	// that the ledger has a record of the run.
	Identity string `json:"identity,omitempty"`
	Noted    bool   `json:"noted,omitempty"`
	// Claimed says that a backfill has claimed its partitions, and Conflict why it did not get them.
	Claimed  bool                `json:"claimed,omitempty"`
	Conflict *partition.Conflict `json:"conflict,omitempty"`
}

// RunMoves is what a run does to states at its end.
type RunMoves struct {
	// Pending are the moves of states that are made if the run completes, and dropped otherwise.
	Pending []PendingState `json:"pending,omitempty"`
}
