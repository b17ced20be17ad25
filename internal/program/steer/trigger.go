package steer

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/sleep"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/workflows"
)

// Outcomes of a trigger.
const (
	Started = "started"
	Skipped = "skipped" // another run is open, and the schedule skips then
	Waiting = "waiting" // the run has not begun yet
)

// Triggered is what came of a trigger. Without IDs the run has not begun.
type Triggered struct{ Outcome, WorkflowID, RunID string }

// Trigger has a schedule start a run now, waits so long for the run, and signals to it who did that
// and why. A run that begins later, or has ended at once, does not know.
func (s *Sender) Trigger(
	ctx context.Context, found *runs.Schedule, overlap enumspb.ScheduleOverlapPolicy, said interpreter.Said, patience time.Duration,
) (Triggered, error) {
	// The IDs of runs name the second: of two in one second the server starts one.
	recent := found.Described.Info.RecentActions
	if n := len(recent); n > 0 && time.Since(recent[n-1].ActualTime) < time.Second {
		if err := sleep.For(ctx, time.Second); err != nil {
			return Triggered{}, err
		}
	}
	if err := s.Client.ScheduleClient().GetHandle(ctx, found.ID).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: overlap}); err != nil {
		return Triggered{}, err
	}
	result, err := s.awaitTriggered(ctx, found, patience)
	if err == nil && result.Outcome == Started {
		_ = s.Client.SignalWorkflow(ctx, result.WorkflowID, result.RunID, workflows.TriggeredSignal, said) // it may have ended
	}
	return result, err
}

// awaitTriggered finds the run that was not there before.
func (s *Sender) awaitTriggered(ctx context.Context, before *runs.Schedule, patience time.Duration) (Triggered, error) {
	known := func(one client.ScheduleActionResult) bool {
		return slices.ContainsFunc(before.Described.Info.RecentActions, func(old client.ScheduleActionResult) bool {
			return old.StartWorkflowResult != nil && *old.StartWorkflowResult == *one.StartWorkflowResult
		})
	}
	handle := s.Client.ScheduleClient().GetHandle(ctx, before.ID)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		now, err := handle.Describe(ctx)
		if err != nil {
			return Triggered{}, fmt.Errorf("look for the run of %s: %w", before.ID, err)
		}
		for _, one := range now.Info.RecentActions {
			late := one.ActualTime.Sub(one.ScheduleTime) > time.Minute // a backfill's
			if run := one.StartWorkflowResult; run != nil && !late && !known(one) {
				return Triggered{Started, run.WorkflowID, run.FirstExecutionRunID}, nil
			}
		}
		if now.Info.NumActionsSkippedOverlap > before.Described.Info.NumActionsSkippedOverlap {
			return Triggered{Outcome: Skipped}, nil
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return Triggered{}, err
		}
	}
	return Triggered{Outcome: Waiting}, nil
}
