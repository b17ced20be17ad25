package state

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/workflows/protocol"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/starter/wording"
)

// stateDocument is a state in the JSON output of `state list` and `state show`.
type stateDocument struct {
	Step   string                 `json:"step,omitempty"` // not known by a database alone
	State  string                 `json:"state"`          // its name
	KeptBy string                 `json:"kept_by"`        // postgres, sqlite, or temporal
	Type   incremental.CursorType `json:"type"`
	// Watermark is nil for a state without progress. ReadsFrom is where the next run starts; it is not set if the
	// step is unknown.
	Watermark expression.Value `json:"watermark"`
	ReadsFrom expression.Value `json:"reads_from"`
	// Behind is how far the watermark lies in the past, in seconds; nil if cursors are not times.
	Behind  *float64  `json:"behind_seconds,omitempty"`
	MovedAt time.Time `json:"moved_at,omitzero"`
	// ClaimedAt is when Run claimed it.
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	Run       string    `json:"run,omitempty"` // that claimed it last
	Rows      int64     `json:"rows"`          // that its last call has written
	// Table is the table that the state belongs to, as its database names it.
	Table string `json:"table,omitempty"`
	// HeldBy are the runs that hold the step's states now; nil if that is not known. HeldSince is when the first of
	// them acquired its state.
	HeldBy    []string  `json:"held_by,omitzero"`
	HeldSince time.Time `json:"held_since,omitzero"`
}

func newStateDocument(of keptStep, found foundStates, state incremental.State, now time.Time) stateDocument {
	section := of.step.Incremental
	doc := documentOf(state, section.Type, of.keptBy(), now)
	doc.HeldBy, doc.HeldSince = found.holders, found.heldSince
	doc.Step, doc.ReadsFrom = of.name, state.ReadsFrom(section.CursorForm(), section.Lag).Value
	if state.Watermark.IsZero() {
		doc.ReadsFrom = section.InitialText()
	}
	return doc
}

// documentOf returns the document of a stored state.
func documentOf(state incremental.State, of incremental.CursorType, keptBy string, now time.Time) stateDocument {
	doc := stateDocument{
		State: state.Name, KeptBy: keptBy, Type: of, Watermark: state.Watermark.Value, MovedAt: state.MovedAt, Run: state.Run, Rows: state.Rows,
		Table: state.Table, ClaimedAt: state.ClaimedAt,
	}
	if behind, ok := incremental.BehindNow(of, state.Watermark, now); ok {
		seconds := behind.Round(time.Millisecond).Seconds()
		doc.Behind = &seconds
	}
	return doc
}

// addHolders adds the runs that hold the state, from a worker's answer.
func (d *stateDocument) addHolders(answer interpreter.StateAnswer) {
	if answer.HoldersUnknown != "" {
		return
	}
	d.HeldBy = []string{}
	if i := slices.IndexFunc(answer.Held, func(held interpreter.HeldState) bool { return held.State == d.State }); i >= 0 {
		d.HeldBy, d.HeldSince = answer.Held[i].Holders, answer.Held[i].Since
	}
}

// stateList is the JSON output of `state list`.
type stateList struct {
	States []stateDocument `json:"states"`
	// More is set if there are more states than the list shows.
	More bool `json:"more"`
}

// stateListOptions are the flags of state list.
type stateListOptions struct {
	stateOptions
	auth string
	tool string
}

func newStateListCommand(a *cli.App) *cobra.Command {
	o := &stateListOptions{}
	command := &cobra.Command{
		Use: "list [FILE] [STEP]", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && command.Flags().Changed("auth"):
				return cli.UsageError("give either a FILE or --auth, not both")
			case command.Flags().Changed("auth"):
				return listStatesOf(a, o)
			case len(args) == 0:
				return cli.UsageError("give a FILE whose steps have states, or --auth with the connection of a database that stores them")
			case o.tool != "":
				return cli.UsageError("--tool needs --auth; with a FILE, the playbook names the tool")
			}
			return listStates(a, args[0], cli.SecondArg(args), &o.stateOptions)
		},
	}
	o.addFlags(command, false)
	command.Flags().StringVar(&o.auth, "auth", "", "connection of the worker to the database that stores the states, instead of FILE")
	command.Flags().StringVar(&o.tool, "tool", "", "postgres or sqlite, with --auth; default: the tool that the connection is for")
	return command
}

// listStatesOf lists all states in a database.
func listStatesOf(a *cli.App, o *stateListOptions) error {
	switch {
	case o.auth == "":
		return cli.UsageError("--auth is empty; expected the name of a connection of the worker, or sqlite:PATH")
	case !strings.HasPrefix(o.auth, "sqlite:") && strings.ContainsAny(o.auth, ":/@= "):
		return cli.UsageError("--auth: expected the name of a connection that the worker knows, such as warehouse, not the connection itself")
	case o.tool != "" && !playbook.TraitsOf(o.tool).KeepsStates:
		return cli.UsageError("--tool %q: expected postgres or sqlite, which store states", o.tool)
	}
	return withStates(a, &o.stateOptions, nil, func(ctx context.Context, s *session.Session) error {
		answer, err := onStates(ctx, s, "the states of "+o.auth, interpreter.StateCommand{Place: &interpreter.ToolInput{
			Tool: o.tool, Auth: o.auth, Step: "starter state list",
		}, Held: true})
		if err != nil {
			return err
		}
		now, list := time.Now(), stateList{More: answer.More}
		list.States = lists.Map(answer.States, func(state incremental.State) stateDocument {
			doc := documentOf(state, state.Source.Type, answer.Tool, now)
			doc.addHolders(answer)
			return doc
		})
		if answer.HoldersUnknown != "" {
			a.Notef("note: it is unknown which runs hold the states: %s", terminal.OneLine(answer.HoldersUnknown))
		}
		if len(list.States) == 0 {
			a.Notef("%s: there are no states yet", terminal.OneLine(o.auth))
		}
		return writeStates(a.Streams, list, o.output)
	})
}

func listStates(a *cli.App, name, step string, o *stateOptions) error {
	all, err := loadKeptSteps(a, name, step, o)
	if err != nil {
		return err
	}
	return withStates(a, o, all, func(ctx context.Context, s *session.Session) error {
		list := stateList{States: []stateDocument{}}
		for _, one := range all {
			if one.isUnnamed() && one.at.Prefix == "" {
				a.Notef("note: Temporal keeps each state of step %s separately, as %s; state show shows one, by --element or --state", one.name, one.state.Name)
				continue
			}
			found, err := findStates(ctx, s, one)
			if err != nil {
				return err
			}
			if len(found.states) == 0 {
				a.Notef("%s: there is no state yet", one.name)
			}
			for _, state := range found.states {
				list.States = append(list.States, newStateDocument(one, found, state, time.Now()))
			}
			list.More = list.More || found.more
		}
		return writeStates(a.Streams, list, o.output)
	})
}

func writeStates(streams cli.Streams, list stateList, output string) error {
	switch {
	case output == "json":
		return terminal.PrintJSON(streams.Out, list)
	case len(list.States) == 0:
		return nil
	}
	now := time.Now()
	_, err := io.WriteString(streams.Out, statesTable(list.States, now, terminal.PaperOf(streams.Out))+"\n"+heldSteps(list.States, now))
	if list.More {
		streams.Notef("and more; state show shows one by its name")
	}
	return err
}

func movedText(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return terminal.ClockText(at, now)
}

func statesTable(states []stateDocument, now time.Time, paper terminal.Paper) string {
	rows := terminal.NewTable("state", "watermark", "moved", "rows", "last run")
	for _, state := range states {
		rows.AppendRow(table.Row{
			terminal.OneLine(state.State), wording.CursorText(state.Watermark), movedText(state.MovedAt, now), state.Rows, terminal.OneLine(state.Run),
		})
	}
	return terminal.FitTable(rows, paper.Width,
		terminal.Elastic{Name: "last run", Least: 16, Cut: terminal.WrapName}, terminal.Elastic{Name: "watermark", Least: 20, Cut: terminal.WrapName},
		terminal.Elastic{Name: "state", Least: 20, Cut: terminal.WrapName}, terminal.Elastic{Name: "last run"}, terminal.Elastic{Name: "rows"},
		terminal.Elastic{Name: "moved"}, terminal.Elastic{Name: "watermark", Least: 10, Cut: terminal.WrapName}, terminal.Elastic{Name: "state", Least: 10, Cut: terminal.WrapName})
}

// heldSteps returns a line for each step whose states are held by runs: a visit of a step holds all its states. If
// the steps are unknown, adjacent states with the same holders share a line.
func heldSteps(states []stateDocument, now time.Time) string {
	var b strings.Builder
	for at, rest := 0, 0; at < len(states); at = rest {
		state := states[at]
		for rest = at + 1; rest < len(states) && states[rest].Step == state.Step && states[rest].HeldSince.Equal(state.HeldSince); {
			rest++
		}
		if len(state.HeldBy) == 0 {
			continue
		}
		of := "step " + state.Step
		if state.Step == "" {
			of = "state " + state.State
			if more := rest - at - 1; more > 0 {
				of += fmt.Sprintf(" and %d more", more)
			}
		}
		_, _ = fmt.Fprintf(&b, "%s: held %s\n", terminal.OneLine(of), terminal.OneLine(heldText(state, now)))
	}
	return b.String()
}

// heldText returns which runs hold a state now.
func heldText(state stateDocument, now time.Time) string {
	switch {
	case state.HeldBy == nil:
		return "unknown: the queue of the state did not respond"
	case len(state.HeldBy) == 0:
		return "by no run"
	}
	return "by " + strings.Join(state.HeldBy, ", ") + " since " + terminal.ClockText(state.HeldSince, now)
}

// oneStateCommand returns a command that shows something about one step's state.
func oneStateCommand(a *cli.App, name string, show func(ctx context.Context, a *cli.App, s *session.Session, one keptStep, output string) error) *cobra.Command {
	o := &stateOptions{}
	command := &cobra.Command{
		Use: name + " FILE [STEP]", Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			one, err := oneState(a, args[0], cli.SecondArg(args), o)
			if err != nil {
				return err
			}
			return withStates(a, o, []keptStep{one}, func(ctx context.Context, s *session.Session) error { return show(ctx, a, s, one, o.output) })
		},
	}
	o.addFlags(command, true)
	return command
}

func showState(ctx context.Context, a *cli.App, s *session.Session, one keptStep, output string) error {
	found, state, err := findState(ctx, s, one)
	if err != nil {
		return err
	}
	if state == nil {
		return cli.UsageError("the state %s does not exist yet", one.at.Name)
	}
	doc := newStateDocument(one, found, *state, time.Now())
	return a.ShowDocument(output, doc, stateText(doc, wording.DescribeState(one.state), time.Now()))
}

// stateText returns a state for people, one property per line. stored is where it is kept.
func stateText(doc stateDocument, stored string, now time.Time) string {
	var b strings.Builder
	line := func(key, text string) { _, _ = fmt.Fprintf(&b, "%-11s %s\n", key, terminal.OneLine(text)) }
	line("state", doc.State)
	line("step", doc.Step)
	line("stored", stored)
	if doc.Table != "" {
		line("table", doc.Table)
	}
	line("watermark", wording.CursorText(doc.Watermark)+" ("+string(doc.Type)+")")
	if doc.Behind != nil {
		line("behind", render.BehindText(doc.Type, *doc.Behind))
	}
	line("reads from", wording.CursorText(doc.ReadsFrom))
	line("moved", movedText(doc.MovedAt, now))
	line("held", heldText(doc, now))
	if doc.Run != "" {
		line("last run", doc.Run)
		if !doc.ClaimedAt.IsZero() {
			line("claimed", terminal.ClockText(doc.ClaimedAt, now))
		}
		line("rows", fmt.Sprint(doc.Rows))
	}
	return b.String()
}

// changeDocument is a change in the JSON output of `state history`.
type changeDocument struct {
	At   time.Time        `json:"at"`
	By   string           `json:"by"`
	From expression.Value `json:"from"`
	To   expression.Value `json:"to"` // nil: forgotten
	Note string           `json:"note,omitempty"`
}

// stateHistory is the JSON output of `state history`.
type stateHistory struct {
	Step    string           `json:"step"`
	State   string           `json:"state"`
	Changes []changeDocument `json:"changes"`
}

func showChanges(ctx context.Context, a *cli.App, s *session.Session, one keptStep, output string) error {
	answer, err := stateCommand(ctx, s, one, interpreter.StateCommand{History: one.at.Name})
	if err != nil {
		return err
	}
	doc := stateHistory{Step: one.name, State: one.at.Name}
	doc.Changes = lists.Map(answer.Changes, func(change incremental.StateChange) changeDocument {
		return changeDocument{At: change.At, By: change.By, From: change.From.Value, To: change.To.Value, Note: change.Note}
	})
	if output == "json" {
		return terminal.PrintJSON(a.Out, doc)
	}
	if len(doc.Changes) == 0 {
		a.Notef("%s has not changed yet", doc.State)
		return nil
	}
	_, err = io.WriteString(a.Out, changesTable(doc.Changes, time.Now(), terminal.PaperOf(a.Out))+"\n")
	return err
}

func changesTable(changes []changeDocument, now time.Time, paper terminal.Paper) string {
	rows := terminal.NewTable("at, by", "from, to", "note")
	for _, change := range changes {
		to := "→ " + wording.CursorText(change.To)
		if change.To.Data == nil {
			to = "forgotten"
		}
		rows.AppendRow(table.Row{
			movedText(change.At, now) + "\n" + terminal.OneLine(change.By), wording.CursorText(change.From) + "\n" + to, terminal.Shorten(change.Note, protocol.MaxSaid),
		})
		rows.AppendSeparator()
	}
	const aTime = 23 // letters
	return terminal.FitTable(rows, paper.Width,
		terminal.Elastic{Name: "at, by", Least: aTime, Cut: terminal.EachLine(terminal.WrapName)}, terminal.Elastic{Name: "note", Least: 13, Cut: text.WrapSoft},
		terminal.Elastic{Name: "from, to", Least: aTime, Cut: terminal.EachLine(terminal.WrapName)}, terminal.Elastic{Name: "note"},
		terminal.Elastic{Name: "at, by", Least: 10, Cut: terminal.EachLine(terminal.WrapName)}, terminal.Elastic{Name: "from, to", Least: 10, Cut: terminal.EachLine(terminal.WrapName)})
}
