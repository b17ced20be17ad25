package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

func newDeadLettersCommand(a *app) *cobra.Command {
	return newGroup("dead-letters", "dlq", newDeadLettersListCommand(a), newDeadLettersShowCommand(a), newReprocessCommand(a))
}

// letterFlags choose dead letters.
type letterFlags struct {
	runID, step, since string
	class              interpreter.Class
	cancelled          bool
}

func (f *letterFlags) add(command *cobra.Command) {
	flags := command.Flags()
	f.addRun(command)
	flags.StringVar(&f.step, "step", "", "only iterations of this step")
	flags.StringVar((*string)(&f.class), "class", "", "only errors of this class: "+orList(errorClasses))
	flags.StringVar(&f.since, "since", "", "only iterations whose last attempt was after a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.BoolVar(&f.cancelled, "cancelled", false, "also iterations of a run that has ended which were cancelled or never started")
}

func (f *letterFlags) addRun(command *cobra.Command) {
	command.Flags().StringVarP(&f.runID, "run-id", "r", "", "run ID, if several runs had the workflow ID; default: the latest")
}

// errorClasses are those by which dead letters are chosen.
var errorClasses = []interpreter.Class{interpreter.ClassFinal, interpreter.ClassRetryable, interpreter.ClassRateLimited}

// filter checks the flags.
func (f *letterFlags) filter(now time.Time) (deadletter.Filter, error) {
	filter := deadletter.Filter{Step: f.step, Class: f.class, Cancelled: f.cancelled}
	if f.class != "" {
		if err := choice("--class", f.class, errorClasses); err != nil {
			return filter, err
		}
	}
	since, err := parseSince(f.since, now)
	filter.Since = since
	return filter, err
}

// parseSince reads a time, or how long ago it was.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageError("--since %q: expected a duration or a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z", text)
}

// stored connects to a server that stays, where past runs are.
func (f *serverFlags) stored(ctx context.Context) (*session, error) {
	s, err := f.existing(ctx)
	if err != nil || s != nil {
		return s, err
	}
	return nil, withStatus(exitNoServer, fmt.Errorf(
		"no Temporal server is known; name one with --address or TEMPORAL_ADDRESS, or %s", orDev(ctx)))
}

// orDev says how to get a server that stays, beside naming one.
func orDev(ctx context.Context) string {
	if folder, found := devInParent(ctx); found {
		return fmt.Sprintf("run this in %s, where %s dev runs", folder, terminal.Program())
	}
	return "start one with " + terminal.Program() + " dev"
}

func (s *session) reader() *deadletter.Reader {
	return &deadletter.Reader{Reader: runs.Reader{Client: s.client, Store: s.store}}
}

// chain reads a run with its reprocesses, whose ID may be a beginning. It prints what
// it could not read.
func (a *app) chain(ctx context.Context, s *session, workflowID, runID string) (*deadletter.Chain, error) {
	if err := checkRun(workflowID, runID); err != nil {
		return nil, err
	}
	chain, err := s.reader().Chain(ctx, workflowID, runID)
	if errors.Is(err, runs.ErrNotFound) && runID == "" {
		found, missing := s.runs().Find(ctx, workflowID, "")
		var several *runs.AmbiguousError
		switch {
		case missing == nil:
			chain, err = s.reader().Chain(ctx, found.WorkflowID, "")
		case errors.As(missing, &several):
			return nil, a.findError(s, missing)
		}
	}
	if errors.Is(err, runs.ErrNotFound) {
		return nil, usageError("%w on %s, namespace %s; %s dead-letters list shows those with failed iterations",
			err, s.address, s.namespace, terminal.Program())
	}
	if err == nil {
		a.reportLost([]*deadletter.Chain{chain})
	}
	return chain, err
}

// withChain has a command work on a run with its reprocesses.
func (a *app) withChain(
	server *serverFlags, workflowID, runID string, work func(context.Context, *session, *deadletter.Chain) error,
) error {
	return a.withServer(server, func(ctx context.Context, s *session) error {
		chain, err := a.chain(ctx, s, workflowID, runID)
		if err != nil {
			return err
		}
		return work(ctx, s, chain)
	})
}

func (a *app) reportLost(chains []*deadletter.Chain) {
	for _, chain := range chains {
		if chain.Lost > 0 {
			a.notef("note: %s of %s%s counted, but no history describes them any more",
				terminal.Count(chain.Lost, "failed iteration"), chain.Origin.WorkflowID, isAre(chain.Lost))
		}
	}
}

// listOptions is the command line of dead-letters list.
type listOptions struct {
	server  serverFlags
	letters letterFlags
	all     bool
	limit   int
	output  string
}

// mostListed is how many dead letters a table shows by default.
const mostListed = 100

func newDeadLettersListCommand(a *app) *cobra.Command {
	options := &listOptions{}
	command := &cobra.Command{
		Use: "list [RUN]", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.listDeadLetters(strings.Join(args, ""), options) },
	}
	options.letters.add(command)
	command.Flags().BoolVar(&options.all, "all", false, "also those that a reprocess has completed")
	command.Flags().IntVar(&options.limit, "limit", 0, fmt.Sprintf("maximum number to list; default %d in a table, all as JSON", mostListed))
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

// letterList is what `dead-letters list --output json` prints.
type letterList struct {
	DeadLetters []deadletter.Letter `json:"dead_letters"` // newest first
	Total       int                 `json:"total"`        // without the limit
	// Cancelled counts the iterations of these runs that were cancelled and that
	// the filter would take with --cancelled.
	Cancelled int `json:"cancelled"`
}

func (a *app) listDeadLetters(workflowID string, options *listOptions) error {
	filter, err := options.letters.filter(time.Now())
	if err != nil {
		return err
	}
	filter.All = options.all
	return a.withServer(&options.server, func(ctx context.Context, s *session) error {
		return a.listLetters(ctx, s, workflowID, filter, options)
	})
}

func (a *app) listLetters(
	ctx context.Context, s *session, workflowID string, filter deadletter.Filter, options *listOptions,
) error {
	chains, err := a.chains(ctx, s, workflowID, options.letters.runID, filter)
	if err != nil {
		return err
	}
	letters := deadletter.Letters(chains, filter)
	list := letterList{DeadLetters: letters, Total: len(letters), Cancelled: countCancelled(chains, filter)}
	limit := options.limit
	if limit <= 0 && options.output == "table" {
		limit = mostListed
	}
	if limit > 0 {
		list.DeadLetters = letters[:min(limit, len(letters))]
	}
	if options.output == "json" {
		list.DeadLetters = orEmpty(list.DeadLetters)
		return terminal.PrintJSON(a.Out, list)
	}
	if err := a.writeLetters(list); err != nil {
		return err
	}
	a.hintCancelled(chains, filter)
	return nil
}

func countCancelled(chains []*deadletter.Chain, filter deadletter.Filter) int {
	n := 0
	for _, chain := range chains {
		n += chain.CountCancelled(filter)
	}
	return n
}

// mostHints bounds the runs that a hint names.
const mostHints = 10

// hintCancelled prints which runs have cancelled iterations, and how to run them again.
func (a *app) hintCancelled(chains []*deadletter.Chain, filter deadletter.Filter) {
	hinted := 0
	for _, chain := range chains {
		n := chain.CountCancelled(filter)
		if n == 0 {
			continue
		}
		if hinted++; hinted > mostHints {
			a.notef("more runs have cancelled iterations")
			return
		}
		take := "to run them again"
		if failed := len(choose(chain, filter, 0).open); failed > 0 {
			take += fmt.Sprintf(", with the %d that failed", failed)
		}
		a.advisef("%s of %s did not run to the end; %s: %s dead-letters reprocess %s --cancelled",
			terminal.Count(n, "cancelled iteration"), chain.Origin.WorkflowID, take, terminal.Program(), terminal.ShellWord(chain.Origin.WorkflowID))
	}
}

func (a *app) chains(
	ctx context.Context, s *session, workflowID, runID string, filter deadletter.Filter,
) ([]*deadletter.Chain, error) {
	if workflowID != "" {
		chain, err := a.chain(ctx, s, workflowID, runID)
		return []*deadletter.Chain{chain}, err
	}
	if runID != "" {
		return nil, usageError("--run-id needs a WORKFLOW-ID")
	}
	chains, err := s.reader().Search(ctx, s.namespace, filter.Since)
	if errors.Is(err, deadletter.ErrNoAttributes) {
		return nil, fmt.Errorf("%w; name a run, or ask an administrator to add it with type Int", err)
	}
	if err == nil {
		a.reportLost(chains)
	}
	return chains, err
}

func (a *app) writeLetters(list letterList) error {
	if list.Total == 0 {
		a.notef("no dead letters")
		return nil
	}
	_, err := io.WriteString(a.Out, lettersTable(list.DeadLetters, terminal.PaperOf(a.Out))+"\n")
	if left := list.Total - len(list.DeadLetters); left > 0 {
		a.notef("and %d more; --limit %d shows them", left, list.Total)
	}
	return err
}

// lettersTable fits a terminal: what failed and why stays, and wraps where it is long.
func lettersTable(letters []deadletter.Letter, paper terminal.Paper) string {
	const fewest = 3 // columns
	ids := lists.Map(letters, func(letter deadletter.Letter) string { return letter.ID })
	return terminal.FitColumns(paper.Width, ids, [][]string{
		{"dead letter", "element", "error", "status", "class", "attempts", "failed runs", "last attempt"},
		{"dead letter", "element", "error", "status", "class", "attempts"},
		{"dead letter", "element", "error", "status"},
		{"dead letter", "element", "error"},
	}, func(columns, ids []string) string {
		rows := terminal.NewTable(terminal.Head(columns)...)
		for i, letter := range letters {
			rows.AppendRow(terminal.Row(columns, map[string]any{
				"last attempt": terminal.Time(letter.LastAttemptAt), "dead letter": ids[i],
				"element": paper.Shorten(expression.Text(letter.Element.Data), 60), "class": letter.Error.Class,
				"error": paper.Shorten(letter.Error.Message, 200), "attempts": letter.Attempts, "failed runs": letter.FailedRuns, "status": letter.State,
			}))
		}
		elastic := []terminal.Elastic{{Name: "error", Least: 24, Cut: text.WrapSoft}, {Name: "element", Least: 10, Cut: text.WrapSoft}}
		if len(columns) == fewest {
			elastic = append(elastic, terminal.Elastic{Name: "error", Least: 9, Cut: text.WrapSoft}, terminal.Elastic{Name: "element", Least: 7, Cut: text.WrapSoft})
		}
		return terminal.Fit(rows, paper.Width, elastic...)
	})
}

// showOptions is the command line of dead-letters show.
type showOptions struct {
	server  serverFlags
	letters letterFlags
	output  string
}

func newDeadLettersShowCommand(a *app) *cobra.Command {
	options := &showOptions{}
	command := &cobra.Command{
		Use: "show DEAD-LETTER", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.showDeadLetter(args[0], options) },
	}
	options.letters.addRun(command)
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

// letterID is the ID of a dead letter: that of the run, the step with its visit, and the index.
var letterID = regexp.MustCompile(`^(.+)/[^/]*/[^/]*$`)

func (a *app) showDeadLetter(id string, options *showOptions) error {
	parts := letterID.FindStringSubmatch(id)
	if parts == nil {
		return usageError("%q is not the ID of a dead letter, such as 'patients-7x2k/fetch#1/13'; %s dead-letters list shows the IDs", id, terminal.Program())
	}
	workflowID := parts[1]
	return a.withChain(&options.server, workflowID, options.letters.runID, func(ctx context.Context, s *session, chain *deadletter.Chain) error {
		letters := chain.Select(deadletter.Filter{All: true, Cancelled: true})
		full := chain.Origin.WorkflowID + strings.TrimPrefix(id, workflowID)
		position := slices.IndexFunc(letters, func(letter deadletter.Letter) bool { return letter.ID == full })
		if position < 0 {
			return usageError("run %s has no dead letter %q; it has %s", workflowID, id, terminal.Count(len(chain.Letters), "dead letter"))
		}
		failed, err := s.reader().FailedChild(ctx, chain, letters[position])
		if err != nil {
			return err
		}
		doc := letterDocument{Letter: letters[position], FailedWorkflow: failed}
		if options.output == "json" {
			return terminal.PrintJSON(a.Out, doc)
		}
		return a.writeLetter(s, doc)
	})
}

// letterDocument is a dead letter, for programs.
type letterDocument struct {
	deadletter.Letter
	// FailedWorkflow is in whose history the last failure is, "" for none.
	FailedWorkflow string `json:"failed_workflow,omitempty"`
}

func (a *app) writeLetter(s *session, letter letterDocument) error {
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "%-14s %s\n", name+":", text) }
	line("dead letter", letter.ID)
	line("status", letter.State)
	line("playbook", fmt.Sprintf("%s, sha256 %.12s", letter.Playbook, letter.PlaybookHash))
	line("element", expression.Text(letter.Element.Data))
	if letter.WasCancelled() {
		line("cancelled", terminal.Time(letter.LastAttemptAt))
	} else {
		line("last attempt", terminal.Time(letter.LastAttemptAt))
		line("attempts", fmt.Sprint(letter.Attempts))
		line("failed in", fmt.Sprintf("%s, the last %s", terminal.Count(letter.FailedRuns, "run"), letter.FailedIn))
	}
	if link := s.link(cmp.Or(letter.FailedWorkflow, letter.ExecutionID), ""); link != "" {
		line("web UI", link)
	}
	var failure strings.Builder
	if err := terminal.PrintJSON(&failure, letter.Error); err != nil {
		return err
	}
	fmt.Fprintf(&b, "error:\n%s", failure.String())
	_, err := io.WriteString(a.Out, b.String())
	return err
}
