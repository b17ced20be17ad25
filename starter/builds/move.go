package builds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/replay"
	"reprise/internal/program/rollout"
	"reprise/starter/cli"
	"reprise/starter/session"
)

func newMoveCommand(a *cli.App) *cobra.Command {
	o := &options{}
	var to string
	command := &cobra.Command{
		Use: "move RUN...", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == "" {
				return cli.UsageError("--to names the build that the runs move to")
			}
			for _, id := range args {
				if err := cli.CheckRun(id, ""); err != nil {
					return err
				}
			}
			return o.withDeployment(a, func(ctx context.Context, s *session.Session, d *rollout.Deployment) error {
				ids, err := findRoots(ctx, a, s, args)
				if err != nil {
					return err
				}
				return moveRuns(ctx, a, s, d, ids, to, o.output)
			})
		},
	}
	command.Flags().StringVar(&to, "to", "", "the build, which must be that of this starter")
	o.addFlags(command)
	return command
}

func newRetireCommand(a *cli.App) *cobra.Command {
	o := &options{}
	var to string
	command := &cobra.Command{
		Use: "retire ID", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.withDeployment(a, func(ctx context.Context, s *session.Session, d *rollout.Deployment) error {
				if args[0] == to {
					return cli.UsageError("build %s cannot be retired in favour of itself", to)
				}
				if err := d.CheckKnown(ctx, args[0]); err != nil {
					return err
				}
				switch gets, err := d.GetsNew(ctx, args[0]); {
				case err != nil:
					return err
				case gets:
					return cli.UsageError("build %s gets new runs, so it cannot be retired; make another one current first: %s builds current ID", args[0], terminal.ProgramName())
				}
				ids, err := d.PinnedRuns(ctx, args[0])
				if err != nil {
					return err
				}
				if len(ids) == 0 {
					a.Notef("no open run is pinned to build %s", args[0])
				}
				return moveRuns(ctx, a, s, d, ids, to, o.output)
			})
		},
	}
	command.Flags().StringVar(&to, "to", build.CurrentID(), "the build that the runs move to, which must be that of this starter")
	o.addFlags(command)
	return command
}

// findRoots finds runs by the beginnings of their IDs. Those that steps have started move only with their parents.
func findRoots(ctx context.Context, a *cli.App, s *session.Session, args []string) ([]string, error) {
	var ids []string
	for _, id := range args {
		found, err := session.FindRun(ctx, a.Streams, s, id, "")
		if err != nil {
			return nil, err
		}
		if found.IsChild() {
			return nil, cli.UsageError("%s was started by a step of another run, and moves only with it; move that run", found.WorkflowID)
		}
		if !slices.Contains(ids, found.WorkflowID) {
			ids = append(ids, found.WorkflowID)
		}
	}
	return ids, nil
}

// moves is what came of moving runs: the output as JSON.
type moves struct {
	Deployment string               `json:"deployment"`
	To         string               `json:"to"`
	Runs       []rollout.MoveReport `json:"runs"`
}

// moveRuns moves runs one after the other, and reports each. Those that do not fit stay where they are.
func moveRuns(ctx context.Context, a *cli.App, s *session.Session, d *rollout.Deployment, ids []string, to, output string) error {
	switch own := build.CurrentID(); {
	case own == "":
		return cli.UsageError("this starter does not know which build it is, so it cannot check that runs fit build %s; use the starter of that build, with its ID in %s",
			to, build.Variable)
	case to != own:
		return cli.UsageError("this starter is build %s, so it cannot check that runs fit build %s; use the starter of that build", own, to)
	}
	if err := d.CheckKnown(ctx, to); err != nil {
		return err
	}
	mover := &rollout.Mover{Client: s.Client, Store: s.Store, Deployment: d.Name, To: to}
	done, left := moves{Deployment: d.Name, To: to, Runs: []rollout.MoveReport{}}, 0
	var text strings.Builder
	for _, id := range ids {
		move, err := mover.MoveRun(ctx, id)
		if err != nil {
			a.Notef("%s", strings.TrimRight(text.String(), "\n"))
			return err
		}
		done.Runs = append(done.Runs, move)
		writeMove(&text, move, to)
		if !move.Fits() {
			left++
		}
	}
	if err := a.ShowDocument(output, done, text.String()); err != nil {
		return err
	}
	if left > 0 {
		a.Notef("%s of %s cannot move to build %s; the workers of the build that they are on must stay", terminal.NumberText(left), terminal.Count(len(ids), "run"), to)
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

// writeMove writes what came of moving a run for people.
func writeMove(b *strings.Builder, move rollout.MoveReport, to string) {
	id := terminal.EscapeInvisible(move.Run)
	switch {
	case move.Ended:
		fmt.Fprintf(b, "%s has ended\n", id)
	case move.Fits() && move.Moved == 0:
		fmt.Fprintf(b, "%s is on build %s already\n", id, to)
	case move.Fits():
		fmt.Fprintf(b, "%s: %s moved from %s to build %s\n", id, terminal.Count(move.Moved, "workflow"), nameBuild(move.From), to)
	default:
		fmt.Fprintf(b, "%s does not fit build %s and stays on %s\n", id, to, nameBuild(move.From))
	}
	for _, one := range move.Mismatches {
		b.WriteString(replay.DescribeMismatch(one))
	}
	for _, one := range move.Unread {
		fmt.Fprintf(b, "  not read: %s: %s\n", terminal.EscapeInvisible(one.WorkflowID), terminal.EscapeInvisible(one.Error))
	}
}

// nameBuild names the build that a run is on.
func nameBuild(of *runs.Build) string {
	if of == nil {
		return "workers without a build"
	}
	return "build " + terminal.EscapeInvisible(of.ID)
}
