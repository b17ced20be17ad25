// Package deadletters has the commands for permanently failed elements: it lists, shows and reprocesses dead letters.
package deadletters

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
	"reprise/starter/cli"
	"reprise/starter/session"
)

// NewDeadLettersCommand returns the command dead-letters.
func NewDeadLettersCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("dead-letters", "dlq", newDeadLettersListCommand(a), newDeadLettersShowCommand(a), newReprocessCommand(a))
}

// letterFlags select dead letters.
type letterFlags struct {
	runID, step, since string
	class              interpreter.Class
	cancelled          bool
}

func (f *letterFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	f.addRun(command)
	flags.StringVar(&f.step, "step", "", "only iterations of this step")
	flags.StringVar((*string)(&f.class), "class", "", "only errors of this class: "+cli.OrList(ErrorClasses))
	flags.StringVar(&f.since, "since", "", "only iterations that failed or were cancelled after a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.BoolVar(&f.cancelled, "cancelled", false, "also iterations of an ended run that were cancelled or never started")
}

func (f *letterFlags) addRun(command *cobra.Command) {
	command.Flags().StringVarP(&f.runID, "run-id", "r", "", "run ID, if several runs had the workflow ID; default: the latest")
}

// ErrorClasses are the error classes that can select dead letters.
var ErrorClasses = []interpreter.Class{interpreter.ClassFinal, interpreter.ClassRetryable, interpreter.ClassRateLimited}

// letterFilter validates the flags and returns them as a filter.
func (f *letterFlags) letterFilter(now time.Time) (deadletter.Filter, error) {
	filter := deadletter.Filter{Step: f.step, Class: f.class, Cancelled: f.cancelled}
	if f.class != "" {
		if err := cli.CheckChoice("--class", f.class, ErrorClasses); err != nil {
			return filter, err
		}
	}
	since, err := cli.ParseSince(f.since, now)
	filter.Since = since
	return filter, err
}

// readChain reads a run and its reprocesses. workflowID may be a prefix. It prints what could not be read.
func readChain(ctx context.Context, streams cli.Streams, s *session.Session, workflowID, runID string) (*deadletter.Chain, error) {
	if err := cli.CheckRun(workflowID, runID); err != nil {
		return nil, err
	}
	chain, err := s.DeadLetters().Chain(ctx, workflowID, runID)
	if errors.Is(err, runs.ErrNotFound) && runID == "" {
		found, missing := s.Runs().Find(ctx, workflowID, "")
		var several *runs.AmbiguousError
		switch {
		case missing == nil:
			chain, err = s.DeadLetters().Chain(ctx, found.WorkflowID, "")
		case errors.As(missing, &several):
			return nil, session.FindError(streams, s, missing)
		}
	}
	if errors.Is(err, runs.ErrNotFound) {
		return nil, cli.UsageError("%w on %s, namespace %s; %s dead-letters list shows those with failed iterations",
			err, s.Address, s.Namespace, terminal.ProgramName())
	}
	if err == nil {
		reportLost(streams, []*deadletter.Chain{chain})
	}
	return chain, err
}

// withChain calls work with a run and its reprocesses.
func withChain(
	a *cli.App, server *session.ServerFlags, workflowID, runID string, work func(context.Context, *session.Session, *deadletter.Chain) error,
) error {
	return session.WithServer(a, server, func(ctx context.Context, s *session.Session) error {
		chain, err := readChain(ctx, a.Streams, s, workflowID, runID)
		if err != nil {
			return err
		}
		return work(ctx, s, chain)
	})
}

func reportLost(streams cli.Streams, chains []*deadletter.Chain) {
	for _, chain := range chains {
		if chain.Lost > 0 {
			streams.Notef("note: %s of %s%s counted, but no history describes them any more",
				terminal.Count(chain.Lost, "failed iteration"), chain.Origin.WorkflowID, cli.IsAre(chain.Lost))
		}
	}
}

// listOptions are the flags of dead-letters list.
type listOptions struct {
	server  session.ServerFlags
	letters letterFlags
	all     bool
	limit   int
	output  string
}

// shownLetters is the default number of dead letters in a table.
const shownLetters = 100

func newDeadLettersListCommand(a *cli.App) *cobra.Command {
	options := &listOptions{}
	command := &cobra.Command{
		Use: "list [RUN]", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return listDeadLetters(a, strings.Join(args, ""), options)
		},
	}
	options.letters.addFlags(command)
	command.Flags().BoolVar(&options.all, "all", false, "also those that a reprocess has completed")
	command.Flags().IntVar(&options.limit, "limit", 0, fmt.Sprintf("maximum number to list; default %d in a table, all as JSON", shownLetters))
	options.server.Add(command)
	cli.OutputFlag(command, &options.output)
	return command
}

// letterList is the JSON output of dead-letters list.
type letterList struct {
	DeadLetters []deadletter.Letter `json:"dead_letters"` // newest first
	Total       int                 `json:"total"`        // without the limit
	// Cancelled counts the cancelled iterations of these runs that --cancelled would add to the list.
	Cancelled int `json:"cancelled"`
}

func listDeadLetters(a *cli.App, workflowID string, options *listOptions) error {
	filter, err := options.letters.letterFilter(time.Now())
	if err != nil {
		return err
	}
	filter.All = options.all
	return session.WithServer(a, &options.server, func(ctx context.Context, s *session.Session) error {
		return listLetters(ctx, a.Streams, s, workflowID, filter, options)
	})
}

func listLetters(
	ctx context.Context, streams cli.Streams, s *session.Session, workflowID string, filter deadletter.Filter, options *listOptions,
) error {
	chains, err := readChains(ctx, streams, s, workflowID, options.letters.runID, filter)
	if err != nil {
		return err
	}
	letters := deadletter.SelectLetters(chains, filter)
	list := letterList{DeadLetters: letters, Total: len(letters), Cancelled: countCancelled(chains, filter)}
	limit := options.limit
	if limit <= 0 && options.output == "table" {
		limit = shownLetters
	}
	if limit > 0 {
		list.DeadLetters = letters[:min(limit, len(letters))]
	}
	if options.output == "json" {
		list.DeadLetters = cli.OrEmpty(list.DeadLetters)
		return terminal.PrintJSON(streams.Out, list)
	}
	if err := writeLetters(streams, list); err != nil {
		return err
	}
	hintLetters(streams, list, chains, filter)
	hintCancelled(streams, chains, filter)
	return nil
}

func countCancelled(chains []*deadletter.Chain, filter deadletter.Filter) int {
	n := 0
	for _, chain := range chains {
		n += chain.CountCancelled(filter)
	}
	return n
}

// hintLetters prints how many dead letters of how many runs can be run again and how, and how to see all of one.
func hintLetters(streams cli.Streams, list letterList, chains []*deadletter.Chain, filter deadletter.Filter) {
	if len(list.DeadLetters) == 0 {
		return
	}
	open, of := 0, []string{}
	for _, chain := range chains {
		if n := len(ChooseLetters(chain, filter, 0).Open); n > 0 {
			open, of = open+n, append(of, chain.Origin.WorkflowID)
		}
	}
	switch len(of) {
	case 0:
	case 1:
		streams.Advisef("%s of %s. To run them again: %s dead-letters reprocess %s",
			terminal.Count(open, "open dead letter"), of[0], terminal.ProgramName(), terminal.ShellWord(of[0]))
	default:
		streams.Advisef("%s of %s. To run those of one again, such as: %s dead-letters reprocess %s",
			terminal.Count(open, "open dead letter"), terminal.Count(len(of), "run"), terminal.ProgramName(), terminal.ShellWord(of[0]))
	}
	streams.Advisef("To see all of one: %s dead-letters show %s", terminal.ProgramName(), terminal.ShellWord(list.DeadLetters[0].ID))
}

// shownHints bounds how many runs a hint names.
const shownHints = 10

// hintCancelled prints which runs have cancelled iterations, and how to reprocess those.
func hintCancelled(streams cli.Streams, chains []*deadletter.Chain, filter deadletter.Filter) {
	hinted := 0
	for _, chain := range chains {
		n := chain.CountCancelled(filter)
		if n == 0 {
			continue
		}
		if hinted++; hinted > shownHints {
			streams.Notef("more runs have cancelled iterations")
			return
		}
		take := "to run them again"
		if failed := len(ChooseLetters(chain, filter, 0).Open); failed > 0 {
			take += fmt.Sprintf(", with the %d that failed", failed)
		}
		streams.Advisef("%s of %s did not run to the end; %s: %s dead-letters reprocess %s --cancelled",
			terminal.Count(n, "cancelled iteration"), chain.Origin.WorkflowID, take, terminal.ProgramName(), terminal.ShellWord(chain.Origin.WorkflowID))
	}
}

func readChains(
	ctx context.Context, streams cli.Streams, s *session.Session, workflowID, runID string, filter deadletter.Filter,
) ([]*deadletter.Chain, error) {
	if workflowID != "" {
		chain, err := readChain(ctx, streams, s, workflowID, runID)
		return []*deadletter.Chain{chain}, err
	}
	if runID != "" {
		return nil, cli.UsageError("--run-id needs a WORKFLOW-ID")
	}
	chains, err := s.DeadLetters().Search(ctx, s.Namespace, filter.Since)
	if errors.Is(err, deadletter.ErrNoAttributes) {
		return nil, fmt.Errorf("%w; name a run, or ask an administrator to add it with type Int", err)
	}
	if err == nil {
		reportLost(streams, chains)
	}
	return chains, err
}

func writeLetters(streams cli.Streams, list letterList) error {
	if list.Total == 0 {
		streams.Notef("no dead letters")
		return nil
	}
	_, err := io.WriteString(streams.Out, lettersTable(list.DeadLetters, terminal.PaperOf(streams.Out))+"\n")
	if left := list.Total - len(list.DeadLetters); left > 0 {
		streams.Notef("and %d more; --limit %d shows them", left, list.Total)
	}
	return err
}

// leastTableWidth is the least width of a terminal that gets a table of dead letters: the columns of a narrower one would be as
// wide as a word.
const leastTableWidth = 60

// lettersText returns each dead letter in lines of its own, for a narrow terminal.
func lettersText(letters []deadletter.Letter, paper terminal.Paper) string {
	var b strings.Builder
	for _, letter := range letters {
		for _, line := range paper.WrapLines(terminal.EscapeInvisible(letter.ID)) {
			b.WriteString(line + "\n")
		}
		b.WriteString(terminal.HangingLine("  ", "element: "+paper.Shorten(expression.Text(letter.Element.Data), 60), paper.Width))
		b.WriteString(terminal.HangingLine("  ", "error: "+paper.Shorten(letter.Error.Message, 200), paper.Width))
		b.WriteString(terminal.HangingLine("  ", fmt.Sprintf("%s, %s after %s", letter.State, letter.Error.Class, terminal.Count(letter.Attempts, "attempt")), paper.Width))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lettersTable returns a table that fits the terminal. It drops less important columns and wraps the error.
func lettersTable(letters []deadletter.Letter, paper terminal.Paper) string {
	const fewest = 3 // columns
	if paper.Width < leastTableWidth {
		return lettersText(letters, paper)
	}
	ids := lists.Map(letters, func(letter deadletter.Letter) string { return letter.ID })
	return terminal.FitColumns(paper.Width, ids, [][]string{
		{"dead letter", "element", "error", "status", "class", "attempts", "failed runs", "last attempt"},
		{"dead letter", "element", "error", "status", "class", "attempts"},
		{"dead letter", "element", "error", "status"},
		{"dead letter", "element", "error"},
	}, func(columns, ids []string) string {
		rows := terminal.NewTable(terminal.HeadRow(columns)...)
		for i, letter := range letters {
			rows.AppendRow(terminal.TableRow(columns, map[string]any{
				"last attempt": terminal.Time(letter.LastAttemptAt), "dead letter": ids[i],
				"element": paper.Shorten(expression.Text(letter.Element.Data), 60), "class": letter.Error.Class,
				"error": paper.Shorten(letter.Error.Message, 200), "attempts": letter.Attempts, "failed runs": letter.FailedRuns, "status": letter.State,
			}))
		}
		elastic := []terminal.Elastic{{Name: "error", Least: 24, Cut: text.WrapSoft}, {Name: "element", Least: 10, Cut: text.WrapSoft}}
		if len(columns) == fewest {
			elastic = append(elastic, terminal.Elastic{Name: "error", Least: 9, Cut: text.WrapSoft}, terminal.Elastic{Name: "element", Least: 7, Cut: text.WrapSoft})
		}
		return terminal.FitTable(rows, paper.Width, elastic...)
	})
}

// showOptions are the flags of dead-letters show.
type showOptions struct {
	server  session.ServerFlags
	letters letterFlags
	output  string
}

func newDeadLettersShowCommand(a *cli.App) *cobra.Command {
	options := &showOptions{}
	command := &cobra.Command{
		Use: "show DEAD-LETTER", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return showDeadLetter(a, args[0], options) },
	}
	options.letters.addRun(command)
	options.server.Add(command)
	cli.OutputFlag(command, &options.output)
	return command
}

// letterID matches the ID of a dead letter: that of the run, the step with its visit, and the index.
var letterID = regexp.MustCompile(`^(.+)/[^/]*/[^/]*$`)

func showDeadLetter(a *cli.App, id string, options *showOptions) error {
	parts := letterID.FindStringSubmatch(id)
	if parts == nil {
		return cli.UsageError("%q is not the ID of a dead letter, such as 'patients-7x2k/fetch#1/13'; %s dead-letters list shows the IDs", id, terminal.ProgramName())
	}
	workflowID := parts[1]
	return withChain(a, &options.server, workflowID, options.letters.runID, func(ctx context.Context, s *session.Session, chain *deadletter.Chain) error {
		letters := chain.Select(deadletter.Filter{All: true, Cancelled: true})
		full := chain.Origin.WorkflowID + strings.TrimPrefix(id, workflowID)
		position := slices.IndexFunc(letters, func(letter deadletter.Letter) bool { return letter.ID == full })
		if position < 0 {
			return cli.UsageError("run %s has no dead letter %q; it has %s", workflowID, id, terminal.Count(len(chain.Letters), "dead letter"))
		}
		failed, err := s.DeadLetters().FailedChild(ctx, chain, letters[position])
		if err != nil {
			return err
		}
		doc := letterDocument{Letter: letters[position], FailedWorkflow: failed}
		if options.output == "json" {
			return terminal.PrintJSON(a.Out, doc)
		}
		return writeLetter(a.Streams, s, doc)
	})
}

// letterDocument is the JSON output for a dead letter.
type letterDocument struct {
	deadletter.Letter
	// FailedWorkflow is the workflow whose history has the last failure; "" if there is none.
	FailedWorkflow string `json:"failed_workflow,omitempty"`
}

func writeLetter(streams cli.Streams, s *session.Session, letter letterDocument) error {
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
	if link := s.RunLink(cmp.Or(letter.FailedWorkflow, letter.ExecutionID), ""); link != "" {
		line("web UI", link)
	}
	var failure strings.Builder
	if err := terminal.PrintJSON(&failure, letter.Error); err != nil {
		return err
	}
	fmt.Fprintf(&b, "error:\n%s", failure.String())
	_, err := io.WriteString(streams.Out, b.String())
	return err
}
