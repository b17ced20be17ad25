package run

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/partition"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// partitions is the part of a run that reports the status of its partition to the ledger of its playbook's
// partitions.
type partitions struct {
	*frame
	protocol.RunPartitions
}

// noteBegin records, once, that the run of a partition has begun.
func (p *partitions) noteBegin(ctx workflow.Context) {
	if p.Run.Partition != nil && p.input.Reprocess == nil && !p.Noted && ctx.Err() == nil {
		p.Noted = true
		p.notePartition(ctx, partition.Running)
	}
}

// noteEnd records the outcome of the partition, before the run ends. A cancelled run restores the previous status.
func (p *partitions) noteEnd(ctx workflow.Context, status interpreter.Status) {
	if !p.Noted {
		return
	}
	p.notePartition(ctx, outcomeOf(status))
}

// outcomeOf returns the status of a partition whose run has ended with a status.
func outcomeOf(status interpreter.Status) partition.Status {
	switch status {
	case interpreter.Completed:
		return partition.Done
	case interpreter.Cancelled, interpreter.Skipped:
		return partition.Missing
	}
	return partition.Failed
}

// notePartition records the status of the partition in the ledger. If that fails, a backfill runs the partition
// again.
func (p *partitions) notePartition(ctx workflow.Context, status partition.Status) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	noted := partition.Note{Playbook: p.book.Name, Partition: *p.Run.Partition, Identity: p.Identity, Run: p.id, Status: status}
	to := gate.ToTool(partition.NoteActivity, drive.StateTimeout, fmt.Sprintf("records that partition %s is %s", noted.Partition.Key, status))
	if _, err := gate.Send[struct{}](ctx, to, noted, "the outcome of its partition"); err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("partition %s is %s, but this could not be recorded, so a backfill runs it again: %s",
			noted.Partition.Key, status, protocol.AttemptError(err).ShortMessage()))
	}
}

// claimPartitions claims the partitions of a backfill. If another backfill has claimed any of them, this one is
// skipped, because both would run partitions that have not begun.
func (p *partitions) claimPartitions(ctx workflow.Context) {
	if p.input.Claim == nil || p.Claimed || ctx.Err() != nil {
		return
	}
	p.Claimed = true
	conflict, err := p.sendClaim(ctx, "claims the partitions", false)
	switch p.Conflict = conflict; {
	case err != nil && ctx.Err() == nil:
		p.failRun(protocol.AttemptError(err))
	case conflict != nil:
		p.Warnings = append(p.Warnings, fmt.Sprintf("the backfill was skipped: %s is open and covers some of its partitions: %s", conflict.Run, conflict.Overlap))
	}
}

// releaseClaim releases the claim. If that fails, the next claim detects that the run has ended.
func (p *partitions) releaseClaim(ctx workflow.Context) {
	if !p.Claimed || p.Conflict != nil {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if _, err := p.sendClaim(ctx, "releases the partitions", true); err != nil {
		gate.Logger(ctx).Warn("cannot release the partitions of a backfill; the next one will find that this one has ended", "error", err)
	}
}

func (p *partitions) sendClaim(ctx workflow.Context, summary string, release bool) (*partition.Conflict, error) {
	request := partition.ClaimRequest{BackfillClaim: *p.input.Claim, Release: release}
	request.Holder = partition.Holder{Run: p.id, First: p.First}
	return gate.Send[*partition.Conflict](ctx, gate.ToTool(partition.ClaimActivity, drive.StateTimeout, summary), request, "the partitions of the backfill")
}
