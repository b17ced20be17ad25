package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/source"
)

// StateWorkflow keeps the states of a group, those of a step whose rows go to no table. Its
// decisions are a rule of the interpreter (incremental.Keeper). It never ends: what it
// knows is what the next run of the playbook begins with.
func StateWorkflow(ctx workflow.Context, snapshot []byte) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = withOutbox(ctx, interpreter.RunLimits{})
	keeper, err := incremental.ReadKeeper(snapshot)
	if err != nil {
		return unfit(err)
	}
	k := &stateKeeper{Keeper: keeper}
	if err := errors.Join(k.serveUpdates(ctx), k.serveQueries(ctx)); err != nil {
		return err
	}
	k.describe(ctx)
	for {
		if err := workflow.Await(ctx, func() bool { return k.changed || !k.stays && historyIsLong(ctx) }); err != nil {
			return err
		}
		if k.changed {
			k.changed = false
			k.describe(ctx)
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		if next := k.continueAsNew(ctx); next != nil {
			return next
		}
	}
}

// stateKeeper drives a Keeper.
type stateKeeper struct {
	*incremental.Keeper
	changed bool // since the details were written
	stays   bool // in this history: the states are too large for another one
}

// StateRefused is the type of the failure of a change that a person may not make.
const StateRefused = "state_refused"

func (k *stateKeeper) serveUpdates(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.ClaimUpdate,
			func(ctx workflow.Context, claim incremental.Claim) (incremental.Claimed, error) {
				k.changed = true
				return k.Claim(claim, workflow.Now(ctx)), nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.Claim.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.MoveUpdate,
			func(ctx workflow.Context, writes []incremental.Write) (incremental.Moved, error) {
				k.changed = true
				return k.MoveAll(writes, workflow.Now(ctx)), nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.CheckWrites}),
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.SetUpdate,
			func(ctx workflow.Context, change incremental.Change) error {
				k.changed = true
				if refused := k.Set(change, workflow.Now(ctx)); refused != nil {
					return temporal.NewApplicationErrorWithOptions(refused.Message, StateRefused, temporal.ApplicationErrorOptions{NonRetryable: true})
				}
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.Change.Check}),
	)
}

func (k *stateKeeper) serveQueries(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, incremental.StatesQuery, func(within incremental.Range) ([]incremental.State, error) {
			return k.States(within), nil
		}),
		workflow.SetQueryHandler(ctx, incremental.HistoryQuery, func(name string) ([]incremental.Change, error) {
			return k.History(name), nil
		}),
		workflow.SetQueryHandler(ctx, incremental.SnapshotQuery, k.Snapshot),
	)
}

// continueAsNew gives the error with which the workflow continues as new. It is nil where the
// states are too large for that: they stay where they are.
func (k *stateKeeper) continueAsNew(ctx workflow.Context) error {
	snapshot, err := k.Snapshot()
	if err != nil {
		return fmt.Errorf("pack the states: %w", err)
	}
	failure, next := continueAsNew(ctx, incremental.WorkflowName, snapshot, "the states of a step")
	if failure != nil {
		k.stays = true
		logger(ctx).Error("the states of a step do not continue as new", "error", failure.Message)
		return nil
	}
	return next
}

// mostStatesShown bounds the states that the details name.
const mostStatesShown = 20

// describe writes what is kept into the details that Temporal's UI shows.
func (k *stateKeeper) describe(ctx workflow.Context) {
	table := newSheet("state", "watermark", "moved", "run")
	for _, state := range k.States(incremental.Range{Most: mostStatesShown}) {
		run := ""
		if state.Run != "" {
			run = linkTo(ctx, source.Code(state.Run, mostText), state.Run)
		}
		table.row(source.Code(state.Name, mostText), source.Code(state.Watermark.Text(), mostText), renderTime(state.MovedAt), run)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d states of %d\n\n%s", k.Len(), incremental.MaxStates, table))
}
