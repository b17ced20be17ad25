package workflows

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
)

// Input starts a run. It is kept in workflow history and holds everything the
// run depends on: one generic workflow runs any playbook.
type Input struct {
	Name     string           `json:"name"`              // of the file, for messages
	Workload expression.Value `json:"workload,omitzero"` // laid over the playbook's own
	// Strict says that a failed iteration keeps the run from being completed, as
	// the playbook's own word does.
	Strict bool `json:"strict,omitempty"`
	// FullRefresh is that of RunInfo.
	FullRefresh []string `json:"full_refresh,omitempty"`
	// Partition is the key of the one that the run is about; "" for the newest that was complete
	// when the run was due or began.
	Partition string `json:"partition,omitempty"`
	// Claim is set for a backfill: the partitions that no other one runs meanwhile.
	Claim *partition.BackfillClaim `json:"claim,omitempty"`
	// Missing says that the run is a backfill of the partitions that are missing when it begins: the
	// validation finds them, and they become the keys of its workload and its Claim.
	Missing bool `json:"missing,omitempty"`
	// SearchAttributes says that the namespace knows StatusAttribute and
	// PlaybookAttribute.
	SearchAttributes bool `json:"search_attributes,omitempty"`
	// DeadLetters says that the namespace knows DeadLettersAttribute.
	DeadLetters bool `json:"dead_letters,omitempty"`
	// NextRetry says that the namespace knows NextRetryAttribute.
	NextRetry bool `json:"next_retry,omitempty"`
	// Called is set for a run that a step of another run has started.
	Called *Called `json:"called,omitempty"`
	// Reprocess is set for a run that runs iterations of another run again.
	Reprocess *Reprocess `json:"reprocess,omitempty"`
	// State is what the run continues with, when its history was long enough.
	State *RunState `json:"state,omitempty"`
	// Source is the playbook. It is the last, behind what people look for in Temporal's
	// UI.
	Source string `json:"source"`
	// Files are the playbooks that it names, by the names of their files: those that
	// the starter has read, or the parent run.
	Files map[string]string `json:"files,omitempty"`
}

// Called is the attempt of a parent run that has started a run; kept in workflow
// history.
type Called struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index,omitempty"`
	Page    int    `json:"page"`
	Attempt int    `json:"attempt"`
	// Depth is how many parent runs there are, and Parents are those that wait for this
	// one, the first one first.
	Depth   int                  `json:"depth"`
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Tree is the first run's, which bounds how many start.
	Tree interpreter.Tree `json:"tree,omitzero"`
	// ScheduledAt is that of the parent run.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// Key and Lap are those of RunInfo.
	Key string `json:"key"`
	Lap string `json:"lap,omitempty"`
	// Recall is set where earlier runs may have made the call.
	Recall *interpreter.Recall `json:"recall,omitempty"`
}

// Reprocess is what a run does in place of the playbook's graph: it runs
// iterations of another run that failed or were cancelled, under that run's keys.
// Kept in workflow history.
type Reprocess struct {
	// Origin is the run, and which of its reprocesses this is.
	Origin interpreter.RunInfo `json:"origin"`
	Loops  []ReprocessLoop     `json:"loops"`
}

// ReprocessLoop is those iterations of one visit of a step; kept in workflow
// history.
type ReprocessLoop struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // of the route that led there
	// Vars and Steps are the input of the origin's loop.
	Vars  expression.Value `json:"vars,omitzero"`
	Steps expression.Value `json:"steps,omitzero"`
	Chosen
	// Stopped says that some may have been stopped in an earlier run.
	Stopped  bool               `json:"stopped,omitempty"`
	Elements []expression.Value `json:"elements"`
}

// Chosen are the positions of elements that are a choice from a collection; kept in
// workflow history.
type Chosen struct {
	Indexes []int `json:"indexes"` // of each element, ascending
	Size    int   `json:"size"`    // of the collection
}

// RunState is everything with which a run continues as new; kept in workflow history.
type RunState struct {
	// First is the run ID of the first history of the chain, as the server knows it.
	First  string                `json:"first"`
	Run    interpreter.RunInfo   `json:"run"`
	Limits interpreter.RunLimits `json:"limits,omitzero"`
	// Files are the playbooks of the worker's folder that the run names, as the
	// validation found them.
	Files map[string]string `json:"files,omitempty"`
	// Sinks is what workers have said of the connections of sinks, nil for nothing.
	Sinks    *interpreter.SinkCheck `json:"sinks,omitempty"`
	Control  interpreter.Control    `json:"control,omitzero"`
	Data     interpreter.Data       `json:"data"`
	Routing  interpreter.Routing    `json:"routing"`
	Records  []StepRecord           `json:"records,omitempty"`
	Warnings []string               `json:"warnings,omitempty"`
	Last     expression.Value       `json:"last,omitzero"`
	Partial  bool                   `json:"partial,omitempty"`
	// DeadLetters counts the iterations that failed.
	DeadLetters int `json:"dead_letters,omitempty"`
	// Reprocessed counts the loops of a reprocess that have ended; Failure is that
	// of the first that failed.
	Reprocessed int                      `json:"reprocessed,omitempty"`
	Failure     *interpreter.ErrorObject `json:"failure,omitempty"`
	// StartedAt is when a reprocess started; other runs did at Run.StartedAt.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Answered are the last answers from outside.
	Answered []Answered `json:"answered,omitempty"`
	// Kept is what the run has done, with what the earlier runs have that it replaces.
	// Earlier are their workflow IDs, the last one first.
	Kept    interpreter.Kept `json:"kept,omitzero"`
	Earlier []string         `json:"earlier,omitempty"`
	// Notified counts the news that the notices of the run have sent, so that each is
	// sent under another key. Late says that the run took longer than expected.
	Notified int  `json:"notified,omitempty"`
	Late     bool `json:"late,omitempty"`
	// Unsent are the notices that are to be sent in the next history.
	Unsent []UnsentNotice `json:"unsent,omitempty"`
	// Ticket is the position of the run in the queue of its concurrency key; nil
	// without one.
	Ticket *queue.Ticket `json:"ticket,omitempty"`
	// Identity is that of the playbook, where the run is about a partition, and Noted says that
	// the workflow of its partitions knows of the run.
	Identity string `json:"identity,omitempty"`
	Noted    bool   `json:"noted,omitempty"`
	// Claimed says that a backfill has requested its partitions, and Conflict why it does not have
	// them.
	Claimed  bool                `json:"claimed,omitempty"`
	Conflict *partition.Conflict `json:"conflict,omitempty"`
	// Published is the status that the search attribute has, "" before the first.
	Published interpreter.Status `json:"published,omitempty"`
	// Reported is the last report to the parent workflow.
	Reported waitReport `json:"reported,omitzero"`
	// Pending are the moves of states that wait for the run to end as completed.
	Pending []PendingState `json:"pending,omitempty"`
}

// Result is how a run ended.
type Result = interpreter.RunResult

// StepRecord is one visit of a step.
type StepRecord = interpreter.StepRecord

// LoopRecord is the part of a StepRecord that only loops have.
type LoopRecord = interpreter.LoopRecord

// Progress is the answer to ProgressQuery. A playbook fills Steps, a loop the
// rest.
type Progress struct {
	Steps []StepRecord          `json:"steps,omitempty"`
	Stats interpreter.LoopStats `json:"stats,omitzero"`
	// Pending are the steps that no branch has reached yet.
	Pending []string `json:"pending,omitempty"`
	// Open are the workflow IDs of the open iterations.
	Open []string `json:"open,omitempty"`
	// Active counts the iterations of these that may act: more, where they run batches.
	Active int `json:"active,omitempty"`
	// Within are the iterations that have ended in these, as far as they have reported.
	Within interpreter.LoopStats `json:"within,omitzero"`
	// Returning counts those that wait for a slot again and for nothing else.
	Returning int `json:"returning,omitempty"`
	// Waiting counts the iterations that have released their slots while they wait;
	// NextRetryAt is when the first of them is due.
	Waiting     int       `json:"waiting,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// Awaits says that the iterations' attempts are answered from outside.
	Awaits bool `json:"awaits,omitempty"`
	// Plays says that the iterations run playbooks.
	Plays bool `json:"plays,omitempty"`
	// Control is what people have requested of the run.
	Control interpreter.Control `json:"control,omitzero"`
	// Parents are the parent runs, the first one first, without what people have
	// requested of them.
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Late says that the run takes longer than expected.
	Late bool `json:"late,omitempty"`
	// Ticket is the position of the run in the queue of its concurrency key.
	Ticket *queue.Ticket `json:"ticket,omitempty"`
	// States are the tickets of visits that are queued for the state of their step, by VisitName.
	States map[string]queue.Ticket `json:"states,omitempty"`
	// Moving is what a run waits for that moves its states at its end, nil for nothing.
	Moving *interpreter.Wait `json:"moving,omitempty"`
	// Shards are the workflow IDs of the open shards of a large loop; each has a progress
	// of its own, which is not in Stats yet.
	Shards []string `json:"shards,omitempty"`
}

// Task is what the children of a run share.
type Task = call.Task

// LoopInput starts LoopWorkflow; kept in workflow history.
type LoopInput struct {
	// Shard is set where the workflow runs a shard of a loop that is too large
	// for one history.
	Shard    *Shard             `json:"shard,omitempty"`
	Task     Task               `json:"task"`
	Elements []expression.Value `json:"elements"`
	// Chosen is set where the elements are not all of the collection.
	Chosen *Chosen `json:"chosen,omitempty"`
	// Begun are those of the iterations that were stopped in an earlier run, by index.
	Begun []interpreter.BegunIteration `json:"begun,omitempty"`
	// SinkData is what the sink on the step and its notices name beside Task.Data. The loop does
	// not use it: it is kept for a reprocess.
	SinkData interpreter.Data `json:"sink_data,omitzero"`
	// Control is what people had requested of the run when the loop began.
	Control interpreter.Control `json:"control,omitzero"`
}

// Shard is the position of a shard of a loop within all of it; kept in workflow history.
type Shard struct {
	First int `json:"first"` // index of its first element
	Size  int `json:"size"`  // of the whole loop
	// Success and Failed count the iterations of the shards before, for the
	// failure budget.
	Success int `json:"success"`
	Failed  int `json:"failed"`
	// MayLinger says that the loop begins its next shard while this one lingers, and
	// Shared what others use that linger already.
	MayLinger bool   `json:"may_linger,omitempty"`
	Shared    Shared `json:"shared,omitzero"`
}

// CallsInput starts CallsWorkflow; kept in workflow history. It holds the elements of
// one batch and never the collection.
type CallsInput struct {
	Calls []call.Snapshot `json:"calls"`
	Task  Task            `json:"task"`
	// Ended are the calls that ended in histories before.
	Ended []interpreter.IterationResult `json:"ended,omitempty"`
	// Known is how far the loop had come, where the batch counts on for its
	// failure budget.
	Known *interpreter.Known `json:"known,omitempty"`
	// MayRelease says that the child releases its slot in the loop's window while all
	// that it does is wait for long.
	MayRelease bool `json:"may_release,omitempty"`
	// Admitted is how many runs of other playbooks the child may start without a
	// request. Refused says that there are no more.
	Admitted int  `json:"admitted,omitempty"`
	Refused  bool `json:"refused,omitempty"`
	// Control is what people had requested of the run when the child began.
	Control interpreter.Control `json:"control,omitzero"`
	// Answered are the last answers from outside.
	Answered []Answered `json:"answered,omitempty"`
	// Reported is the last report to the parent workflow.
	Reported waitReport `json:"reported,omitzero"`
}

// The script of a task travels beside each of these inputs (crossing.go).

func (l LoopInput) apart() (any, call.Script) {
	task, script := l.Task.Apart()
	l.Task = task
	return l, script
}

func (c CallsInput) apart() (any, call.Script) {
	task, script := c.Task.Apart()
	c.Task = task
	return c, script
}

// hosted is the input of an activity that hosts calls.
type hosted struct{ call.DriveInput }

func (h hosted) apart() (any, call.Script) {
	task, script := h.Task.Apart()
	h.Task = task
	return h.DriveInput, script
}

// CallsOutput is the result of CallsWorkflow.
type CallsOutput = interpreter.CallsOutput
