package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// TriggeredSignal says who had a schedule start the run, and why, as an interpreter.Said:
// Temporal's schedules do not pass that on.
const TriggeredSignal = "triggered"

// listenForTrigger keeps in the run's memo who had its schedule start it. The first signal counts.
func (r *run) listenForTrigger(ctx workflow.Context) {
	if r.Run.ScheduledAt.IsZero() || r.input.Called != nil {
		return
	}
	onSignal(ctx, TriggeredSignal, func(ctx workflow.Context, said interpreter.Said) {
		known := workflow.GetInfo(ctx).Memo.GetFields()[StartedByMemo] != nil
		if known || said.By == "" || max(len(said.By), len(said.Reason)) > maxSaid {
			return
		}
		memo := map[string]any{StartedByMemo: said.By}
		if said.Reason != "" {
			memo[StartReasonMemo] = said.Reason
		}
		if err := workflow.UpsertMemo(ctx, memo); err != nil {
			logger(ctx).Warn("cannot keep who triggered the run", "error", err)
		}
	})
}
