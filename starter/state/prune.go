package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/starter/wording"
)

// pruneOptions are the flags of state prune.
type pruneOptions struct {
	stateOptions
	unusedSince string
	elements    string
	dryRun      bool
	yes         bool
	note        string
}

func newStatePruneCommand(a *cli.App) *cobra.Command {
	o := &pruneOptions{}
	command := &cobra.Command{
		Use: "prune FILE [STEP]", Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return pruneStates(a, args[0], cli.SecondArg(args), o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.unusedSince, "unused-since", "", "only states that no run has claimed since a time, such as 90d, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&o.elements, "elements", "", "only states of elements that are not in this file, a list in YAML or JSON or one element per line; - for standard input")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only list the states")
	flags.BoolVar(&o.yes, "yes", false, "do not ask for a confirmation")
	flags.StringVar(&o.note, "reason", "", "the reason, kept in the history")
	o.addFlags(command, false)
	return command
}

// pruning says which states of a step are removed.
type pruning struct {
	keptStep
	// unusedSince is zero if the time of the last use does not matter.
	unusedSince time.Time
	// exist are the names of the states whose elements still exist; nil if that does not matter.
	exist map[string]bool
	// others are the names of the states of other steps of the playbook.
	others []*regexp.Regexp
}

// pruneOutcome is the JSON output of state prune.
type pruneOutcome struct {
	Step   string          `json:"step"`
	DryRun bool            `json:"dry_run"`
	States []stateDocument `json:"states"` // that are selected
	// Removed are the names of those that were removed: others were used in the meantime.
	Removed []string `json:"removed"`
	// UseUnknown are the names of states of which it is not known when they were last used, and which therefore stay.
	UseUnknown []string `json:"use_unknown,omitempty"`
	// Left is the number of states that the step still has.
	Left   int      `json:"left"`
	By     string   `json:"by,omitempty"`
	Note   string   `json:"note,omitempty"`
	HeldBy []string `json:"held_by,omitempty"` // runs because of which nothing was removed
}

func pruneStates(a *cli.App, name, step string, o *pruneOptions) error {
	if err := cli.CheckNote("reason", o.note); err != nil {
		return err
	}
	p, err := o.readPruning(a, name, step)
	if err != nil {
		return err
	}
	if !o.yes && !o.dryRun && !a.CanAsk() {
		return a.Confirm(false, fmt.Sprintf("Remove states of step %s?", p.name))
	}
	return withStates(a, &o.stateOptions, []keptStep{p.keptStep}, func(ctx context.Context, s *session.Session) error {
		found, err := p.findAllStates(ctx, a, s)
		if err != nil {
			return err
		}
		selected, unknown := p.selectStates(found.states)
		outcome := pruneOutcome{Step: p.name, DryRun: o.dryRun, Removed: []string{}, Left: len(found.states), Note: o.note, UseUnknown: lists.Map(unknown, nameOf)}
		outcome.States = lists.Map(selected, func(state incremental.State) stateDocument {
			return newStateDocument(p.keptStep, found, state, time.Now())
		})
		if err := o.showSelected(a, p, outcome, found.holders); err != nil {
			return err
		}
		if len(selected) > 0 && !o.dryRun {
			if outcome.HeldBy = found.holders; len(found.holders) == 0 {
				if err := a.Confirm(o.yes, p.pruneQuestion(len(selected), len(found.states))); err != nil {
					return err
				}
				outcome.By = cli.Whoami()
				err = p.removeStates(ctx, s, selected, &outcome)
			}
		}
		return errors.Join(o.reportPruned(a, p, outcome), err)
	})
}

func nameOf(state incremental.State) string { return state.Name }

// readPruning reads which states of which step are removed.
func (o *pruneOptions) readPruning(a *cli.App, name, step string) (p pruning, err error) {
	if o.unusedSince == "" && o.elements == "" {
		return p, cli.UsageError("say which states are no longer needed: --unused-since with a time, such as 90d, or --elements with a file of the elements that still exist")
	}
	if name == "-" && o.elements == "-" {
		return p, cli.UsageError("FILE and --elements cannot both be standard input")
	}
	now := time.Now()
	if p.unusedSince, err = cli.ParseSinceOf("--unused-since", o.unusedSince, now); err != nil {
		return p, err
	}
	if p.unusedSince.After(now) {
		return p, cli.UsageError("--unused-since %s is in the future", o.unusedSince)
	}
	book, workload, err := o.loadBook(a, name, step)
	if err != nil {
		return p, err
	}
	if p.keptStep, err = stepByElement(book, workload, step); err != nil {
		return p, err
	}
	p.others = otherNames(book, workload, p.name)
	if o.elements == "" {
		return p, nil
	}
	elements, err := readElements(a, o.elements)
	if err != nil {
		return p, err
	}
	p.exist = map[string]bool{}
	for i, element := range elements {
		at, _, _, err := locateState(book, workload, p.name, []expression.Value{expression.Of(element)})
		if err != nil {
			return p, cli.UsageError("--elements: element %d has no state: %w", i+1, err)
		}
		p.exist[at.Name] = true
	}
	return p, nil
}

// stepByElement returns the step, or the only one, with a state for each element of its loop.
func stepByElement(book *playbook.Playbook, workload map[string]any, only string) (keptStep, error) {
	var byElement []keptStep
	for _, state := range book.KeptStates() {
		if only != "" && state.Step != only {
			continue
		}
		at, step, loops, err := locateState(book, workload, state.Step, nil)
		switch {
		case err != nil && only == "":
			continue
		case err != nil:
			return keptStep{}, cli.UsageError("the names of the states of step %q are not known: %w; pass the missing values with --set", state.Step, err)
		case at.Each:
			byElement = append(byElement, keptStep{name: state.Step, step: step, at: at, state: state, loops: loops})
		case only != "":
			return keptStep{}, cli.UsageError("step %q has a single state, %s; starter state reset forgets it", only, at.Name)
		}
	}
	switch {
	case len(byElement) == 0:
		return keptStep{}, cli.UsageError("no step of playbook %s has a state for each element of a loop", book.Name)
	case len(byElement) > 1:
		names := lists.Map(byElement, func(one keptStep) string { return one.name })
		return keptStep{}, cli.UsageError("several steps have a state for each element: %s; name one after FILE", strings.Join(names, ", "))
	case byElement[0].at.Prefix == "":
		return keptStep{}, cli.UsageError("names of states of step %q begin with the element, so those of other playbooks cannot be distinguished; forget single ones with starter state reset", byElement[0].name)
	case byElement[0].loops > 1:
		return keptStep{}, cli.UsageError("step %q is in several loops; forget single states with starter state reset", byElement[0].name)
	}
	return byElement[0], nil
}

// otherNames returns patterns of the names of the states of the playbook's other steps, as far as they are known.
func otherNames(book *playbook.Playbook, workload map[string]any, except string) (others []*regexp.Regexp) {
	for _, state := range book.KeptStates() {
		if state.Step == except {
			continue
		}
		if at, step, loops, err := locateState(book, workload, state.Step, nil); err == nil {
			others = append(others, keptStep{step: step, at: at, loops: loops}.namePattern())
		}
	}
	return others
}

// placeholder is an expression in the name of a state.
var placeholder = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// namePattern returns a pattern of the names of the step's states.
func (k keptStep) namePattern() *regexp.Regexp {
	name := k.at.Key
	switch {
	case !k.at.Each:
		return regexp.MustCompile("^" + regexp.QuoteMeta(k.at.Name) + "$")
	case k.step.Incremental.State == nil:
		name += "/{{ element }}"
	}
	fixed := lists.Map(placeholder.Split(name, -1), regexp.QuoteMeta)
	return regexp.MustCompile("(?s)^" + strings.Join(fixed, ".+") + "$")
}

// maxElements bounds the file of elements, in bytes: all of it is in memory, and a wrong file may have any size.
const maxElements = 16 << 20

// readElements reads the elements that exist from a file.
func readElements(a *cli.App, name string) ([]any, error) {
	from := io.NopCloser(a.In)
	if name != "-" {
		file, err := a.Files.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, cli.UsageError("--elements: there is no file %q", name)
		case err != nil:
			return nil, cli.UsageError("--elements: %w", err)
		}
		from = file
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, maxElements+1))
	if err != nil {
		return nil, cli.UsageError("--elements: %w", err)
	}
	elements, err := parseElements(data)
	if err == nil && len(elements) == 0 {
		err = errors.New("there is no element in it, so all states would be removed; if that is meant, use --unused-since 0d")
	}
	if err != nil {
		return nil, cli.UsageError("--elements %s: %w", name, err)
	}
	return elements, nil
}

// parseElements parses a list in YAML or JSON, or one element per line.
func parseElements(data []byte) (elements []any, err error) {
	if len(data) > maxElements {
		return nil, fmt.Errorf("the file has more than %d bytes", maxElements)
	}
	value, found := playbook.DecodeData(source.NewFile("elements", data))
	if list, is := value.([]any); is && len(found.Errors()) == 0 {
		return list, nil
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		element, err := load.ParseSetValue(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		elements = append(elements, element)
	}
	return elements, nil
}

// findAllStates returns all states of the step, page by page.
func (p pruning) findAllStates(ctx context.Context, a *cli.App, s *session.Session) (found foundStates, err error) {
	pattern := p.namePattern()
	list := interpreter.StateCommand{Place: p.at.Place, Group: p.at.Group, Prefix: p.at.Prefix, Queue: p.queueID()}
	for more := true; more; {
		answer, err := onStates(ctx, s, fmt.Sprintf("the states of step %q", p.name), list)
		switch {
		case err != nil:
			return found, err
		case answer.HoldersUnknown != "":
			return found, fmt.Errorf("it is unknown which runs hold the states: %s", answer.HoldersUnknown)
		case len(answer.States) > 0 && list.After != "" && answer.States[0].Name <= list.After:
			return found, errors.New("the workers that respond run an older build, which cannot list all states")
		}
		if more = answer.More && !p.isUnnamed(); len(answer.States) > 0 {
			list.After = answer.States[len(answer.States)-1].Name
		}
		if answer.More && !more {
			a.Notef("note: there are more states than a command can look at")
		}
		found.holders, found.heldSince = answer.Holders, answer.HeldSince
		found.states = append(found.states, lists.Filter(answer.States, func(state incremental.State) bool { return pattern.MatchString(state.Name) && p.isOwn(state) })...)
	}
	return found, nil
}

func (p pruning) queueID() string { return queue.Name{Key: p.at.Key, State: true}.WorkflowID() }

// isOwn reports whether a state belongs to the step: another step's name may fit, too.
func (p pruning) isOwn(state incremental.State) bool {
	known := state.Source
	return (known.Type == "" || known.Type == p.step.Incremental.Type && known.CursorPath == p.step.Incremental.CursorPath) &&
		!slices.ContainsFunc(p.others, func(other *regexp.Regexp) bool { return other.MatchString(state.Name) })
}

// selectStates returns the states to be removed, and those that stay because it is unknown when they were last used.
func (p pruning) selectStates(states []incremental.State) (selected, unknown []incremental.State) {
	for _, state := range states {
		used := state.UsedAt()
		switch {
		case p.exist[state.Name]:
		case p.unusedSince.IsZero():
			selected = append(selected, state)
		case used.IsZero():
			unknown = append(unknown, state)
		case used.Before(p.unusedSince):
			selected = append(selected, state)
		}
	}
	return selected, unknown
}

// removeStates removes the selected states in batches, as far as they are unused until then.
func (p pruning) removeStates(ctx context.Context, s *session.Session, selected []incremental.State, outcome *pruneOutcome) error {
	for batch := range slices.Chunk(selected, incremental.MaxRemoved) {
		answer, err := onStates(ctx, s, fmt.Sprintf("the states of step %q", p.name), interpreter.StateCommand{
			Place: p.at.Place, Group: p.at.Group, Queue: p.queueID(),
			Removal: &incremental.Removal{States: lists.Map(batch, incremental.State.ListedState), By: outcome.By, Note: outcome.Note},
		})
		switch {
		case err != nil:
			return err
		case len(answer.Holders) > 0:
			outcome.HeldBy = answer.Holders
			return nil
		case answer.Removed == nil:
			return errors.New("the workers that respond run an older build, which cannot remove states")
		}
		outcome.Removed = append(outcome.Removed, answer.Removed...)
		outcome.Left -= len(answer.Removed)
	}
	return nil
}

// mostShown bounds the states in the text output: a longer table would push the question about them off the screen.
const mostShown = 50

// showSelected shows people which states are selected, and warns of what follows from their removal.
func (o *pruneOptions) showSelected(a *cli.App, p pruning, outcome pruneOutcome, holders []string) error {
	if n := len(outcome.UseUnknown); n > 0 {
		a.Notef("note: %s of step %s not removed, because an older build has claimed them last, so it is unknown when; --elements removes them",
			terminal.Count(n, "state"), p.name+cli.IsAre(n))
	}
	if len(outcome.States) > 0 && p.state.Inserts != nil {
		a.Notef("the sink on line %d inserts: if an element comes back, rows that are read again would be in the table twice", p.state.Inserts.Pos.Line)
	}
	if o.dryRun && len(holders) > 0 {
		a.Notef("note: the run %s holds the states of step %s, so none can be removed now", strings.Join(holders, ", "), p.name)
	}
	if o.output == "json" || len(outcome.States) == 0 {
		return nil
	}
	shown := outcome.States[:min(len(outcome.States), mostShown)]
	text := prunedTable(shown, time.Now(), terminal.PaperOf(a.Out)) + "\n"
	if more := len(outcome.States) - len(shown); more > 0 {
		text += fmt.Sprintf("and %d more; --dry-run --output json lists all\n", more)
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

func prunedTable(states []stateDocument, now time.Time, paper terminal.Paper) string {
	rows := terminal.NewTable("state", "watermark", "last used", "last run")
	for _, state := range states {
		used := state.ClaimedAt
		if state.MovedAt.After(used) {
			used = state.MovedAt
		}
		rows.AppendRow(table.Row{terminal.OneLine(state.State), wording.CursorText(state.Watermark), movedText(used, now), terminal.OneLine(state.Run)})
	}
	return terminal.FitTable(rows, paper.Width,
		terminal.Elastic{Name: "last run", Least: 16, Cut: terminal.WrapName}, terminal.Elastic{Name: "watermark", Least: 10, Cut: terminal.WrapName},
		terminal.Elastic{Name: "state", Least: 20, Cut: terminal.WrapName}, terminal.Elastic{Name: "last run"}, terminal.Elastic{Name: "last used"},
		terminal.Elastic{Name: "state", Least: 10, Cut: terminal.WrapName})
}

func (p pruning) pruneQuestion(selected, all int) string {
	return fmt.Sprintf("Remove %d of %s of step %s? If an element comes back, it is read from %s.",
		selected, terminal.Count(all, "state"), p.name, initialText(p.step.Incremental))
}

// reportPruned reports what was removed.
func (o *pruneOptions) reportPruned(a *cli.App, p pruning, outcome pruneOutcome) error {
	if o.output == "json" {
		if err := terminal.PrintJSON(a.Out, outcome); err != nil {
			return err
		}
	}
	removed, selected := len(outcome.Removed), len(outcome.States)
	if len(outcome.HeldBy) > 0 {
		done := "nothing was removed"
		if removed > 0 {
			done = fmt.Sprintf("%d of %d were removed", removed, selected)
		}
		return fmt.Errorf("the run %s holds the states of step %s; %s. Wait until it ends, or cancel it: %s cancel %s",
			strings.Join(outcome.HeldBy, ", "), p.name, done, terminal.ProgramName(), terminal.ShellWord(outcome.HeldBy[0]))
	}
	if skipped := selected - removed; skipped > 0 && !o.dryRun && outcome.By != "" {
		a.Notef("note: %s used in the meantime and not removed", terminal.Count(skipped, "state")+cli.IsAre(skipped))
	}
	switch {
	case o.output == "json":
		return nil
	case selected == 0:
		return a.PrintLine("%s: none of %s is to be removed", p.name, terminal.Count(outcome.Left, "state"))
	case o.dryRun:
		return a.PrintLine("%s: %d of %s would be removed", p.name, selected, terminal.Count(outcome.Left, "state"))
	}
	return a.PrintLine("%s: %s removed, %d left", p.name, terminal.Count(removed, "state"), outcome.Left)
}
