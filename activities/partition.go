package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/internal/base/heartbeat"
	"reprise/interpreter/partition"
)

// NotePartition is the activity that has the workflow of a playbook's partitions know what became of
// one. Where that is away Temporal makes it again, for an hour.
func (c *Catalogue) NotePartition(ctx context.Context, note partition.Note) error {
	defer heartbeat.Keep(ctx)()
	waited := time.Since(activity.GetInfo(ctx).ScheduledTime)
	ledger := endlessWorkflow{
		catalogue: c, name: partition.WorkflowName, id: partition.WorkflowID(note.Playbook),
		summary: "keeps what is done of the partitions of " + note.Playbook,
	}
	err := ledger.update(ctx, partition.NoteUpdate, note, nil)
	if err != nil {
		err = fmt.Errorf("note it in %s: %w", ledger.id, err)
	}
	return stateError(ctx, waited, "what is done of the partitions", err)
}
