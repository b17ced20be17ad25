package operate

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/payload"
	"reprise/internal/base/terminal"
	"reprise/internal/program/replay"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	server session.ServerFlags
	query  string
	since  string
	sample int
	from   string
	save   string
	output string
}

// NewReplayCommand returns the command replay.
func NewReplayCommand(a *cli.App) *cobra.Command {
	o := &replayOptions{}
	command := &cobra.Command{Use: "replay [RUN...]"}
	flags := command.Flags()
	flags.StringVar(&o.query, "query", "", "the workflows that match this list filter, instead of RUN")
	flags.StringVar(&o.since, "since", "7d", "of ended workflows, those that ended since then, such as 24h, 7d or 2026-01-31")
	flags.IntVar(&o.sample, "sample", 1000, "how many ended workflows to replay at most, spread over types and playbooks; 0 for none")
	flags.StringVar(&o.from, "from", "", "replay the histories in this folder, without a server")
	flags.StringVar(&o.save, "save", "", "also write the histories to this folder, without values")
	o.server.Add(command)
	cli.OutputFlag(command, &o.output)
	command.RunE = func(_ *cobra.Command, args []string) error { return replayRuns(a, o, args) }
	return command
}

func replayRuns(a *cli.App, o *replayOptions, args []string) error {
	since, err := cli.ParseSince(o.since, time.Now())
	switch {
	case err != nil:
		return err
	case o.sample < 0:
		return cli.UsageError("--sample %d is less than 0", o.sample)
	case len(args) > 0 && o.query != "" || o.from != "" && (len(args) > 0 || o.query != ""):
		return cli.UsageError("RUN, --query and --from exclude one another")
	}
	if o.from != "" {
		return replayFolder(a, o)
	}
	for _, id := range args {
		if err := cli.CheckRun(id, ""); err != nil {
			return err
		}
	}
	return session.WithServer(a, &o.server, func(ctx context.Context, s *session.Session) error {
		found, left, err := o.findExecutions(ctx, a.Streams, s, args, since)
		if err != nil {
			return err
		}
		return reportReplay(ctx, a.Streams, &replay.Replayer{Client: s.Client, Store: s.Store, SaveTo: o.save}, found, left, o.output)
	})
}

// replayFolder replays the histories of a folder, without a server.
func replayFolder(a *cli.App, o *replayOptions) error {
	encryption, err := codec.FromEnvironment(os.LookupEnv, false)
	if err != nil {
		return cli.WithStatus(exitcode.Usage, err)
	}
	store, err := payload.OpenLater(o.server.PayloadStore)
	if err != nil {
		return cli.WithStatus(exitcode.Usage, err)
	}
	defer func() { _ = store.Close() }()
	store.SetEncryption(encryption)
	found, err := replay.FindInFolder(o.from)
	if err != nil {
		return cli.WithStatus(exitcode.Usage, err)
	}
	return reportReplay(a.Interrupts.Graceful, a.Streams, &replay.Replayer{Store: store, Encryption: encryption, SaveTo: o.save}, found, false, o.output)
}

// findExecutions returns the executions to replay. left is set if there are more than the sample allows.
func (o *replayOptions) findExecutions(
	ctx context.Context, streams cli.Streams, s *session.Session, runs []string, since time.Time,
) (all []replay.Execution, left bool, err error) {
	switch {
	case len(runs) > 0:
		for _, id := range runs {
			run, err := session.FindRun(ctx, streams, s, id, "")
			if err != nil {
				return nil, false, err
			}
			found, err := replay.FindOfRun(ctx, s.Client, run.WorkflowID)
			if err != nil {
				return nil, false, err
			}
			all = append(all, found...)
		}
		return all, false, nil
	case o.query != "":
		all, err = replay.FindMatching(ctx, s.Client, o.query)
		if connect.IsInvalidArgument(err) {
			err = cli.UsageError("--query: %w", err)
		}
		return all, false, err
	}
	if all, err = replay.FindOpen(ctx, s.Client); err != nil || o.sample == 0 {
		return all, false, err
	}
	closed, left, err := replay.SampleClosed(ctx, s.Client, since, o.sample)
	return append(all, closed...), left, err
}

// reportReplay replays executions and prints the result.
func reportReplay(
	ctx context.Context, streams cli.Streams, replayer *replay.Replayer, executions []replay.Execution, left bool, output string,
) error {
	report, err := replayer.ReplayAll(ctx, executions)
	if ctx.Err() != nil {
		return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	}
	if err != nil {
		return err
	}
	report.Left = left
	if err := streams.ShowDocument(output, report, replayText(report)); err != nil {
		return err
	}
	switch {
	case len(report.Mismatches) > 0:
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	case len(report.Unread) > 0:
		return cli.WithStatus(exitcode.Usage, cli.ErrSaid)
	}
	return nil
}

// replayText returns a report for people.
func replayText(report replay.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s\n", countText(report.Histories, "history", "histories"), countText(report.Events, "event", "events"),
		countText(len(report.Mismatches), "mismatch", "mismatches"))
	for _, one := range report.Mismatches {
		b.WriteString(replay.DescribeMismatch(one))
	}
	for _, one := range report.Unread {
		fmt.Fprintf(&b, "not read: %s: %s\n", one.WorkflowID, one.Error)
	}
	if report.NotBegun > 0 {
		fmt.Fprintf(&b, "%s not begun, so every build fits\n", countText(report.NotBegun, "workflow has", "workflows have"))
	}
	if report.Left {
		b.WriteString("more workflows have ended than the sample takes; --sample and --since change that\n")
	}
	return terminal.EscapeInvisible(b.String())
}

func countText(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
