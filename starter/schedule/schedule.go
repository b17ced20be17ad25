// Package schedule has the commands for schedules.
package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/start"
	"reprise/interpreter"
	"reprise/starter/cli"
	"reprise/starter/launch"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// NewScheduleCommand returns the command schedule.
func NewScheduleCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("schedule", "schedules",
		newScheduleCreateCommand(a), newScheduleUpdateCommand(a), newScheduleListCommand(a), newScheduleShowCommand(a),
		newSchedulePauseCommand(a), newScheduleResumeCommand(a), newScheduleTriggerCommand(a), newScheduleBackfillCommand(a),
		newScheduleDeleteCommand(a),
	)
}

// scheduledSuffix is the suffix that the server appends to the workflow ID of a schedule's action.
const scheduledSuffix = "-2006-01-02T15:04:05Z"

// checkSchedule rejects names that cannot name a schedule.
func checkSchedule(name string) error {
	if err := cli.CheckID("the schedule's name", name); err != nil {
		return err
	}
	if most := protocol.MaxWorkflowID - len(scheduledSuffix); len(name) > most {
		return cli.UsageError("the schedule's name is %d bytes long; at most %d are allowed, so that the IDs of its runs have room for the time", len(name), most)
	}
	return nil
}

// withSchedule calls work with the schedule that has a name.
func withSchedule(
	a *cli.App, server *session.ServerFlags, name string, work func(context.Context, *session.Session, *runs.Schedule) error,
) error {
	if err := checkSchedule(name); err != nil {
		return err
	}
	return session.WithServer(a, server, func(ctx context.Context, s *session.Session) error {
		found, err := findSchedule(ctx, s, name)
		if err != nil {
			return err
		}
		return work(ctx, s, found)
	})
}

// findSchedule returns a schedule by its ID. The error for an unknown one suggests similar IDs.
func findSchedule(ctx context.Context, s *session.Session, name string) (*runs.Schedule, error) {
	found, err := s.Runs().Schedules().Find(ctx, name)
	var missing *runs.NoScheduleError
	var ambiguous *runs.AmbiguousError
	switch {
	case errors.As(err, &missing) && missing.Nearest == "" && missing.Type == "":
		return nil, cli.UsageError("%w on %s, namespace %s; %s schedule list shows the existing ones", err, s.Address, s.Namespace, terminal.ProgramName())
	case errors.As(err, &missing), errors.As(err, &ambiguous):
		return nil, cli.UsageError("%w", err)
	}
	return found, err
}

func handleOf(ctx context.Context, s *session.Session, found *runs.Schedule) client.ScheduleHandle {
	return s.Client.ScheduleClient().GetHandle(ctx, found.ID)
}

// scheduleAction returns the action that starts a planned run as start.StartRun does. memo is the present action's memo,
// if it vouches for the same code, else nil.
func scheduleAction(s *session.Session, plan start.Plan, memo map[string]any) (*client.ScheduleWorkflowAction, error) {
	input, err := lastingInput(s, plan)
	if err != nil {
		return nil, err
	}
	return s.Destination().ScheduleAction(plan, input, memo), nil
}

// SubmitSchedule calls submit to create or update a schedule, with the search attributes that the namespace has.
func SubmitSchedule(ctx context.Context, s *session.Session, plan start.Plan, streams cli.Streams, submit func(start.Plan) error) error {
	known, err := launch.PrepareRun(ctx, s, plan, streams)
	if err != nil {
		return err
	}
	return start.WithAttributes(ctx, plan, known, submit)
}

// lastingInput returns the input of a plan for a schedule. It is stored in Temporal whatever its size, because values
// in the payload store are deleted by age and a schedule may outlive that.
func lastingInput(s *session.Session, plan start.Plan) (*commonpb.Payload, error) {
	input, err := converter.GetDefaultDataConverter().ToPayload(plan.Input)
	if err != nil {
		return nil, cli.UsageError("the workload: %w", err)
	}
	if size := len(input.GetData()); size > interpreter.MaxInlinePayload {
		return nil, cli.UsageError("the playbook and its workload have %d bytes, and a schedule can keep %d; "+
			"let the playbook fetch large data", size, interpreter.MaxInlinePayload)
	}
	if s.Store == nil {
		return input, nil
	}
	return s.Store.MarkInline(input), nil
}

// scheduleError returns an error of the server with what was attempted and the schedule's name.
func scheduleError(what, name string, err error) error {
	var stated *cli.StatusError
	switch {
	case errors.As(err, &stated), errors.Is(err, start.ErrInterrupted):
		return err
	case connect.IsInvalidArgument(err):
		return cli.UsageError("the server refused the schedule %s: %w", name, err)
	}
	return fmt.Errorf("%s the schedule %s: %w", what, name, err)
}
