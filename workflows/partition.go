package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/partition"
)

// partition is what the validation works the partition of a run out of. Its answer is in history
// and goes with the run from then on: the rules of zones may be others when the run is replayed.
func (in Input) partition(ctx workflow.Context) *interpreter.PartitionRequest {
	request := interpreter.PartitionRequest{Key: in.Partition}
	var scheduled time.Time
	request.At, scheduled = workflow.GetInfo(ctx).WorkflowStartTime, scheduledAt(ctx)
	switch {
	case in.Reprocess != nil:
		request.At, scheduled = in.Reprocess.Origin.StartedAt, in.Reprocess.Origin.ScheduledAt
	case in.Called != nil:
		scheduled = in.Called.ScheduledAt
	}
	if !scheduled.IsZero() && in.Partition == "" {
		request.At = scheduled
	}
	return &request
}

// runMissing has a backfill run the partitions that its validation has found, nil for another run.
func (in *Input) runMissing(missing *partition.Selection) {
	if missing == nil {
		return
	}
	keys := lists.Map(missing.Keys, func(key string) any { return key })
	in.Workload = expression.Of(expression.Merge(in.Workload.Data, map[string]any{"keys": keys}))
	if len(keys) > 0 {
		in.Claim = &missing.Claim
	}
}

// beginPartition notes that the run has begun its partition, once.
func (r *run) beginPartition(ctx workflow.Context) {
	if r.Run.Partition != nil && r.input.Reprocess == nil && !r.Noted && ctx.Err() == nil {
		r.Noted = true
		r.notePartition(ctx, partition.Running)
	}
}

// endPartition records what became of the partition, before the run reports its end. A run
// that was cancelled leaves what was known of it.
func (r *run) endPartition(ctx workflow.Context, status interpreter.Status) {
	if !r.Noted {
		return
	}
	noted := partition.Failed
	switch status {
	case interpreter.Completed:
		noted = partition.Done
	case interpreter.Cancelled, interpreter.Skipped:
		noted = partition.Missing
	}
	r.notePartition(ctx, noted)
}

// notePartition has the workflow of the playbook's partitions know of the run. What it does not
// know of is run again by a backfill.
func (r *run) notePartition(ctx workflow.Context, status partition.Status) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	note := partition.Note{Playbook: r.book.Name, Partition: *r.Run.Partition, Identity: r.Identity, Run: r.id, Status: status}
	to := toTool(partition.NoteActivity, stateTimeout, fmt.Sprintf("notes that partition %s is %s", note.Partition.Key, status))
	if _, err := send[struct{}](ctx, to, note, "the outcome of its partition"); err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("that partition %s is %s was not noted, and a backfill runs it again: %s",
			note.Partition.Key, status, AttemptError(err).ShortMessage()))
	}
}

// claimPartitions claims those that a backfill is to run. A backfill whose partitions another one
// is to run as well is skipped: both would run those that the other has not begun.
func (r *run) claimPartitions(ctx workflow.Context) {
	if r.input.Claim == nil || r.Claimed || r.wasSkipped() || ctx.Err() != nil {
		return
	}
	r.Claimed = true
	conflict, err := r.sendClaim(ctx, "claims the partitions", false)
	switch r.Conflict = conflict; {
	case err != nil && ctx.Err() == nil:
		r.fail(AttemptError(err))
	case conflict != nil:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the backfill was skipped: %s, which has not ended, runs partitions of it: %s", conflict.Run, conflict.Overlap))
	}
}

// releasePartitions releases the claim. Where that fails, the next claim of them finds that the run has ended.
func (r *run) releasePartitions(ctx workflow.Context) {
	if !r.Claimed || r.Conflict != nil {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if _, err := r.sendClaim(ctx, "releases the partitions", true); err != nil {
		logger(ctx).Warn("cannot release the partitions of a backfill; the next one finds that this one has ended", "error", err)
	}
}

func (r *run) sendClaim(ctx workflow.Context, summary string, release bool) (*partition.Conflict, error) {
	request := partition.ClaimRequest{BackfillClaim: *r.input.Claim, Release: release}
	request.Holder = partition.Holder{Run: r.id, First: r.First}
	return send[*partition.Conflict](ctx, toTool(partition.ClaimActivity, stateTimeout, summary), request, "the partitions of the backfill")
}
