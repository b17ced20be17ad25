package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/program/backfill"
	"reprise/internal/program/start"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// partitionsOptions is the command line of backfill.
type partitionsOptions struct {
	run         runOptions
	from, to    string
	only        string
	concurrency int
	dryRun      bool
}

const (
	defaultBackfillConcurrency = 4
	mostBackfillConcurrency    = 500
)

func newBackfillCommand(a *app) *cobra.Command {
	options := &partitionsOptions{}
	command := &cobra.Command{
		Use: "backfill FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.refuse(a.backfillPartitions(args[0], options), options.run.output)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.from, "from", "", "the first partition: its key, or a time in it")
	flags.StringVar(&options.to, "to", "", "the last partition: its key, or a time in it")
	flags.StringVar(&options.only, "only", backfill.OnlyMissing, "which partitions: missing, failed, stale or all")
	flags.IntVar(&options.concurrency, "max-concurrency", defaultBackfillConcurrency, "how many partitions run at a time, 1 to 500")
	flags.BoolVar(&options.dryRun, "dry-run", false, "list the partitions that would run, and start nothing")
	options.run.workload.add(command)
	options.run.server.add(command)
	flags.StringVarP(&options.run.workflowID, "workflow-id", "w", "", "ID of the run; default: the playbook's name, .backfill and a random part")
	flags.BoolVar(&options.run.detach, "detach", false, "start the run without following it; needs a server that keeps running")
	options.run.fairness.add(command)
	flags.Lookup("priority").DefValue, options.run.fairness.priority = fmt.Sprint(lastPriority), lastPriority
	options.run.local.add(command)
	outputFlag(command, &options.run.output)
	command.AddCommand(newBackfillStatusCommand(a))
	return command
}

// check refuses what cannot be meant.
func (o *partitionsOptions) check() error {
	if err := choice("--only", o.only, backfill.Only); err != nil {
		return err
	}
	if o.run.workflowID != "" {
		if err := checkID("--workflow-id", o.run.workflowID); err != nil {
			return err
		}
	}
	if o.concurrency < 1 || o.concurrency > mostBackfillConcurrency {
		return usageError("--max-concurrency %d: expected a number from 1 to %d", o.concurrency, mostBackfillConcurrency)
	}
	return o.run.fairness.check()
}

// partitioned reads and checks a playbook that has partitions.
func (a *app) partitioned(name string, workload map[string]any) (checked, error) {
	found, err := a.checkForRun(name, workload)
	if err == nil && found.book.Partitions == nil {
		err = usageError("playbook %s has no partitions; add some, for example partitions: {every: day, start: 2024-01-01}", found.book.Name)
	}
	return found, err
}

func (a *app) backfillPartitions(name string, options *partitionsOptions) error {
	if err := options.check(); err != nil {
		return err
	}
	workload, err := options.run.workload.read()
	if err != nil {
		return err
	}
	of, err := a.partitioned(name, workload)
	if err != nil {
		return err
	}
	if err := a.checkRead(of.book, workload, of.book.Strict); err != nil {
		return err
	}
	if sink := of.book.WritesOnce(); sink != nil && slices.Contains([]string{backfill.OnlyStale, backfill.OnlyAll}, options.only) {
		return usageError("--only %s writes rows that the table already has, and the sink in line %d would insert them twice or keep the old ones; it needs mode: upsert with a key, or mode: replace",
			options.only, sink.Pos.Line)
	}
	now := time.Now()
	from, to, err := options.between(of.book, now)
	if err != nil {
		return err
	}
	options.run.local.playbooks = cmp.Or(options.run.local.playbooks, folderOf(name))
	return a.runWith(&options.run, func(ctx context.Context, s *session) (start.Plan, error) {
		matrix, err := a.matrix(ctx, s, of.book, now)
		if err != nil {
			return start.Plan{}, err
		}
		matrix.Within(from, to)
		keys := matrix.Select(options.only)
		if len(keys) == 0 || options.dryRun {
			return start.Plan{}, a.reportSelected(matrix, keys, options)
		}
		claim := matrix.Claim(keys)
		if err := checkClaim(ctx, s, matrix, claim); err != nil {
			return start.Plan{}, err
		}
		plan, err := a.backfillPlan(of, keys, workload, options)
		plan.Input.Claim = &claim
		return plan, err
	})
}

// checkClaim refuses a backfill while another one is open that is to run some of its partitions. One
// that has begun meanwhile is found by the run itself.
func checkClaim(ctx context.Context, s *session, matrix *backfill.Matrix, claim partition.BackfillClaim) error {
	id, keys, err := matrix.Open(ctx, s.client, claim)
	if err != nil || id == "" {
		return err
	}
	shared := keys[0]
	if len(keys) > 1 {
		shared = fmt.Sprintf("%d of these partitions, %s to %s", len(keys), keys[0], keys[len(keys)-1])
	}
	return fmt.Errorf("the backfill %s of %s has not ended and runs %s; nothing was started. Run others with --from and --to, "+
		"wait for its end, which %s follow %s shows, or cancel it", id, matrix.Playbook, shared, terminal.Program(), terminal.ShellWord(id))
}

// between are the indexes of the first and the last partition that are meant.
func (o *partitionsOptions) between(book *playbook.Playbook, now time.Time) (from, to int, err error) {
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
			return 0, 0, usageError("%s: %w", flag.name, err)
		}
		if p.End.After(now) {
			return 0, 0, usageError("%s: the partition %s does not end before %s", flag.name, p.Key, p.End.Format(time.RFC3339))
		}
		*flag.into = p.Index
	}
	if from > to {
		return 0, 0, usageError("--from %s is after --to %s", o.from, o.to)
	}
	return from, to, nil
}

// partitionOf is the partition of a key, or the one in which a time is.
func partitionOf(of *playbook.Partitions, text string) (partition.Partition, error) {
	found, err := of.Find(text)
	if err == nil || of.Listed() {
		return found, err
	}
	at, badTime := of.MomentIn(text)
	if badTime != nil {
		return found, err
	}
	return of.Holding(at)
}

// matrix reads what became of the partitions of a playbook.
func (a *app) matrix(ctx context.Context, s *session, book *playbook.Playbook, now time.Time) (*backfill.Matrix, error) {
	if err := s.needsWorker(ctx, "what is done is read by one"); err != nil {
		return nil, err
	}
	matrix, err := backfill.Read(ctx, s.client, book, now)
	if err != nil && ctx.Err() != nil {
		return nil, start.ErrInterrupted
	}
	return matrix, err
}

// selected is what --dry-run prints as JSON, and a backfill that has nothing to do.
type selected struct {
	Playbook   string   `json:"playbook"`
	Partitions []string `json:"partitions"` // that would run
}

// reportSelected shows which partitions would run.
func (a *app) reportSelected(matrix *backfill.Matrix, keys []string, options *partitionsOptions) error {
	if options.run.output == "json" {
		if err := terminal.PrintJSON(a.Out, selected{Playbook: matrix.Playbook, Partitions: keys}); err != nil {
			return err
		}
		return errNothing
	}
	a.notef("%s: %s", matrix.Playbook, matrix.Tally())
	if len(keys) == 0 {
		a.notef("nothing to do: no partition is %s", notDone(options.only))
		a.noteWhatCounts(matrix, options)
		return errNothing
	}
	a.notef("%s would run:", terminal.Count(len(keys), "partition"))
	for _, key := range keys {
		if err := a.printLine("%s", key); err != nil {
			return err
		}
	}
	return errNothing
}

// noteWhatCounts says why what was asked for may be done already.
func (a *app) noteWhatCounts(matrix *backfill.Matrix, options *partitionsOptions) {
	given := &options.run.workload
	switch {
	case options.only != backfill.OnlyMissing:
	case matrix.Counts[partition.Stale] > 0:
		a.notef("to run stale ones, which an earlier version of the playbook has done, use --only stale")
	case len(given.sets)+len(given.files)+len(given.values) > 0:
		a.notef("a partition is done whatever its workload was; to run it again with this workload, use --only all")
	}
}

// notDone is what no partition is where there is nothing to do.
func notDone(only string) string {
	if only == backfill.OnlyAll {
		return "complete and not running"
	}
	return only
}

// backfillPlan is the run that runs partitions.
func (a *app) backfillPlan(of checked, keys []string, workload map[string]any, options *partitionsOptions) (start.Plan, error) {
	text := backfill.Source(of.book, of.file.Name, options.concurrency)
	file := source.NewFile(backfill.FileName(of.file.Name), text)
	files := check.NewFiles(func(name string) ([]byte, error) {
		if name == backfill.CalledName(of.file.Name) {
			return of.file.Bytes(), nil
		}
		return a.readCalled(name)
	})
	book, found := check.Validate(file, activities.Default(), check.Options{Zone: knownZone, Files: files, Now: time.Now()})
	if found.HasErrors() {
		return start.Plan{}, fmt.Errorf("the backfill of %s: %w", of.file.Name, found.Errors())
	}
	made := checked{file: file, book: book, files: files.Texts()}
	plan, err := newPlan(made, backfill.Workload(keys, workload), options.run.workflowID, options.run.local.playbooks)
	if err != nil {
		return plan, err
	}
	plan.Fairness = options.run.fairness.settings()
	if len(keys) > 0 {
		a.notef("%s of %s", terminal.Count(len(keys), "partition"), of.book.Name)
	}
	return plan, nil
}

func newBackfillStatusCommand(a *app) *cobra.Command {
	options := &partitionsOptions{}
	command := &cobra.Command{
		Use: "status FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.backfillStatus(args[0], options) },
	}
	command.Flags().StringVar(&options.from, "from", "", "the first partition: its key, or a time in it")
	command.Flags().StringVar(&options.to, "to", "", "the last partition: its key, or a time in it")
	options.run.server.add(command)
	outputFlag(command, &options.run.output)
	return command
}

func (a *app) backfillStatus(name string, options *partitionsOptions) error {
	of, err := a.partitioned(name, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	from, to, err := options.between(of.book, now)
	if err != nil {
		return err
	}
	return a.withServer(&options.run.server, func(ctx context.Context, s *session) error {
		matrix, err := a.matrix(ctx, s, of.book, now)
		if err != nil {
			return err
		}
		matrix.Within(from, to)
		return a.show(options.run.output, matrix, matrix.Text())
	})
}
