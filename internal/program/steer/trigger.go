package steer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/internal/base/sleep"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// Outcomes of triggering a schedule.
const (
	Started = "started"
	Skipped = "skipped" // another run is open, and the schedule skips then
	Waiting = "waiting" // the run has not begun yet
)

// TriggerResult is the result of triggering a schedule. The IDs are empty if the run has not begun.
type TriggerResult struct{ Outcome, WorkflowID, RunID string }

// TriggerSchedule makes a schedule start a run now, and waits for the run for a limited time. It first records in the
// schedule who did that, and why, so that the run has it from its start.
func (s *Dispatcher) TriggerSchedule(
	ctx context.Context, found *runs.Schedule, overlap enumspb.ScheduleOverlapPolicy, said interpreter.Said, patience time.Duration,
) (TriggerResult, error) {
	// The IDs of scheduled runs contain the second: if two are due in the same second, the server starts only one.
	recent := found.Described.Info.RecentActions
	if n := len(recent); n > 0 && time.Since(recent[n-1].ActualTime) < time.Second {
		if err := sleep.For(ctx, time.Second); err != nil {
			return TriggerResult{}, err
		}
	}
	if max(len(said.By), len(said.Reason)) > protocol.MaxSaid {
		return TriggerResult{}, fmt.Errorf("the name of who triggers the schedule and the reason may have at most %d bytes each", protocol.MaxSaid)
	}
	at := time.Now().UTC().Truncate(time.Second)
	if err := s.recordTrigger(ctx, found.ID, at, said); err != nil {
		return TriggerResult{}, err
	}
	_, err := s.Client.WorkflowService().PatchSchedule(ctx, &workflowservice.PatchScheduleRequest{
		Namespace: s.Namespace, ScheduleId: found.ID, RequestId: uuid.NewString(),
		Patch: &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{
			OverlapPolicy: overlap, ScheduledTime: timestamppb.New(at),
		}},
	})
	if err != nil {
		return TriggerResult{}, err
	}
	return s.awaitTriggered(ctx, found, patience)
}

const (
	// mostTriggers is how many triggers a schedule's memo holds: those whose runs may not have begun. Each makes the
	// memo larger, and Temporal accepts up to 2 MB.
	mostTriggers = 20
	// mostRecordings is how often a trigger is recorded again after another update of the schedule undid it: programs
	// that constantly update it would block the command forever.
	mostRecordings = 5
)

// recordTrigger records in the memo of a schedule's action who triggers it at a time. The server ignores, without an
// error, an update of a schedule that has changed since it was described.
func (s *Dispatcher) recordTrigger(ctx context.Context, id string, at time.Time, said interpreter.Said) error {
	for range mostRecordings {
		described, err := s.Client.WorkflowService().DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{Namespace: s.Namespace, ScheduleId: id})
		if err != nil {
			return err
		}
		recorded, err := addTrigger(described.GetSchedule().GetAction().GetStartWorkflow(), protocol.TriggerKey(at), said)
		if recorded || err != nil {
			return err
		}
		_, err = s.Client.WorkflowService().UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{
			Namespace: s.Namespace, ScheduleId: id, Schedule: described.GetSchedule(), ConflictToken: described.GetConflictToken(), RequestId: uuid.NewString(),
		})
		if err != nil {
			return err
		}
	}
	return nil // others change it all the time: who triggers it is not worth refusing the trigger
}

// addTrigger adds who triggers a schedule at a time to the memo of its action; true if it is there already.
func addTrigger(action *workflowpb.NewWorkflowExecutionInfo, key string, said interpreter.Said) (recorded bool, err error) {
	if action == nil {
		return true, nil // it starts no workflow
	}
	triggers, plain := map[string]interpreter.Said{}, converter.GetDefaultDataConverter()
	if payload := action.GetMemo().GetFields()[protocol.TriggersMemo]; payload != nil {
		_ = plain.FromPayload(payload, &triggers) // what cannot be read is replaced
	}
	said = interpreter.Said{By: said.By, Reason: said.Reason}
	if triggers[key] == said {
		return true, nil
	}
	triggers[key] = said
	keys := slices.Sorted(maps.Keys(triggers))
	for _, old := range keys[:max(len(keys)-mostTriggers, 0)] {
		delete(triggers, old)
	}
	payload, err := plain.ToPayload(triggers)
	if err != nil {
		return false, err
	}
	if action.Memo == nil {
		action.Memo = &commonpb.Memo{}
	}
	if action.Memo.Fields == nil {
		action.Memo.Fields = map[string]*commonpb.Payload{}
	}
	action.Memo.Fields[protocol.TriggersMemo] = payload
	return false, nil
}

// awaitTriggered waits for a run that the schedule did not have before.
func (s *Dispatcher) awaitTriggered(ctx context.Context, before *runs.Schedule, patience time.Duration) (TriggerResult, error) {
	known := func(one client.ScheduleActionResult) bool {
		return slices.ContainsFunc(before.Described.Info.RecentActions, func(old client.ScheduleActionResult) bool {
			return old.StartWorkflowResult != nil && *old.StartWorkflowResult == *one.StartWorkflowResult
		})
	}
	handle := s.Client.ScheduleClient().GetHandle(ctx, before.ID)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		now, err := handle.Describe(ctx)
		if err != nil {
			return TriggerResult{}, fmt.Errorf("look for the run of %s: %w", before.ID, err)
		}
		for _, one := range now.Info.RecentActions {
			late := one.ActualTime.Sub(one.ScheduleTime) > time.Minute // a backfill's
			if run := one.StartWorkflowResult; run != nil && !late && !known(one) {
				return TriggerResult{Started, run.WorkflowID, run.FirstExecutionRunID}, nil
			}
		}
		if now.Info.NumActionsSkippedOverlap > before.Described.Info.NumActionsSkippedOverlap {
			return TriggerResult{Outcome: Skipped}, nil
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return TriggerResult{}, err
		}
	}
	return TriggerResult{Outcome: Waiting}, nil
}
