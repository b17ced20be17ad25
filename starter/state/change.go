package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/starter/wording"
)

// stateChange are the flags of state set and reset.
type stateChange struct {
	stateOptions
	yes  bool
	note string
}

func (o *stateChange) addFlags(command *cobra.Command) {
	o.stateOptions.addFlags(command, true)
	command.Flags().BoolVar(&o.yes, "yes", false, "do not ask for a confirmation")
	command.Flags().StringVar(&o.note, "reason", "", "the reason, kept in the history")
	cli.RenamedFlag(command, "note", "reason")
}

func newStateSetCommand(a *cli.App) *cobra.Command {
	o := &stateChange{}
	command := &cobra.Command{
		Use: "set FILE [STEP] VALUE", Args: cobra.RangeArgs(2, 3),
		RunE: func(_ *cobra.Command, args []string) error { return setState(a, args, o) },
	}
	o.addFlags(command)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && strings.ContainsAny(unknown.GetSpecifiedName(), "0123456789") {
			return cli.UsageError("%w; put a negative VALUE last, after --: %s state set --yes -- FILE STEP -5", err, terminal.ProgramName())
		}
		return err
	})
	return command
}

func newStateResetCommand(a *cli.App) *cobra.Command {
	o := &stateChange{}
	command := &cobra.Command{
		Use: "reset FILE [STEP]", Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeState(a, args[0], cli.SecondArg(args), o, func(*playbook.Step) (incremental.Cursor, error) { return incremental.Cursor{}, nil })
		},
	}
	o.addFlags(command)
	return command
}

func setState(a *cli.App, args []string, o *stateChange) error {
	step, value := "", args[len(args)-1]
	if len(args) == 3 {
		step = args[1]
	}
	return changeState(a, args[0], step, o, func(of *playbook.Step) (incremental.Cursor, error) {
		if step == "" && value == of.Name {
			return incremental.Cursor{}, cli.UsageError("the VALUE is missing: %s state set FILE %s VALUE", terminal.ProgramName(), value)
		}
		return parseCursor(of.Incremental, value)
	})
}

// parseCursor parses a watermark into the type that the step's rows have.
func parseCursor(section *playbook.Incremental, text string) (incremental.Cursor, error) {
	var value any = text
	if section.Type == incremental.Time {
		value = strings.TrimSpace(text)
	}
	_, initialIsText := section.InitialValue.(string)
	if section.Type == incremental.Token || section.Type == incremental.Integer && !initialIsText {
		var err error
		if value, err = load.ParseSetValue(text); err != nil {
			return incremental.Cursor{}, cli.UsageError("the VALUE: %w", err)
		}
	}
	if value == nil || value == "" {
		return incremental.Cursor{}, cli.UsageError("the VALUE is empty; to forget a state, use reset")
	}
	cursor, err := section.CursorForm().ParseAny(value)
	if err != nil {
		return cursor, cli.UsageError("the VALUE: %w, like the cursors of the step", err)
	}
	if now, dated := incremental.CursorAt(section.Type, time.Now()); dated && bytes.Compare(cursor.Position, now.Position) > 0 {
		return cursor, cli.UsageError("the VALUE %s is in the future: rows before it would never be read", text)
	}
	return cursor, nil
}

// changeOutcome is the JSON output of state set and reset.
type changeOutcome struct {
	Step    string           `json:"step"`
	State   string           `json:"state"`
	Changed bool             `json:"changed"`
	From    expression.Value `json:"from"`
	To      expression.Value `json:"to"` // nil: forgotten
	By      string           `json:"by"`
	Note    string           `json:"note,omitempty"`
	// HeldBy are the runs that hold the state, because of which it was not changed.
	HeldBy []string `json:"held_by,omitempty"`
}

// changeState sets a state to the cursor that to returns for the step; a zero cursor resets it.
func changeState(a *cli.App, name, step string, o *stateChange, to func(*playbook.Step) (incremental.Cursor, error)) error {
	if err := cli.CheckNote("reason", o.note); err != nil {
		return err
	}
	one, err := oneState(a, name, step, &o.stateOptions)
	if err != nil {
		return err
	}
	cursor, err := to(one.step)
	if err != nil {
		return err
	}
	if !o.yes && !a.CanAsk() {
		return a.Confirm(false, changeQuestion(one.at.Name, nil, cursor))
	}
	return withStates(a, &o.stateOptions, []keptStep{one}, func(ctx context.Context, s *session.Session) error {
		_, state, err := findState(ctx, s, one)
		if err != nil {
			return err
		}
		if state == nil && cursor.IsZero() {
			return cli.UsageError("the state %s does not exist yet, so there is nothing to forget", one.at.Name)
		}
		noteReadAgain(a.Streams, one, state, cursor)
		if err := a.Confirm(o.yes, changeQuestion(one.at.Name, state, cursor)); err != nil {
			return err
		}
		change := incremental.StateChange{Name: one.at.Name, By: cli.Whoami(), To: cursor, Note: o.note}
		if state != nil {
			change.From = state.Watermark
		}
		answer, err := stateCommand(ctx, s, one, interpreter.StateCommand{Change: &change, Queue: queue.Name{Key: one.at.Key, State: true}.WorkflowID()})
		if err != nil {
			return err
		}
		return reportChange(a.Streams, one, change, answer.Holders, o.output)
	})
}

// noteReadAgain warns if a change makes the step read rows again that its sink would insert twice.
func noteReadAgain(streams cli.Streams, one keptStep, state *incremental.State, to incremental.Cursor) {
	if one.state.Inserts == nil || state == nil || state.Watermark.IsZero() {
		return
	}
	if to.IsZero() || bytes.Compare(to.Position, state.Watermark.Position) < 0 {
		streams.Notef("the sink on line %d inserts: rows that are read again would be in the table twice; delete them first", one.state.Inserts.Pos.Line)
	}
}

func changeQuestion(name string, state *incremental.State, to incremental.Cursor) string {
	from := ""
	if state != nil {
		from = " (" + wording.CursorText(state.Watermark.Value) + ")"
	}
	if to.IsZero() {
		return fmt.Sprintf("Forget the state %s%s? The next run then reads everything.", terminal.OneLine(name), from)
	}
	return fmt.Sprintf("Set the state %s%s to %s?", terminal.OneLine(name), from, wording.CursorText(to.Value))
}

func reportChange(streams cli.Streams, one keptStep, change incremental.StateChange, holders []string, output string) error {
	held := len(holders) > 0
	if output == "json" {
		if err := terminal.PrintJSON(streams.Out, changeOutcome{
			Step: one.name, State: change.Name, Changed: !held, From: change.From.Value, To: change.To.Value, By: change.By, Note: change.Note, HeldBy: holders,
		}); err != nil {
			return err
		}
	}
	switch {
	case held:
		return fmt.Errorf("the run %s holds the state %s; nothing was changed. Wait until it ends, or cancel it: %s cancel %s",
			strings.Join(holders, ", "), change.Name, terminal.ProgramName(), terminal.ShellWord(holders[0]))
	case output == "json":
		return nil
	case change.To.IsZero():
		return streams.PrintLine("%s: forgotten, was %s; the next run reads from %s", terminal.OneLine(change.Name), wording.CursorText(change.From.Value),
			initialText(one.step.Incremental))
	}
	reads := one.step.Incremental.CursorForm().BeforeLag(change.To, one.step.Incremental.Lag)
	return streams.PrintLine("%s: %s, was %s; the next run reads from %s", terminal.OneLine(change.Name), wording.CursorText(change.To.Value),
		wording.CursorText(change.From.Value), wording.CursorText(reads.Value))
}

// initialText returns where a step without a state starts to read.
func initialText(section *playbook.Incremental) string {
	if initial := section.InitialText(); initial.Data != nil {
		return wording.CursorText(initial)
	}
	return "the beginning"
}
