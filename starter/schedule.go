package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/start"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

func newScheduleCommand(a *app) *cobra.Command {
	return newGroup("schedule", "schedules",
		newScheduleCreateCommand(a), newScheduleUpdateCommand(a), newScheduleListCommand(a), newScheduleShowCommand(a),
		newSchedulePauseCommand(a), newScheduleResumeCommand(a), newScheduleTriggerCommand(a), newScheduleBackfillCommand(a),
		newScheduleDeleteCommand(a),
	)
}

// knownZone refuses what is no time zone on this machine.
func knownZone(name string) error {
	_, err := time.LoadLocation(name)
	return err
}

// scheduledSuffix is what the server adds to the workflow ID of a schedule's action.
const scheduledSuffix = "-2006-01-02T15:04:05Z"

// checkSchedule refuses what is no name of a schedule.
func checkSchedule(name string) error {
	if err := checkID("the schedule's name", name); err != nil {
		return err
	}
	if most := protocol.MaxWorkflowID - len(scheduledSuffix); len(name) > most {
		return usageError("the schedule's name is %d bytes long; at most %d are allowed, so that the IDs of its runs have room for the time", len(name), most)
	}
	return nil
}

// withSchedule has a command work on the schedule that its argument names.
func (a *app) withSchedule(
	server *serverFlags, name string, work func(context.Context, *session, *runs.Schedule) error,
) error {
	if err := checkSchedule(name); err != nil {
		return err
	}
	return a.withServer(server, func(ctx context.Context, s *session) error {
		found, err := s.schedule(ctx, name)
		if err != nil {
			return err
		}
		return work(ctx, s, found)
	})
}

// schedule finds a schedule, and says what would work where there is none.
func (s *session) schedule(ctx context.Context, name string) (*runs.Schedule, error) {
	found, err := s.runs().Schedule(ctx, name)
	var missing *runs.NoScheduleError
	var ambiguous *runs.AmbiguousError
	switch {
	case errors.As(err, &missing) && missing.Nearest == "" && missing.Type == "":
		return nil, usageError("%w on %s, namespace %s; %s schedule list shows the existing ones", err, s.address, s.namespace, terminal.Program())
	case errors.As(err, &missing), errors.As(err, &ambiguous):
		return nil, usageError("%w", err)
	}
	return found, err
}

func (s *session) handle(ctx context.Context, found *runs.Schedule) client.ScheduleHandle {
	return s.client.ScheduleClient().GetHandle(ctx, found.ID)
}

// action starts what a plan says, as start.Run does. memo is that of the action before,
// where the code of the playbook is the one that it vouches for; else nil.
func (s *session) action(plan start.Plan, memo map[string]any) (*client.ScheduleWorkflowAction, error) {
	input, err := s.lastingInput(plan)
	if err != nil {
		return nil, err
	}
	return s.target().Action(plan, input, memo), nil
}

// submit submits the schedule that a plan is for.
func (s *session) submit(ctx context.Context, plan start.Plan, a *app, submit func(start.Plan) error) error {
	known, err := s.prepare(ctx, plan, a)
	if err != nil {
		return err
	}
	return start.WithAttributes(ctx, plan, known, submit)
}

// lastingInput is the input of a plan as the schedule keeps it: in Temporal, whatever
// its size. Values in the payload store are deleted by age, and a schedule may be
// older.
func (s *session) lastingInput(plan start.Plan) (*commonpb.Payload, error) {
	input, err := converter.GetDefaultDataConverter().ToPayload(plan.Input)
	if err != nil {
		return nil, usageError("the workload: %w", err)
	}
	if size := len(input.GetData()); size > interpreter.MaxInlinePayload {
		return nil, usageError("the playbook and its workload have %d bytes, and a schedule can keep %d; "+
			"let the playbook fetch large data", size, interpreter.MaxInlinePayload)
	}
	if s.store == nil {
		return input, nil
	}
	return s.store.Inline(input), nil
}

// scheduleError says what the server has refused.
func scheduleError(what, name string, err error) error {
	var stated *statusError
	switch {
	case errors.As(err, &stated), errors.Is(err, start.ErrInterrupted):
		return err
	case connect.InvalidArgument(err):
		return usageError("the server refused the schedule %s: %w", name, err)
	}
	return fmt.Errorf("%s the schedule %s: %w", what, name, err)
}
