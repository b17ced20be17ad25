package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// mostNote bounds a note, or a reason, in bytes.
const mostNote = steer.MostReason

func checkNote(flag, note string) error {
	if len(note) > mostNote {
		return usageError("--%s has %d bytes; at most %d are kept", flag, len(note), mostNote)
	}
	return nil
}

func newSchedulePauseCommand(a *app) *cobra.Command {
	return a.notedCommand(&cobra.Command{Use: "pause NAME"}, "paused", func(ctx context.Context, s *session, found *runs.Schedule, note string) error {
		if state := found.Described.Schedule.State; state.Paused && note == "" {
			return a.printLine("%s is already paused: %s", found.ID, terminal.Shorten(state.Note, mostNote))
		}
		err := s.handle(ctx, found).Pause(ctx, client.SchedulePauseOptions{Note: cmp.Or(note, "by "+whoami())})
		if err != nil {
			return scheduleError("pause", found.ID, err)
		}
		return a.printLine("%s is paused; no run starts until %s schedule resume %s", found.ID, terminal.Program(), found.ID)
	})
}

func newScheduleResumeCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "resume NAME", Aliases: []string{"unpause"}}
	return a.notedCommand(command, "resumed", func(ctx context.Context, s *session, found *runs.Schedule, note string) error {
		if !found.Described.Schedule.State.Paused {
			return a.printLine("%s was not paused", found.ID)
		}
		err := s.handle(ctx, found).Unpause(ctx, client.ScheduleUnpauseOptions{Note: cmp.Or(note, "resumed by "+whoami())})
		if err != nil {
			return scheduleError("resume", found.ID, err)
		}
		return a.printSchedule(ctx, s, found.ID, "is resumed", "table")
	})
}

// notedCommand completes a command that changes a schedule with a note. done is what it has done then.
func (a *app) notedCommand(command *cobra.Command, done string, change func(context.Context, *session, *runs.Schedule, string) error) *cobra.Command {
	var server serverFlags
	var note string
	command.Args = cobra.ExactArgs(1)
	command.RunE = func(_ *cobra.Command, args []string) error {
		if err := checkNote("reason", note); err != nil {
			return err
		}
		return a.withSchedule(&server, args[0], func(ctx context.Context, s *session, found *runs.Schedule) error {
			return change(ctx, s, found, note)
		})
	}
	command.Flags().StringVar(&note, "reason", "", "the reason, shown with the schedule; default: who "+done+" it")
	renamedFlag(command, "note", "reason")
	server.add(command)
	return command
}

// show writes what a command has found: a document for programs, or a text.
func (a *app) show(output string, document any, text string) error {
	if output == "json" {
		return terminal.PrintJSON(a.Out, document)
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// printLine writes a line to the standard output.
func (a *app) printLine(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

func newScheduleTriggerCommand(a *app) *cobra.Command {
	var server serverFlags
	var overlap, reason, output string
	command := &cobra.Command{
		Use: "trigger NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkNote("reason", reason); err != nil {
				return err
			}
			if overlap != "" {
				if err := choice("--overlap", overlap, playbook.Overlaps); err != nil {
					return err
				}
			}
			return a.withSchedule(&server, args[0], func(ctx context.Context, s *session, found *runs.Schedule) error {
				return a.trigger(ctx, s, found, overlap, reason, output)
			})
		},
	}
	command.Flags().StringVar(&overlap, "overlap", "", "what happens if another run is open: "+overlapChoices)
	command.Flags().StringVar(&reason, "reason", "", "the reason, kept with the run and its author")
	server.add(command)
	outputFlag(command, &output)
	return command
}

// triggered is what schedule trigger prints as JSON; without IDs where the run has
// not begun yet.
type triggered struct {
	Schedule   string `json:"schedule"`
	Outcome    string `json:"outcome"` // started, skipped or waiting
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

func (a *app) trigger(ctx context.Context, s *session, found *runs.Schedule, overlap, reason, output string) error {
	made, err := s.sender().Trigger(ctx, found, timetable.OverlapPolicy(overlap), interpreter.Said{By: whoami(), Reason: reason}, triggerPatience)
	switch {
	case ctx.Err() != nil:
		return withStatus(exitInterrupted, ctx.Err())
	case err != nil:
		return scheduleError("trigger", found.ID, err)
	}
	result := triggered{Schedule: found.ID, Outcome: made.Outcome, WorkflowID: made.WorkflowID, RunID: made.RunID}
	switch {
	case output == "json":
		if err := terminal.PrintJSON(a.Out, result); err != nil {
			return err
		}
	case result.Outcome == steer.Started:
		link := ""
		if ui := s.link(result.WorkflowID, result.RunID); ui != "" {
			link = ": " + ui
		}
		return a.printLine("%s runs%s", result.WorkflowID, link)
	case result.Outcome == steer.Waiting:
		a.notef("the run has not started yet; %s schedule show %s shows it when it has", terminal.Program(), found.ID)
	}
	if result.Outcome == steer.Skipped {
		return withStatus(exitFailed, fmt.Errorf(
			"no run of %s was started: another run is open, and overlap is skip; choose otherwise with --overlap", found.ID))
	}
	return nil
}

// triggerPatience is how long trigger searches for its run.
const triggerPatience = 10 * time.Second

// backfillOptions is the command line of schedule backfill.
type backfillOptions struct {
	server            serverFlags
	from, to, overlap string
	yes               bool
}

// Bounds of a backfill: how many runs it begins without a question, and at most. The
// server backfills thousands at once, and a mistaken unit would start them all.
const (
	unasked        = 100
	mostBackfilled = 10_000
)

// backfillOverlap is the default: with that of most schedules, skip, only the first of
// all runs would begin.
const backfillOverlap = "buffer-all"

func newScheduleBackfillCommand(a *app) *cobra.Command {
	options := &backfillOptions{}
	command := &cobra.Command{
		Use: "backfill NAME --from TIME --to TIME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := choice("--overlap", options.overlap, playbook.Overlaps); err != nil {
				return err
			}
			if options.from == "" || options.to == "" {
				return usageError("--from and --to are required, such as --from 2026-01-01 --to 2026-01-08")
			}
			for _, flag := range []struct{ name, text string }{{"--from", options.from}, {"--to", options.to}} {
				if _, err := playbook.Moment(flag.text, time.UTC); err != nil {
					return usageError("%s %w", flag.name, err)
				}
			}
			return a.withSchedule(&options.server, args[0], func(ctx context.Context, s *session, found *runs.Schedule) error {
				return a.backfill(ctx, s, found, options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.from, "from", "", "the first time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&options.to, "to", "", "the last time")
	flags.StringVar(&options.overlap, "overlap", backfillOverlap, "what happens if another run is open: "+overlapChoices)
	flags.BoolVar(&options.yes, "yes", false, "start many runs without a confirmation")
	options.server.add(command)
	return command
}

func (a *app) backfill(ctx context.Context, s *session, found *runs.Schedule, options *backfillOptions) error {
	name := timetable.Read(found.Described.Schedule).Zone
	zone, err := time.LoadLocation(name)
	if err != nil {
		return usageError("this machine does not know the time zone %s of the schedule; write --from and --to with their offset from UTC", name)
	}
	from, _ := playbook.Moment(options.from, zone) // read before
	to, _ := playbook.Moment(options.to, zone)
	switch {
	case to.Before(from):
		return usageError("--to %s is before --from %s", options.to, options.from)
	case to.After(time.Now()):
		return usageError("--to %s is in the future; the schedule itself starts those runs", options.to)
	}
	if err := a.confirmBackfill(ctx, s, found, from, to, options.yes); err != nil {
		return err
	}
	err = s.handle(ctx, found).Backfill(ctx, client.ScheduleBackfillOptions{
		Backfill: []client.ScheduleBackfill{{Start: from, End: to, Overlap: timetable.OverlapPolicy(options.overlap)}},
	})
	if err != nil {
		return scheduleError("backfill", found.ID, err)
	}
	return a.printLine("%s starts a run for each of its times from %s to %s (%s); %s schedule show %s shows them",
		found.ID, inZone(from, name), inZone(to, name), options.overlap, terminal.Program(), found.ID)
}

func newScheduleDeleteCommand(a *app) *cobra.Command {
	var server serverFlags
	var yes bool
	command := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withSchedule(&server, args[0], func(ctx context.Context, s *session, found *runs.Schedule) error {
				if found.ID != args[0] {
					return usageError("there is no schedule %q; to delete %q, write its whole name", args[0], found.ID)
				}
				question := fmt.Sprintf("Delete the schedule %s of the playbook %s?", found.ID, found.Playbook)
				if err := a.confirm(yes, question); err != nil {
					return err
				}
				if err := s.handle(ctx, found).Delete(ctx); err != nil {
					return scheduleError("delete", found.ID, err)
				}
				return a.printLine("deleted %s; its open runs continue", found.ID)
			})
		},
	}
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for a confirmation")
	server.add(command)
	return command
}

// confirmBackfill asks about a backfill of many runs, and refuses one of more.
func (a *app) confirmBackfill(ctx context.Context, s *session, found *runs.Schedule, from, to time.Time, yes bool) error {
	count, more, err := s.runs().ScheduledTimes(ctx, found, from, to, mostBackfilled)
	switch {
	case err != nil:
		return scheduleError("backfill", found.ID, err)
	case more:
		return usageError("%s has more than %d times from %s to %s; use a shorter range, or pass the whole range to the playbook as workload",
			found.ID, mostBackfilled, from.Format(time.RFC3339), to.Format(time.RFC3339))
	case count > unasked:
		return a.confirm(yes, fmt.Sprintf("Start %d runs of %s?", count, found.ID))
	}
	return nil
}
