package keeper

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/partition"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// PartitionsWorkflow stores the statuses of one playbook's partitions. partition.Ledger has the rules. It never
// ends, because a backfill may need it a year later.
func PartitionsWorkflow(ctx workflow.Context, snapshot []byte) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	ledger, err := partition.ReadLedger(snapshot)
	if err != nil {
		return gate.UnfitError(err)
	}
	k := &partitions{Ledger: ledger, endless: newEndless(func(ctx workflow.Context) { workflow.SetCurrentDetails(ctx, ledger.Describe()) })}
	err = errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, partition.NoteUpdate,
			func(_ workflow.Context, note partition.Note) error {
				k.changed = true
				if err := k.ApplyNote(note); err != nil {
					return temporal.NewNonRetryableApplicationError(err.Error(), protocol.PartitionRefused, nil)
				}
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: partition.Note.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, partition.ClaimUpdate,
			func(_ workflow.Context, request partition.ClaimRequest) ([]partition.BackfillClaim, error) {
				k.changed = true
				return k.RecordClaim(request), nil
			},
			workflow.UpdateHandlerOptions{Validator: func(request partition.ClaimRequest) error { return request.Check() }}),
		workflow.SetQueryHandler(ctx, partition.SnapshotQuery, k.Snapshot),
	)
	if err != nil {
		return err
	}
	return serveUntilOver(ctx, k)
}

// partitions connects a Ledger to its workflow.
type partitions struct {
	*partition.Ledger
	endless
}

func (k *partitions) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	snapshot, err := k.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("pack what is done: %w", err)
	}
	return gate.ContinueAsNew(ctx, partition.WorkflowName, snapshot, "what is done of the partitions of a playbook")
}
