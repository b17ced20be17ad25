package keeper

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/internal/base/heartbeat"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
)

// PartitionActivities returns the activities of runs whose playbook has partitions, by name. ends makes the end of an activity about something, so
// long after it was scheduled.
func PartitionActivities(states *States, ends func(ctx context.Context, waited time.Duration, what string, err error) error) map[string]any {
	p := partitions{states, ends}
	return map[string]any{partition.NoteActivity: p.notePartition, partition.ClaimActivity: p.claimPartitions}
}

type partitions struct {
	states *States
	ends   func(ctx context.Context, waited time.Duration, what string, err error) error
}

// notePartition is the activity that reports the status of a partition to the workflow of the
// playbook's partitions. Temporal repeats it for an hour.
func (p partitions) notePartition(ctx context.Context, note partition.Note) error {
	defer heartbeat.StartSending(ctx)()
	waited, ledger := time.Since(activity.GetInfo(ctx).ScheduledTime), partitionsOf(note.Playbook)
	err := p.states.sendUpdate(ctx, ledger, partition.NoteUpdate, note, nil)
	if err != nil {
		err = fmt.Errorf("note it in %s: %w", ledger.id, err)
	}
	return p.ends(ctx, waited, "what is done of the partitions", err)
}

// partitionsOf is the workflow that keeps what is done of a playbook's partitions.
func partitionsOf(playbook string) lasting {
	return lasting{
		name: partition.WorkflowName, id: partition.WorkflowID(playbook), query: partition.SnapshotQuery,
		summary: "keeps what is done of the partitions of " + playbook,
	}
}

// claimPartitions is the activity that claims or releases the partitions of a backfill. It
// returns the conflict that prevents a claim; claims of ended runs are no conflict.
func (p partitions) claimPartitions(ctx context.Context, request partition.ClaimRequest) (*partition.Conflict, error) {
	defer heartbeat.StartSending(ctx)()
	waited := time.Since(activity.GetInfo(ctx).ScheduledTime)
	conflict, err := p.claimAll(ctx, request)
	return conflict, p.ends(ctx, waited, "what is done of the partitions", err)
}

func (p partitions) claimAll(ctx context.Context, request partition.ClaimRequest) (*partition.Conflict, error) {
	ledger := partitionsOf(request.Playbook)
	for {
		var others []partition.BackfillClaim
		if err := p.states.sendUpdate(ctx, ledger, partition.ClaimUpdate, request, &others); err != nil {
			return nil, fmt.Errorf("claim them in %s: %w", ledger.id, err)
		}
		if len(others) == 0 {
			return nil, nil
		}
		request.Ended = nil
		for _, other := range others {
			open, err := isRunning(ctx, queue.Member{WorkflowID: other.Run, RunID: other.First})
			switch {
			case err != nil:
				return nil, err
			case open:
				overlap := cmp.Or(other.OverlapWith(request.BackfillClaim).ClaimText(), fmt.Sprintf("no more than %d backfills may be open", len(others)))
				return &partition.Conflict{Run: other.Run, Overlap: overlap}, nil
			}
			request.Ended = append(request.Ended, other.Holder)
		}
	}
}
