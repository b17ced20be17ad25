// Package builds has the commands that show and choose the builds of workers, and move runs between them.
package builds

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/rollout"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// options is the command line that the commands share.
type options struct {
	server     session.ServerFlags
	deployment string
	output     string
}

func (o *options) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.deployment, "deployment", os.Getenv(build.DeploymentVariable),
		"the deployment; default that of the task queue ["+build.DeploymentVariable+"]")
	o.server.Add(command)
	cli.OutputFlag(command, &o.output)
}

// withDeployment has a command work on the deployment.
func (o *options) withDeployment(a *cli.App, work func(context.Context, *session.Session, *rollout.Deployment) error) error {
	return session.WithServer(a, &o.server, func(ctx context.Context, s *session.Session) error {
		deployment, err := s.Deployment(ctx, o.deployment)
		if err != nil {
			return err
		}
		return usageIfRefused(work(ctx, s, deployment))
	})
}

// usageIfRefused gives an error of the server about the request the status of a wrong command line.
func usageIfRefused(err error) error {
	if errors.Is(err, rollout.ErrRefused) {
		return cli.WithStatus(exitcode.Usage, err)
	}
	return err
}

// NewBuildsCommand returns the command builds.
func NewBuildsCommand(a *cli.App) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: "builds", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return o.withDeployment(a, func(ctx context.Context, _ *session.Session, d *rollout.Deployment) error {
				return listBuilds(ctx, a, d, o.output)
			})
		},
	}
	o.addFlags(command)
	command.AddCommand(
		newRouteCommand(a, "current ID", (*rollout.Deployment).MakeCurrent, "new runs go to build %s"),
		newRampCommand(a),
		newMoveCommand(a), newRetireCommand(a),
		newRouteCommand(a, "delete ID", (*rollout.Deployment).DeleteBuild, "build %s is deleted"),
	)
	return command
}

// newRouteCommand returns a command that changes one build. done says in words that it has.
func newRouteCommand(a *cli.App, use string, change func(*rollout.Deployment, context.Context, string) error, done string) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: use, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.withDeployment(a, func(ctx context.Context, _ *session.Session, d *rollout.Deployment) error {
				if err := change(d, ctx, args[0]); err != nil {
					return err
				}
				a.Notef(done+" of deployment %s", args[0], d.Name)
				return listBuilds(ctx, a, d, o.output)
			})
		},
	}
	o.addFlags(command)
	return command
}

func newRampCommand(a *cli.App) *cobra.Command {
	o := &options{}
	var percent float32
	command := &cobra.Command{
		Use: "ramp ID", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if percent < 0 || percent > 100 {
				return cli.UsageError("--percent is %g, expected 0 to 100", percent)
			}
			return o.withDeployment(a, func(ctx context.Context, _ *session.Session, d *rollout.Deployment) error {
				if err := d.RampBuild(ctx, args[0], percent); err != nil {
					return err
				}
				a.Notef("%g %% of new runs go to build %s of deployment %s", percent, args[0], d.Name)
				return listBuilds(ctx, a, d, o.output)
			})
		},
	}
	command.Flags().Float32Var(&percent, "percent", 5, "percentage of new runs that the build gets, 0 to 100")
	o.addFlags(command)
	return command
}

// listBuilds prints the builds of a deployment.
func listBuilds(ctx context.Context, a *cli.App, d *rollout.Deployment, output string) error {
	now := time.Now()
	all, err := d.ListBuilds(ctx, now)
	if err != nil {
		return err
	}
	if err := a.ShowDocument(output, all, buildsTable(all, now, terminal.PaperOf(a.Out))); err != nil {
		return err
	}
	for _, note := range all.OperatorNotes() {
		a.Notef("note: %s", note.Text)
	}
	return nil
}

// buildsTable is the table of builds for people.
func buildsTable(all rollout.Builds, now time.Time, paper terminal.Paper) string {
	rows := terminal.NewTable("build", "status", "workers", "open runs", "oldest run")
	for _, one := range all.Builds {
		status := one.Status
		if one.Status == rollout.Ramping {
			status += " " + strconv.FormatFloat(float64(one.Percent), 'g', -1, 32) + " %"
		}
		oldest := ""
		if !one.OldestRun.IsZero() {
			oldest = terminal.Ago(one.OldestRun, now)
		}
		rows.AppendRow(table.Row{terminal.EscapeInvisible(one.ID), status, one.Workers, one.OpenRuns, oldest})
	}
	text := terminal.FitTable(rows, paper.Width, terminal.Elastic{Name: "build", Least: 12, Cut: terminal.SnipCell})
	return "deployment " + terminal.EscapeInvisible(all.Deployment) + "\n" + strings.TrimRight(text, "\n") + "\n"
}
