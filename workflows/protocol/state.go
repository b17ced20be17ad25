package protocol

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/interpreter/tree"
)

// Input starts a run. It is kept in workflow history and holds everything that the run depends on: one workflow
// type runs every playbook.
type Input struct {
	Name     string           `json:"name"`              // name of the file, for messages
	Workload expression.Value `json:"workload,omitzero"` // merged over the playbook's own workload
	// Strict makes the run at most a partial success if any iteration failed, as strict: true in the playbook does.
	Strict bool `json:"strict,omitempty"`
	// FullRefresh names the steps that read everything in this run, regardless of their states.
	FullRefresh []string `json:"full_refresh,omitempty"`
	// Partition is the key of the partition that the run loads; "" for the newest one that was complete when the
	// run was scheduled or began.
	Partition string `json:"partition,omitempty"`
	// Claim is set for a backfill: the partitions that no other backfill may run at the same time.
	Claim *partition.BackfillClaim `json:"claim,omitempty"`
	// Missing makes the run a backfill of the partitions that are missing when it begins: the validation determines
	// them, and they become the keys of its workload and its Claim.
	Missing bool `json:"missing,omitempty"`
	// SearchAttributes says that the namespace has StatusAttribute and PlaybookAttribute.
	SearchAttributes bool `json:"search_attributes,omitempty"`
	// DeadLetters says that the namespace has DeadLettersAttribute.
	DeadLetters bool `json:"dead_letters,omitempty"`
	// NextRetry says that the namespace has NextRetryAttribute.
	NextRetry bool `json:"next_retry,omitempty"`
	// Called is set if a step of another run started the run.
	Called *ParentAttempt `json:"called,omitempty"`
	// Reprocess is set for a run that runs iterations of another run again.
	Reprocess *Reprocess `json:"reprocess,omitempty"`
	// State is set if the run continues as new; nil for a run that begins.
	State *RunState `json:"state,omitempty"`
	// Source is the text of the playbook. It is the last field because it is long, and people look for the fields
	// above in Temporal's UI.
	Source string `json:"source"`
	// Files are the texts of the playbooks that it names, by file name, as read by the starter or the parent run.
	Files map[string]string `json:"files,omitempty"`
}

// ParentAttempt is the attempt of a parent run that started a run; kept in workflow history.
type ParentAttempt struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index,omitempty"`
	Page    int    `json:"page"`
	Attempt int    `json:"attempt"`
	// Depth is the number of parent runs. Parents are those that wait for this run, outermost first.
	Depth   int                  `json:"depth"`
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Tree is the tree of the outermost run, which bounds the number of its descendants.
	Tree tree.Tree `json:"tree,omitzero"`
	// ScheduledAt is when the parent run was scheduled.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// Key and Lap are as in RunInfo.
	Key string `json:"key"`
	Lap string `json:"lap,omitempty"`
	// Recall is set if an earlier run may have made some of the child run's calls. The child run then queries it
	// and reuses the results.
	Recall *interpreter.Recall `json:"recall,omitempty"`
	// HasSiblings is as in CallsInput: the parent workflow makes several calls, each of which may run a playbook.
	HasSiblings bool `json:"has_siblings,omitempty"`
}

// Reprocess makes a run repeat iterations of another run that failed or were cancelled, under that run's keys,
// instead of the playbook's graph. Kept in workflow history.
type Reprocess struct {
	// Origin identifies the run whose iterations are repeated, and counts its reprocesses.
	Origin interpreter.RunInfo `json:"origin"`
	Loops  []ReprocessLoop     `json:"loops"`
}

// ReprocessLoop has the iterations of one visit of a step to run again; kept in workflow history.
type ReprocessLoop struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // args of the route that led there
	// Vars and Steps are the input of the origin's loop.
	Vars  expression.Value `json:"vars,omitzero"`
	Steps expression.Value `json:"steps,omitzero"`
	Subset
	// Stopped says that some of the iterations may have been stopped midway in an earlier run; they continue from
	// there.
	Stopped  bool               `json:"stopped,omitempty"`
	Elements []expression.Value `json:"elements"`
}

// Subset is a selection of elements from a collection, by position; kept in workflow history.
type Subset struct {
	Indexes []int `json:"indexes"` // positions in the collection, ascending
	Size    int   `json:"size"`    // number of elements of the whole collection
}

// Result is the result of a run.
type Result = interpreter.RunResult

// StepRecord is one visit of a step.
type StepRecord = interpreter.StepRecord

// LoopRecord is the part of a StepRecord that only loops have.
type LoopRecord = interpreter.LoopRecord

// Progress is the result of ProgressQuery. The workflow of a run fills Steps and the fields about the run, the
// workflow of a loop the fields about iterations.
type Progress struct {
	Steps []StepRecord          `json:"steps,omitempty"`
	Stats interpreter.LoopStats `json:"stats,omitzero"`
	// Pending are the steps that no branch has reached yet.
	Pending []string `json:"pending,omitempty"`
	// Open are the workflow IDs of the open iterations.
	Open []string `json:"open,omitempty"`
	// Active counts the iterations that can make attempts now. It may exceed the length of Open, because one child
	// runs a batch.
	Active int `json:"active,omitempty"`
	// Within counts the ended iterations in children that are still open, as far as these children have reported.
	Within interpreter.LoopStats `json:"within,omitzero"`
	// Returning counts the iterations whose wait is over and that need a slot to continue.
	Returning int `json:"returning,omitempty"`
	// Waiting counts the iterations that have released their slots while they wait. NextRetryAt is when the first of them
	// continues.
	Waiting     int       `json:"waiting,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// Awaits says that the iterations' attempts are answered from outside.
	Awaits bool `json:"awaits,omitempty"`
	// Plays says that each attempt of the iterations is a child run (tool playbook).
	Plays bool `json:"plays,omitempty"`
	// Control has people's requests to the run.
	Control interpreter.Control `json:"control,omitzero"`
	// Parents are the parent runs, outermost first, without their controls.
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Late says that the run has taken longer than expected.
	Late bool `json:"late,omitempty"`
	// Rows is what the ended steps did to data; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// ValidationWarnings are the warnings of the validation when the run began.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// Ticket is the position of the run in the queue of its concurrency key.
	Ticket *queue.Ticket `json:"ticket,omitempty"`
	// States are the tickets of visits that wait in the queue of their step's state, by VisitName.
	States map[string]queue.Ticket `json:"states,omitempty"`
	// Moving is what the run waits for while it moves states at its end; nil if it does not wait.
	Moving *interpreter.Wait `json:"moving,omitempty"`
	// Shards are the workflow IDs of the open shards of a large loop. Stats does not include their progress, which
	// must be queried from them.
	Shards []string `json:"shards,omitempty"`
	// Source is the progress of the source of a loop; nil for a loop over a collection. In a shard, Stats then
	// includes elements that are not in the total of its loop.
	Source *SourceProgress `json:"source,omitempty"`
}

// SourceProgress is the progress of the source of a loop.
type SourceProgress struct {
	// Reads says that there may be further elements.
	Reads bool `json:"reads,omitempty"`
	interpreter.CallStatus
}

// Task is what all children of a step share.
type Task = call.Task

// LoopInput starts LoopWorkflow; kept in workflow history.
type LoopInput struct {
	// Shard is set if the workflow runs a shard of a loop that is too large for one history.
	Shard    *Shard             `json:"shard,omitempty"`
	Task     Task               `json:"task"`
	Elements []expression.Value `json:"elements"`
	// Source provides the elements instead of Elements; nil for a loop over a collection, and for its shards.
	Source *LoopSource `json:"source,omitempty"`
	// Chosen is set if the loop runs only some elements of the collection: in a shard, or in a reprocess.
	Chosen *Subset `json:"chosen,omitempty"`
	// Begun are the calls of iterations that were stopped in an earlier run, by index.
	Begun []interpreter.BegunIteration `json:"begun,omitempty"`
	// SinkData are the values that the step's sink and notices use in addition to Task.Data. The loop does not use
	// them: they are kept for a reprocess.
	SinkData interpreter.Data `json:"sink_data,omitzero"`
	// Control has the pauses and settings that people had requested when the loop began.
	Control interpreter.Control `json:"control,omitzero"`
	// Reserves says that the loop keeps room in its history for all that its open children will add to it. A loop whose
	// input lacks it has begun before, and starts children until its history is long.
	Reserves bool `json:"reserves,omitempty"`
}

// LoopSource is the call that provides the elements of a loop, with its progress; kept in workflow history.
type LoopSource struct {
	// Data has the values that the expressions of the call use.
	Data interpreter.Data `json:"data"`
	Call call.Snapshot    `json:"call"`
	// Level is the number of levels of workflows that may read on below this one; 0 means that its parent starts
	// them. The first workflow of a loop ignores it.
	Level int `json:"level,omitempty"`
}

// Shard is the position of a shard within its loop; kept in workflow history.
type Shard struct {
	First int `json:"first"` // index of its first element
	Size  int `json:"size"`  // of the whole loop, as far as known
	// Open says that the source of the loop had not ended when the shard began, so its size was not known.
	Open bool `json:"open,omitempty"`
	// Success and Failed count the iterations of earlier shards, for the failure budget.
	Success int `json:"success"`
	Failed  int `json:"failed"`
	// MayLinger says that the loop begins its next shard as soon as this one has nothing left to start (it
	// lingers). Shared is what lingering shards use of the window.
	MayLinger bool         `json:"may_linger,omitempty"`
	Shared    SharedWindow `json:"shared,omitzero"`
}

// CallsInput starts CallsWorkflow; kept in workflow history. It holds the elements of one batch, not the
// collection.
type CallsInput struct {
	Calls []call.Snapshot `json:"calls"`
	Task  Task            `json:"task"`
	// Ended are the calls that ended in earlier histories of this workflow.
	Ended []interpreter.IterationResult `json:"ended,omitempty"`
	// Known has the counts of the loop when the batch began. The batch adds its own to them to determine whether
	// the failure budget is spent; nil without a budget.
	Known *interpreter.LoopCounts `json:"known,omitempty"`
	// MayRelease lets the child release its slot in the loop's window while all of its calls are in long waits.
	MayRelease bool `json:"may_release,omitempty"`
	// Admitted is the number of child runs that this workflow may start without requesting admission from the tree.
	// Refused says that the tree admits no further ones.
	Admitted int  `json:"admitted,omitempty"`
	Refused  bool `json:"refused,omitempty"`
	// Control has the pauses and settings that people had requested when the child began.
	Control interpreter.Control `json:"control,omitzero"`
	// Answered are the latest accepted answers, by which a repeated answer is recognised.
	Answered []AcceptedAnswer `json:"answered,omitempty"`
	// Asked are the latest questions to people.
	Asked []AskedQuestion `json:"asked,omitempty"`
	// Reported is the last report to the parent workflow.
	Reported WaitReport `json:"reported,omitzero"`
	// HasSiblings says that the loop has several open children at a time, so each reports few of its waits.
	// LongestReported is the longest that it has reported.
	HasSiblings     bool          `json:"has_siblings,omitempty"`
	LongestReported time.Duration `json:"longest_reported,omitempty"`
}

// SplitScript separates the script of the task from the input, so that it is sent as an argument of its own
// (package gate).
func (l LoopInput) SplitScript() (any, call.Script) {
	task, script := l.Task.SplitScript()
	l.Task = task
	return l, script
}

// SplitScript is as for LoopInput.
func (c CallsInput) SplitScript() (any, call.Script) {
	task, script := c.Task.SplitScript()
	c.Task = task
	return c, script
}

// CallsOutput is the result of CallsWorkflow.
type CallsOutput = interpreter.CallsOutput

// PendingState has moves that are made when the run has completed, for a step that writes nothing. Kept in workflow
// history.
type PendingState struct {
	Step  string              `json:"step"`
	Moves []incremental.Moves `json:"moves"`
}
