package protocol

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
)

// Input starts a run. It is kept in workflow history and holds everything the
// run depends on: one generic workflow runs any playbook.
type Input struct {
	Name     string           `json:"name"`              // of the file, for messages
	Workload expression.Value `json:"workload,omitzero"` // laid over the playbook's own
	// Strict makes the run a partial success at best once an iteration has failed, as strict: true of the playbook does.
	Strict bool `json:"strict,omitempty"`
	// FullRefresh names the steps that read everything in this run, whatever their states say.
	FullRefresh []string `json:"full_refresh,omitempty"`
	// Partition is the key of the partition that the run loads; "" for the newest one that was complete when the run was
	// due or began.
	Partition string `json:"partition,omitempty"`
	// Claim is set for a backfill: the partitions that no other backfill may run meanwhile.
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
	Called *ParentAttempt `json:"called,omitempty"`
	// Reprocess is set for a run that runs iterations of another run again.
	Reprocess *Reprocess `json:"reprocess,omitempty"`
	// State is set if the run continues from another history, which had grown long; nil for a run that begins.
	State *RunState `json:"state,omitempty"`
	// Source is the text of the playbook. It comes last in the JSON because it is long: people look for the fields above
	// in Temporal's UI.
	Source string `json:"source"`
	// Files are the texts of the playbooks that it names, by file name, as the starter or the parent run has read them.
	Files map[string]string `json:"files,omitempty"`
}

// ParentAttempt is the attempt of a parent run that has started a run; kept in workflow
// history.
type ParentAttempt struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index,omitempty"`
	Page    int    `json:"page"`
	Attempt int    `json:"attempt"`
	// Depth is how many parent runs there are. Parents are the ones that wait for this run, outermost first.
	Depth   int                  `json:"depth"`
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Tree is the outermost run's: it bounds how many runs may start below it.
	Tree interpreter.Tree `json:"tree,omitzero"`
	// ScheduledAt is when the parent run was scheduled.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// Key and Lap are as in RunInfo.
	Key string `json:"key"`
	Lap string `json:"lap,omitempty"`
	// Recall is set if an earlier run may have made some of the child run's calls. The child run asks it, and takes over
	// their results.
	Recall *interpreter.Recall `json:"recall,omitempty"`
}

// Reprocess is what a run does in place of the playbook's graph: it runs
// iterations of another run that failed or were cancelled, under that run's keys.
// Kept in workflow history.
type Reprocess struct {
	// Origin identifies the run whose iterations run again, and counts its reprocesses.
	Origin interpreter.RunInfo `json:"origin"`
	Loops  []ReprocessLoop     `json:"loops"`
}

// ReprocessLoop is the iterations of one visit of a step that are to run again; kept in workflow
// history.
type ReprocessLoop struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // of the route that led there
	// Vars and Steps are the input of the origin's loop.
	Vars  expression.Value `json:"vars,omitzero"`
	Steps expression.Value `json:"steps,omitzero"`
	Subset
	// Stopped says that some of the iterations may have been stopped midway in an earlier run; they continue where they were.
	Stopped  bool               `json:"stopped,omitempty"`
	Elements []expression.Value `json:"elements"`
}

// Subset are the positions of elements that are a choice from a collection; kept in
// workflow history.
type Subset struct {
	Indexes []int `json:"indexes"` // positions in the collection, ascending
	Size    int   `json:"size"`    // elements of the whole collection
}

// Result is how a run ended.
type Result = interpreter.RunResult

// StepRecord is one visit of a step.
type StepRecord = interpreter.StepRecord

// LoopRecord is the part of a StepRecord that only loops have.
type LoopRecord = interpreter.LoopRecord

// Progress is the answer to ProgressQuery. The workflow of a run fills Steps and the fields about the run, the workflow of
// a loop the fields about iterations.
type Progress struct {
	Steps []StepRecord          `json:"steps,omitempty"`
	Stats interpreter.LoopStats `json:"stats,omitzero"`
	// Pending are the steps that no branch has reached yet.
	Pending []string `json:"pending,omitempty"`
	// Open are the workflow IDs of the open iterations.
	Open []string `json:"open,omitempty"`
	// Active counts the iterations that may make attempts now. It may exceed the length of Open, as one child runs a batch.
	Active int `json:"active,omitempty"`
	// Within counts the ended iterations in children that are still open, as far as these children have reported.
	Within interpreter.LoopStats `json:"within,omitzero"`
	// Returning counts the iterations whose wait is over and that need a slot again to continue.
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
	// Parents are the parent runs, the first one first, without what people have
	// requested of them.
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Late says that the run takes longer than expected.
	Late bool `json:"late,omitempty"`
	// Rows is what the ended steps did to data; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// ValidationWarnings are what validation has warned of when the run began.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// Ticket is the position of the run in the queue of its concurrency key.
	Ticket *queue.Ticket `json:"ticket,omitempty"`
	// States are the tickets of visits that are queued for the state of their step, by VisitName.
	States map[string]queue.Ticket `json:"states,omitempty"`
	// Moving is what the run waits for while it moves its states at its end; nil if it does not wait.
	Moving *interpreter.Wait `json:"moving,omitempty"`
	// Shards are the workflow IDs of the open shards of a large loop. Their progress has to be
	// read from them and is not in Stats yet.
	Shards []string `json:"shards,omitempty"`
	// Source is how far the source of a loop has come; nil for a loop over a collection. In a shard, Stats then has elements
	// that are not in the total of its loop.
	Source *SourceProgress `json:"source,omitempty"`
}

// SourceProgress is how far the source of a loop has come.
type SourceProgress struct {
	// Reads says that there may be more elements.
	Reads bool `json:"reads,omitempty"`
	interpreter.CallStatus
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
	// Source gives the elements in place of Elements; nil for a loop over a collection, and for its shards.
	Source *LoopSource `json:"source,omitempty"`
	// Chosen is set if the loop runs some elements of the collection only: in a shard, or in a reprocess.
	Chosen *Subset `json:"chosen,omitempty"`
	// Begun are the calls of iterations that were stopped in an earlier run, by index.
	Begun []interpreter.BegunIteration `json:"begun,omitempty"`
	// SinkData are the values that the step's sink and notices name in addition to Task.Data.
	// The loop does not use them: they are kept for a reprocess.
	SinkData interpreter.Data `json:"sink_data,omitzero"`
	// Control has the pauses and settings that people had requested of the run when the loop began.
	Control interpreter.Control `json:"control,omitzero"`
}

// LoopSource is the call that gives a loop its elements, as far as it has come; kept in workflow history.
type LoopSource struct {
	// Data is what the expressions of the call name.
	Data interpreter.Data `json:"data"`
	Call call.Snapshot    `json:"call"`
	// Level is how many levels of workflows may read on behind this one: 0 for one that leaves that to its parent. The first
	// has no such bound.
	Level int `json:"level,omitempty"`
}

// Shard is the position of a shard of a loop within all of it; kept in workflow history.
type Shard struct {
	First int `json:"first"` // index of its first element
	Size  int `json:"size"`  // of the whole loop, as far as it is known
	// Open says that the source of the loop had not ended when the shard began, so its size was not known.
	Open bool `json:"open,omitempty"`
	// Success and Failed count the iterations of the shards before, for the
	// failure budget.
	Success int `json:"success"`
	Failed  int `json:"failed"`
	// MayLinger says that the loop begins its next shard as soon as this one has only waiting iterations left (it lingers).
	// Shared is how much of the window and budget other lingering shards use.
	MayLinger bool         `json:"may_linger,omitempty"`
	Shared    SharedWindow `json:"shared,omitzero"`
}

// CallsInput starts CallsWorkflow; kept in workflow history. It holds the elements of
// one batch and never the collection.
type CallsInput struct {
	Calls []call.Snapshot `json:"calls"`
	Task  Task            `json:"task"`
	// Ended are the calls that ended in earlier histories of this workflow.
	Ended []interpreter.IterationResult `json:"ended,omitempty"`
	// Known has the loop's figures when the batch began. The batch adds its own to them to find out whether the failure
	// budget is spent; nil without a budget.
	Known *interpreter.LoopCounts `json:"known,omitempty"`
	// MayRelease lets the child release its slot in the loop's window while all of its calls wait for long.
	MayRelease bool `json:"may_release,omitempty"`
	// Admitted is how many child runs this workflow may start without asking the census of the tree. Refused says that the
	// tree may start no more.
	Admitted int  `json:"admitted,omitempty"`
	Refused  bool `json:"refused,omitempty"`
	// Control has the pauses and settings that people had requested of the run when the child began.
	Control interpreter.Control `json:"control,omitzero"`
	// Answered are the last accepted answers, by which a repeated answer is recognised.
	Answered []AcceptedAnswer `json:"answered,omitempty"`
	// Reported is the last report to the parent workflow.
	Reported WaitReport `json:"reported,omitzero"`
}

// SplitScript has the script of the task travel beside the input (package gate).
func (l LoopInput) SplitScript() (any, call.Script) {
	task, script := l.Task.Apart()
	l.Task = task
	return l, script
}

// SplitScript has the script of the task travel beside the input, as for LoopInput.
func (c CallsInput) SplitScript() (any, call.Script) {
	task, script := c.Task.Apart()
	c.Task = task
	return c, script
}

// CallsOutput is the result of CallsWorkflow.
type CallsOutput = interpreter.CallsOutput

// PendingState are moves that wait for the run to end as completed: those of a step that writes
// nothing. Kept in workflow history.
type PendingState struct {
	Step  string              `json:"step"`
	Moves []incremental.Moves `json:"moves"`
}
