package execute

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/program/backfill"
	"reprise/internal/program/start"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/session"
)

// PartitionsOptions are the flags of backfill.
type PartitionsOptions struct {
	Run         RunOptions
	from, to    string
	only        string
	Concurrency int
	dryRun      bool
}

// mostBackfillConcurrency bounds --concurrency, because the command watches each of the runs.
const mostBackfillConcurrency = 500

// NewBackfillCommand returns the command backfill.
func NewBackfillCommand(a *cli.App) *cobra.Command {
	options := &PartitionsOptions{}
	command := &cobra.Command{
		Use: "backfill FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return look.ReportRefusal(a.Streams, backfillPartitions(a, args[0], options), options.Run.Output)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.from, "from", "", "the first partition: its key, or a time in it")
	flags.StringVar(&options.to, "to", "", "the last partition: its key, or a time in it")
	flags.StringVar(&options.only, "only", backfill.OnlyMissing, "which partitions: missing, failed, stale or all")
	flags.IntVar(&options.Concurrency, "max-concurrency", launch.DefaultBackfillConcurrency, "how many partitions run at a time, 1 to 500")
	flags.BoolVar(&options.dryRun, "dry-run", false, "list the partitions that would run, and start nothing")
	options.Run.Workload.AddFlags(command)
	options.Run.Server.Add(command)
	flags.StringVarP(&options.Run.WorkflowID, "workflow-id", "w", "", "ID of the run; default: the playbook's name, .backfill and a random part")
	flags.BoolVar(&options.Run.Detach, "detach", false, "start the run without following it; needs a server that keeps running")
	options.Run.Fairness.AddFlags(command)
	flags.Lookup("priority").DefValue, options.Run.Fairness.Priority = fmt.Sprint(launch.LastPriority), launch.LastPriority
	options.Run.Local.AddFlags(command)
	options.Run.AddFlags(command)
	command.AddCommand(newBackfillStatusCommand(a))
	return command
}

// checkOptions rejects contradictory or impossible options.
func (o *PartitionsOptions) checkOptions() error {
	if err := cli.CheckChoice("--only", o.only, backfill.Only); err != nil {
		return err
	}
	if o.Run.WorkflowID != "" {
		if err := cli.CheckID("--workflow-id", o.Run.WorkflowID); err != nil {
			return err
		}
	}
	if o.Concurrency < 1 || o.Concurrency > mostBackfillConcurrency {
		return cli.UsageError("--max-concurrency %d: expected a number from 1 to %d", o.Concurrency, mostBackfillConcurrency)
	}
	return o.Run.Fairness.Check()
}

// LoadPartitioned reads and checks a playbook that has partitions.
func LoadPartitioned(a *cli.App, name string, workload map[string]any) (load.CheckedPlaybook, error) {
	found, err := load.CheckForRun(a, name, workload)
	if err == nil && found.Book.Partitions == nil {
		err = cli.UsageError("playbook %s has no partitions; add some, for example partitions: {every: day, start: 2024-01-01}", found.Book.Name)
	}
	return found, err
}

func backfillPartitions(a *cli.App, name string, options *PartitionsOptions) error {
	if err := options.checkOptions(); err != nil {
		return err
	}
	workload, err := options.Run.Workload.Read()
	if err != nil {
		return err
	}
	of, err := LoadPartitioned(a, name, workload)
	if err != nil {
		return err
	}
	if err := load.CheckKeysAreRead(a, of.Book, workload, of.Book.Strict); err != nil {
		return err
	}
	if sink := of.Book.WritesOnce(); sink != nil && slices.Contains([]string{backfill.OnlyStale, backfill.OnlyAll}, options.only) {
		return cli.UsageError("--only %s writes rows that the table already has, and the sink on line %d would insert them twice or keep the old ones; it needs mode: upsert with a key, or mode: replace",
			options.only, sink.Pos.Line)
	}
	now := time.Now()
	from, to, err := options.partitionRange(of.Book, now)
	if err != nil {
		return err
	}
	options.Run.Local.Playbooks = cmp.Or(options.Run.Local.Playbooks, load.FolderOf(name))
	options.Run.SkipFails = true // another backfill that began at once has some of the partitions, and the others were not run
	return runWith(a, &options.Run, func(ctx context.Context, s *session.Session) (start.Plan, error) {
		matrix, err := launch.ReadMatrix(ctx, s, of.Book, now)
		if err != nil {
			return start.Plan{}, err
		}
		matrix.LimitRange(from, to)
		keys := matrix.SelectKeys(options.only)
		if len(keys) == 0 || options.dryRun {
			return start.Plan{}, reportSelected(a.Streams, matrix, keys, options)
		}
		claim := matrix.BackfillClaim(keys)
		if err := launch.CheckClaim(ctx, s, matrix, claim); err != nil {
			return start.Plan{}, err
		}
		plan, err := BackfillPlan(a, of, keys, workload, options)
		plan.Input.Claim = &claim
		return plan, err
	})
}

// partitionRange returns the indexes of the first and the last selected partition.
func (o *PartitionsOptions) partitionRange(book *playbook.Playbook, now time.Time) (from, to int, err error) {
	to = partition.Max
	for _, flag := range []struct {
		name, text string
		into       *int
	}{{"--from", o.from, &from}, {"--to", o.to, &to}} {
		if flag.text == "" {
			continue
		}
		p, err := partitionOf(book.Partitions, flag.text)
		if err != nil {
			return 0, 0, cli.UsageError("%s: %w", flag.name, err)
		}
		if p.End.After(now) {
			return 0, 0, cli.UsageError("%s: the partition %s does not end before %s", flag.name, p.Key, p.End.Format(time.RFC3339))
		}
		*flag.into = p.Index
	}
	if from > to {
		return 0, 0, cli.UsageError("--from %s is after --to %s", o.from, o.to)
	}
	return from, to, nil
}

// partitionOf returns the partition with a key, or the one that contains a time.
func partitionOf(of *playbook.Partitions, text string) (partition.Partition, error) {
	found, err := of.FindPartition(text)
	if err == nil || of.IsList() {
		return found, err
	}
	at, badTime := of.MomentIn(text)
	if badTime != nil {
		return found, err
	}
	return of.PartitionHolding(at)
}

// backfillDocument is the JSON output of --dry-run, and of a backfill without anything to do.
type backfillDocument struct {
	Playbook   string   `json:"playbook"`
	Partitions []string `json:"partitions"` // that would run
}

// reportSelected prints the partitions that would run.
func reportSelected(streams cli.Streams, matrix *backfill.Matrix, keys []string, options *PartitionsOptions) error {
	if options.Run.Output == "json" {
		if err := terminal.PrintJSON(streams.Out, backfillDocument{Playbook: matrix.Playbook, Partitions: keys}); err != nil {
			return err
		}
		return errNothing
	}
	streams.Notef("%s: %s", matrix.Playbook, matrix.Tally())
	if len(keys) == 0 {
		streams.Notef("nothing to do: no partition is %s", notDone(options.only))
		noteWhatCounts(streams, matrix, options)
		return errNothing
	}
	streams.Notef("%s would run:", terminal.Count(len(keys), "partition"))
	for _, key := range keys {
		if err := streams.PrintLine("%s", key); err != nil {
			return err
		}
	}
	return errNothing
}

// noteWhatCounts prints why a backfill may select nothing, and which flags would select more.
func noteWhatCounts(streams cli.Streams, matrix *backfill.Matrix, options *PartitionsOptions) {
	given := &options.Run.Workload
	switch {
	case options.only != backfill.OnlyMissing:
	case matrix.Counts[partition.Stale] > 0:
		streams.Notef("to run stale ones, which an earlier version of the playbook has done, use --only stale")
	case len(given.Sets)+len(given.Files)+len(given.Values) > 0:
		streams.Notef("a partition is done whatever its workload was; to run it again with this workload, use --only all")
	}
}

// notDone returns the words for the partitions that --only selects, for a message that there are none.
func notDone(only string) string {
	if only == backfill.OnlyAll {
		return "complete and not running"
	}
	return only
}

// BackfillPlan returns the plan of a run that runs the playbook for partitions.
func BackfillPlan(a *cli.App, of load.CheckedPlaybook, keys []string, workload map[string]any, options *PartitionsOptions) (start.Plan, error) {
	plan, err := launch.Backfill{
		Of: of, Keys: keys, Workload: workload, WorkflowID: options.Run.WorkflowID, Folder: options.Run.Local.Playbooks,
		Concurrency: options.Concurrency, Fairness: options.Run.Fairness.PrioritySettings(),
		Called: func(name string) ([]byte, error) { return load.ReadCalled(a, name) },
	}.RunPlan()
	if err == nil && len(keys) > 0 {
		a.Notef("%s of %s", terminal.Count(len(keys), "partition"), of.Book.Name)
	}
	return plan, err
}

func newBackfillStatusCommand(a *cli.App) *cobra.Command {
	options := &PartitionsOptions{}
	command := &cobra.Command{
		Use: "status FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return backfillStatus(a, args[0], options) },
	}
	command.Flags().StringVar(&options.from, "from", "", "the first partition: its key, or a time in it")
	command.Flags().StringVar(&options.to, "to", "", "the last partition: its key, or a time in it")
	options.Run.Server.Add(command)
	cli.OutputFlag(command, &options.Run.Output)
	return command
}

func backfillStatus(a *cli.App, name string, options *PartitionsOptions) error {
	of, err := LoadPartitioned(a, name, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	from, to, err := options.partitionRange(of.Book, now)
	if err != nil {
		return err
	}
	return session.WithServer(a, &options.Run.Server, func(ctx context.Context, s *session.Session) error {
		matrix, err := launch.ReadMatrix(ctx, s, of.Book, now)
		if err != nil {
			return err
		}
		matrix.LimitRange(from, to)
		return a.ShowDocument(options.Run.Output, matrix, matrix.Text())
	})
}
