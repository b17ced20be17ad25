package keeper

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// StateWorkflow keeps a group of states for a step that writes to no table. incremental.Keeper makes the decisions.
// It never ends, because the next run of the playbook begins with these states.
func StateWorkflow(ctx workflow.Context, snapshot []byte) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	keeper, err := incremental.ReadKeeper(snapshot)
	if err != nil {
		return gate.UnfitError(err)
	}
	k := &states{Keeper: keeper}
	k.endless = newEndless(k.renderStates)
	if err := errors.Join(k.serveUpdates(ctx), k.serveQueries(ctx)); err != nil {
		return err
	}
	gate.HandleSignal(ctx, incremental.UndoSignal, k.undoMoves)
	return serveUntilOver(ctx, k)
}

// undoMoves undoes the moves of a run that was cancelled before it learned whether they were made.
func (k *states) undoMoves(ctx workflow.Context, writes []incremental.StateWrite) {
	if err := incremental.CheckWrites(writes); err != nil {
		gate.Logger(ctx).Warn("no moves to undo", "error", err)
		return
	}
	for _, write := range writes {
		k.Undo(write, workflow.Now(ctx))
	}
	k.changed = true
}

// states connects a Keeper to its workflow.
type states struct {
	*incremental.Keeper
	endless
}

func (k *states) serveUpdates(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.ClaimUpdate,
			func(ctx workflow.Context, claim incremental.Claim) (incremental.ClaimedState, error) {
				k.changed = true
				return k.Claim(claim, workflow.Now(ctx)), nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.Claim.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.MoveUpdate,
			func(ctx workflow.Context, writes []incremental.StateWrite) (incremental.MoveResult, error) {
				k.changed = true
				return k.MoveAll(writes, workflow.Now(ctx)), nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.CheckWrites}),
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.SetUpdate,
			func(ctx workflow.Context, change incremental.StateChange) error {
				k.changed = true
				if refused := k.Set(change, workflow.Now(ctx)); refused != nil {
					return temporal.NewApplicationErrorWithOptions(refused.Message, protocol.StateRefused, temporal.ApplicationErrorOptions{NonRetryable: true})
				}
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.StateChange.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, incremental.RemoveUpdate,
			func(ctx workflow.Context, removal incremental.Removal) ([]string, error) {
				k.changed = true
				return k.Remove(removal, workflow.Now(ctx)), nil
			},
			workflow.UpdateHandlerOptions{Validator: incremental.Removal.Check}),
	)
}

func (k *states) serveQueries(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, incremental.StatesQuery, func(within incremental.NameRange) ([]incremental.State, error) {
			return k.States(within), nil
		}),
		workflow.SetQueryHandler(ctx, incremental.HistoryQuery, func(name string) ([]incremental.StateChange, error) {
			return k.History(name), nil
		}),
		workflow.SetQueryHandler(ctx, incremental.SnapshotQuery, k.Snapshot),
	)
}

func (k *states) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	snapshot, err := k.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("pack the states: %w", err)
	}
	return gate.ContinueAsNew(ctx, incremental.WorkflowName, snapshot, "the states of a step")
}

// shownStates bounds the states that the details list.
const shownStates = 20

// renderStates writes the first states into the details.
func (k *states) renderStates(ctx workflow.Context) {
	table := gate.NewMarkdownTable("state", "watermark", "moved", "run")
	for _, state := range k.States(incremental.NameRange{Most: shownStates}) {
		run := ""
		if state.Run != "" {
			run = gate.LinkTo(ctx, source.MarkdownCode(state.Run, protocol.MaxText), state.Run)
		}
		table.Row(source.MarkdownCode(state.Name, protocol.MaxText), source.MarkdownCode(state.Watermark.Text(), protocol.MaxText), gate.RenderTime(state.MovedAt), run)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d states of %d\n\n%s", k.Len(), incremental.MaxStates, table))
}

// commandTimeout bounds how long a person waits for the command.
const commandTimeout = time.Minute

// mostCommandTries bounds the deliveries of a command whose destination is not available; after that it fails while
// the person is still there to read why.
const mostCommandTries = 3

// StateCommandWorkflow lets a worker, which has the connections, carry out a person's command to read or change
// states.
func StateCommandWorkflow(ctx workflow.Context, command interpreter.StateCommand) (interpreter.StateAnswer, error) {
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	to := gate.ToTool(interpreter.StateCommandActivity, commandTimeout, "what a person wants of states")
	to.Tries = mostCommandTries
	return gate.Send[interpreter.StateAnswer](ctx, to, command, "what a person wants of states")
}
