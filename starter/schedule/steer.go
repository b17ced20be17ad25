package schedule

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reprise/workflows/protocol"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/starter/wording"
)

func newSchedulePauseCommand(a *cli.App) *cobra.Command {
	return notedCommand(a, &cobra.Command{Use: "pause NAME"}, "paused", func(ctx context.Context, s *session.Session, found *runs.Schedule, note string) error {
		if state := found.Described.Schedule.State; state.Paused && note == "" {
			return a.PrintLine("%s is already paused: %s", found.ID, terminal.Shorten(state.Note, protocol.MaxSaid))
		}
		err := handleOf(ctx, s, found).Pause(ctx, client.SchedulePauseOptions{Note: cmp.Or(note, "by "+cli.Whoami())})
		if err != nil {
			return scheduleError("pause", found.ID, err)
		}
		return a.PrintLine("%s is paused; no run starts until %s schedule resume %s", found.ID, terminal.ProgramName(), found.ID)
	})
}

func newScheduleResumeCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "resume NAME", Aliases: []string{"unpause"}}
	return notedCommand(a, command, "resumed", func(ctx context.Context, s *session.Session, found *runs.Schedule, note string) error {
		if !found.Described.Schedule.State.Paused {
			return a.PrintLine("%s was not paused", found.ID)
		}
		err := handleOf(ctx, s, found).Unpause(ctx, client.ScheduleUnpauseOptions{Note: cmp.Or(note, "resumed by "+cli.Whoami())})
		if err != nil {
			return scheduleError("resume", found.ID, err)
		}
		return printSchedule(ctx, a.Streams, s, found.ID, "is resumed", "table")
	})
}

// notedCommand completes a command that changes a schedule: it adds --reason, and prints done on success.
func notedCommand(a *cli.App, command *cobra.Command, done string, change func(context.Context, *session.Session, *runs.Schedule, string) error) *cobra.Command {
	var server session.ServerFlags
	var note string
	command.Args = cobra.ExactArgs(1)
	command.RunE = func(_ *cobra.Command, args []string) error {
		if err := cli.CheckNote("reason", note); err != nil {
			return err
		}
		return withSchedule(a, &server, args[0], func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
			return change(ctx, s, found, note)
		})
	}
	command.Flags().StringVar(&note, "reason", "", "the reason, shown with the schedule; default: who "+done+" it")
	cli.RenamedFlag(command, "note", "reason")
	server.Add(command)
	return command
}

func newScheduleTriggerCommand(a *cli.App) *cobra.Command {
	var server session.ServerFlags
	var overlap, reason, output string
	command := &cobra.Command{
		Use: "trigger NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckNote("reason", reason); err != nil {
				return err
			}
			if overlap != "" {
				if err := cli.CheckChoice("--overlap", overlap, playbook.Overlaps); err != nil {
					return err
				}
			}
			return withSchedule(a, &server, args[0], func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
				return triggerNow(ctx, a.Streams, s, found, overlap, reason, output)
			})
		},
	}
	command.Flags().StringVar(&overlap, "overlap", "", "what happens if another run is open: "+overlapChoices)
	command.Flags().StringVar(&reason, "reason", "", "the reason, kept with the run and its author")
	server.Add(command)
	cli.OutputFlag(command, &output)
	return command
}

// TriggeredRun is the JSON output of schedule trigger. The IDs are empty if the run has not started yet.
type TriggeredRun struct {
	Schedule   string `json:"schedule"`
	Outcome    string `json:"outcome"` // started, skipped or waiting
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

func triggerNow(ctx context.Context, streams cli.Streams, s *session.Session, found *runs.Schedule, overlap, reason, output string) error {
	made, err := s.Dispatcher().TriggerSchedule(ctx, found, timetable.OverlapPolicy(overlap), interpreter.Said{By: cli.Whoami(), Reason: reason}, triggerPatience)
	switch {
	case ctx.Err() != nil:
		return cli.WithStatus(exitcode.Interrupted, ctx.Err())
	case err != nil:
		return scheduleError("trigger", found.ID, err)
	}
	result := TriggeredRun{Schedule: found.ID, Outcome: made.Outcome, WorkflowID: made.WorkflowID, RunID: made.RunID}
	switch {
	case output == "json":
		if err := terminal.PrintJSON(streams.Out, result); err != nil {
			return err
		}
	case result.Outcome == steer.Started:
		link := ""
		if page := s.PageOf(result.WorkflowID, result.RunID); page != "" {
			link = ": " + page
		}
		return streams.PrintLine("%s runs%s", result.WorkflowID, link)
	case result.Outcome == steer.Waiting:
		streams.Notef("the run has not started yet; %s schedule show %s shows it when it has", terminal.ProgramName(), found.ID)
	}
	if result.Outcome == steer.Skipped {
		return cli.WithStatus(exitcode.Failed, fmt.Errorf(
			"no run of %s was started: another run is open, and overlap is skip; choose otherwise with --overlap", found.ID))
	}
	return nil
}

// triggerPatience is how long trigger waits for its run.
const triggerPatience = 10 * time.Second

// backfillOptions are the flags of schedule backfill.
type backfillOptions struct {
	server            session.ServerFlags
	from, to, overlap string
	yes               bool
}

// Limits of a backfill: how many runs it starts without confirmation, and at most. The server starts thousands at
// once, so a mistaken unit could be costly.
const (
	unasked = 100
	// mostBackfilled bounds how many runs a backfill starts, even if confirmed. All of them start within seconds, and
	// the server has no command to undo that.
	mostBackfilled = 10_000
)

// backfillOverlap is the default policy of a backfill: with skip, which most schedules use, only the first run would
// start.
const backfillOverlap = "buffer-all"

func newScheduleBackfillCommand(a *cli.App) *cobra.Command {
	options := &backfillOptions{}
	command := &cobra.Command{
		Use: "backfill NAME --from TIME --to TIME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckChoice("--overlap", options.overlap, playbook.Overlaps); err != nil {
				return err
			}
			if options.from == "" || options.to == "" {
				return cli.UsageError("--from and --to are required, such as --from 2026-01-01 --to 2026-01-08")
			}
			for _, flag := range []struct{ name, text string }{{"--from", options.from}, {"--to", options.to}} {
				if _, err := playbook.ParseMoment(flag.text, time.UTC); err != nil {
					return cli.UsageError("%s %w", flag.name, err)
				}
			}
			return withSchedule(a, &options.server, args[0], func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
				return backfillRuns(ctx, a.Streams, s, found, options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.from, "from", "", "the first time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&options.to, "to", "", "the last time")
	flags.StringVar(&options.overlap, "overlap", backfillOverlap, "what happens if another run is open: "+overlapChoices)
	flags.BoolVar(&options.yes, "yes", false, "start many runs without a confirmation")
	options.server.Add(command)
	return command
}

func backfillRuns(ctx context.Context, streams cli.Streams, s *session.Session, found *runs.Schedule, options *backfillOptions) error {
	name := timetable.Read(found.Described.Schedule).Zone
	zone, err := time.LoadLocation(name)
	if err != nil {
		return cli.UsageError("this machine does not know the time zone %s of the schedule; write --from and --to with their offset from UTC", name)
	}
	from, _ := playbook.ParseMoment(options.from, zone) // read before
	to, _ := playbook.ParseMoment(options.to, zone)
	switch {
	case to.Before(from):
		return cli.UsageError("--to %s is before --from %s", options.to, options.from)
	case to.After(time.Now()):
		return cli.UsageError("--to %s is in the future; the schedule itself starts those runs", options.to)
	}
	if err := confirmBackfill(ctx, streams, s, found, from, to, options.yes); err != nil {
		return err
	}
	err = handleOf(ctx, s, found).Backfill(ctx, client.ScheduleBackfillOptions{
		Backfill: []client.ScheduleBackfill{{Start: from, End: to, Overlap: timetable.OverlapPolicy(options.overlap)}},
	})
	if err != nil {
		return scheduleError("backfill", found.ID, err)
	}
	return streams.PrintLine("%s starts a run for each of its times from %s to %s (%s); %s schedule show %s shows them",
		found.ID, wording.TimeInZone(from, name), wording.TimeInZone(to, name), options.overlap, terminal.ProgramName(), found.ID)
}

func newScheduleDeleteCommand(a *cli.App) *cobra.Command {
	var server session.ServerFlags
	var yes bool
	command := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withSchedule(a, &server, args[0], func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
				if found.ID != args[0] {
					return cli.UsageError("there is no schedule %q; to delete %q, write its whole name", args[0], found.ID)
				}
				question := fmt.Sprintf("Delete the schedule %s of the playbook %s?", found.ID, found.Playbook)
				if err := a.Confirm(yes, question); err != nil {
					return err
				}
				if err := handleOf(ctx, s, found).Delete(ctx); err != nil {
					return scheduleError("delete", found.ID, err)
				}
				return a.PrintLine("deleted %s; its open runs continue", found.ID)
			})
		},
	}
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for a confirmation")
	server.Add(command)
	return command
}

// confirmBackfill asks for confirmation of a backfill of many runs, and refuses one that exceeds mostBackfilled.
func confirmBackfill(ctx context.Context, streams cli.Streams, s *session.Session, found *runs.Schedule, from, to time.Time, yes bool) error {
	count, more, err := s.Runs().Schedules().CountTimes(ctx, found, from, to, mostBackfilled)
	switch {
	case err != nil:
		return scheduleError("backfill", found.ID, err)
	case more:
		return cli.UsageError("%s has more than %d times from %s to %s; use a shorter range, or pass the whole range to the playbook as workload",
			found.ID, mostBackfilled, from.Format(time.RFC3339), to.Format(time.RFC3339))
	case count > unasked:
		return streams.Confirm(yes, fmt.Sprintf("Start %d runs of %s?", count, found.ID))
	}
	return nil
}
