// Package execute has the commands `run` and `backfill`.
package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/localserver"
	"reprise/internal/program/start"
	"reprise/starter/cli"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/runpage"
	"reprise/starter/session"
)

// RunOptions are the flags of run.
type RunOptions struct {
	Server     session.ServerFlags
	Local      session.LocalFlags
	Workload   load.WorkloadFlags
	Fairness   launch.FairnessFlags
	WorkflowID string
	look.FollowOptions
	Detach     bool
	Strict     bool
	serverEnds bool
	Partition  string
	build      string // to which the run is pinned, "" for the one that gets new runs
	// fullRefresh are the steps that read all data again; load.EveryStep stands for all of them.
	fullRefresh []string
}

// NewRunCommand returns the command run.
func NewRunCommand(a *cli.App) *cobra.Command {
	options := &RunOptions{}
	command := &cobra.Command{
		Use: "run FILE", Args: load.RequireOneFile, RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("record") {
				return cli.UsageError("a run cannot record, because workers make its requests; use starter try FILE --record FILE for one step")
			}
			if command.Flags().Changed("workflow-id") {
				if err := cli.CheckID("--workflow-id", options.WorkflowID); err != nil {
					return err
				}
			}
			return look.ReportRefusal(a.Streams, StartRun(a, args[0], options), options.Output)
		},
	}
	options.Workload.AddFlags(command)
	options.Server.Add(command)
	command.Flags().StringVarP(&options.WorkflowID, "workflow-id", "w", "", "ID of the run; default: the playbook's name and a random part")
	command.Flags().BoolVar(&options.Detach, "detach", false, "start the run without following it; needs a server that keeps running")
	command.Flags().BoolVar(&options.Strict, "strict", false, "a run with a failed iteration is at best a partial success")
	command.Flags().String("record", "", "not available: use starter try --record")
	_ = command.Flags().MarkHidden("record")
	command.Flags().BoolVar(&options.serverEnds, "server-ends", false, "the server ends with this run: leave out what leads back to it")
	_ = command.Flags().MarkHidden("server-ends") // for scripts/demo
	command.Flags().StringSliceVar(&options.fullRefresh, "full-refresh", nil,
		"read everything again: all steps with incremental, or those of `=STEP,STEP`")
	command.Flags().Lookup("full-refresh").NoOptDefVal = load.EveryStep
	command.Flags().StringVar(&options.Partition, "partition", "",
		"key of the partition that the run handles, such as 2024-01-31; default: the newest that is complete")
	command.Flags().StringVar(&options.build, "build", "", "pin the run to this build of the workers; default: the build that gets new runs")
	options.Fairness.AddFlags(command)
	options.Local.AddFlags(command)
	options.AddFlags(command)
	return command
}

// StartRun starts the run of a playbook, and follows it unless its options say otherwise.
func StartRun(a *cli.App, name string, options *RunOptions) (err error) {
	plan, err := PlanRun(a, name, options)
	if err != nil {
		return err
	}
	return runWith(a, options, func(context.Context, *session.Session) (start.Plan, error) { return plan, nil })
}

// errNothing is the error of a command without anything to run.
var errNothing = errors.New("nothing to run")

// runWith connects to the server, starts the run that plans returns, and follows it.
func runWith(a *cli.App, options *RunOptions, plans func(context.Context, *session.Session) (start.Plan, error)) (err error) {
	ctx := a.Interrupts.Graceful
	s, err := openSession(ctx, a, options)
	if err != nil {
		if ctx.Err() != nil {
			return start.ErrInterrupted
		}
		return err
	}
	defer func() { s.End(a.Interrupts.Now.Err() != nil) }()
	s.Ends = options.serverEnds || s.Server != nil
	ctx, ended := s.Telemetry.BeginSpan(ctx, "starter run")
	defer func() { ended(err) }()
	plan, err := plans(ctx, s)
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return err
	}
	if plan.Build, err = findBuild(ctx, s, options.build); err != nil {
		return err
	}
	run, err := launch.StartRun(ctx, s, plan, a.Streams)
	if err != nil {
		return err
	}
	if options.Detach {
		if polled, err := look.IsPolled(ctx, s, run); err == nil && !polled {
			a.Notef("note: no worker polls the task queue %q; the run waits for one", s.TaskQueue)
			a.Advisef("%s", render.StartWorker(s.TaskQueue, s.Flags))
		}
		return look.ReportStart(a.Streams, s, run, options.Output)
	}
	if link := s.PageOf(run.GetID(), run.GetRunID()); link != "" {
		a.Notef("%s runs: %s", run.GetID(), link)
	} else {
		a.Notef("%s runs on %s", run.GetID(), s.Address)
	}
	return look.FollowRun(a, s, run, options.FollowOptions)
}

// findBuild finds a build of the session's workers; nil for "".
func findBuild(ctx context.Context, s *session.Session, id string) (*runs.Build, error) {
	if id == "" {
		return nil, nil
	}
	deployment, err := s.Deployment(ctx, os.Getenv(build.DeploymentVariable))
	if err != nil {
		return nil, fmt.Errorf("--build: %w", err)
	}
	if err := deployment.CheckKnown(ctx, id); err != nil {
		return nil, cli.WithStatus(exitcode.Usage, fmt.Errorf("--build: %w", err))
	}
	return &runs.Build{Deployment: deployment.Name, ID: id, Pinned: true}, nil
}

// PlanRun reads and validates everything that does not need a server.
func PlanRun(a *cli.App, name string, options *RunOptions) (start.Plan, error) {
	if err := options.Fairness.Check(); err != nil {
		return start.Plan{}, err
	}
	workload, err := options.Workload.Read()
	if err != nil {
		return start.Plan{}, err
	}
	checked, err := load.CheckForRun(a, name, workload)
	if err != nil {
		return start.Plan{}, err
	}
	if err := load.CheckKeysAreRead(a, checked.Book, workload, options.Strict || checked.Book.Strict); err != nil {
		return start.Plan{}, err
	}
	options.Local.Playbooks = cmp.Or(options.Local.Playbooks, load.FolderOf(name))
	plan, err := launch.NewPlan(checked, workload, options.WorkflowID, options.Local.Playbooks)
	if err != nil {
		return plan, err
	}
	plan.Fairness, plan.Input.Strict = options.Fairness.PrioritySettings(), options.Strict
	if _, err := checked.Book.RunPartition(options.Partition, time.Now()); err != nil {
		if options.Partition == "" {
			return plan, cli.UsageError("the run has no partition: %w", err)
		}
		return plan, cli.UsageError("--partition: %w", err)
	}
	plan.Input.Partition = options.Partition
	plan.Input.FullRefresh, err = load.RefreshedSteps(a.Streams, checked.Book, options.fullRefresh)
	return plan, err
}

// openSession connects to an existing server, or starts a local one.
func openSession(ctx context.Context, a *cli.App, options *RunOptions) (*session.Session, error) {
	s, err := options.Server.ConnectExisting(ctx)
	if s != nil {
		err = s.NeedsStore(ctx)
	}
	if err != nil || s != nil {
		return s, err
	}
	if options.build != "" {
		return nil, cli.UsageError("--build needs a server whose workers are builds; name one with --address, or %s", session.DevHint(ctx))
	}
	if options.Detach {
		return nil, cli.UsageError("--detach needs a server that keeps running; name one with --address, or %s", session.DevHint(ctx))
	}
	a.Notef("starting a local Temporal server and a worker")
	a.Interrupts.EndsInOrder()
	if folder, found := session.DevInParent(ctx); found {
		a.Notef("note: %s dev runs in %s, with its own connections; to use it, run this command there", terminal.ProgramName(), folder)
	}
	s, err = options.Local.StartLocal(ctx, localserver.Options{}, options.Server)
	if err != nil {
		return nil, err
	}
	if err := runpage.StartPage(a, s, 0, ""); err != nil {
		s.End(false)
		return nil, err
	}
	if url := s.Telemetry.URL(); url != "" {
		a.Notef("metrics: %s", url)
	}
	return s, nil
}
