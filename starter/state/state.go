// Package state has the commands that show and change the state that steps keep between runs.
package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
)

// NewStateCommand returns the command state.
func NewStateCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("state", "states", newStateListCommand(a), oneStateCommand(a, "show", showState), newStateSetCommand(a), newStateResetCommand(a),
		newStatePruneCommand(a), oneStateCommand(a, "history", showChanges))
}

// stateOptions are the flags that the state commands share.
type stateOptions struct {
	server   session.ServerFlags
	local    session.LocalFlags
	workload load.WorkloadFlags
	state    string
	elements []string
	output   string
}

// addFlags adds the flags. one adds those that select a single state.
func (o *stateOptions) addFlags(command *cobra.Command, one bool) {
	o.workload.AddFlags(command)
	if one {
		command.Flags().StringVar(&o.state, "state", "", "name of the state, for a step in a loop")
		command.Flags().StringArrayVar(&o.elements, "element", nil, "select the state of this element of the loop, typed as in YAML; for nested loops repeat the flag, the outer loop first")
	}
	o.server.Add(command)
	o.local.AddFlags(command)
	cli.OutputFlag(command, &o.output)
}

// keptStep is a step that keeps a state, and where it keeps it.
type keptStep struct {
	name  string // of a playbook within a step, STEP/INNER
	step  *playbook.Step
	at    call.StateAt
	state playbook.KeptState
	// loops is the number of loops around the step: its state's name has at most as many elements.
	loops int
}

// isUnnamed reports whether Temporal keeps each state of the step separately, and the command does not select one.
func (k keptStep) isUnnamed() bool { return k.at.Place == nil && k.at.Group == "" }

// keptBy returns the tool that keeps the state, or "temporal".
func (k keptStep) keptBy() string {
	if k.at.Place == nil {
		return "temporal"
	}
	return k.at.Place.Tool
}

// loadBook returns the playbook, in which the step keeps a state, and the workload of the command line.
func (o *stateOptions) loadBook(a *cli.App, name, step string) (*playbook.Playbook, map[string]any, error) {
	workload, err := o.workload.Read()
	if err != nil {
		return nil, nil, err
	}
	checked, err := load.CheckValid(a, name, workload)
	if err != nil {
		return nil, nil, err
	}
	book := checked.Book
	if err := load.CheckKeysAreRead(a, book, workload, false); err != nil {
		return nil, nil, err
	}
	o.local.Playbooks = cmp.Or(o.local.Playbooks, load.FolderOf(name))
	known := book.FullRefreshable()
	switch {
	case len(known) == 0:
		return nil, nil, cli.UsageError("no step of playbook %s has incremental, so there is no state", book.Name)
	case step != "" && !slices.Contains(known, step):
		return nil, nil, cli.UsageError("playbook %[2]s has no step %[1]q with a state; steps with a state: %[3]s", step, book.Name, strings.Join(known, ", "))
	}
	return book, workload, nil
}

// loadKeptSteps returns the steps of a playbook that keep states, or only the named one.
func loadKeptSteps(a *cli.App, name, step string, o *stateOptions) ([]keptStep, error) {
	book, workload, err := o.loadBook(a, name, step)
	if err != nil {
		return nil, err
	}
	elements := make([]expression.Value, 0, len(o.elements))
	for _, text := range o.elements {
		value, err := load.ParseSetValue(text)
		if err != nil {
			return nil, cli.UsageError("--element: %w", err)
		}
		elements = append(elements, expression.Of(value))
	}
	return keptStepsOf(a.Streams, book, workload, step, elements)
}

func keptStepsOf(streams cli.Streams, book *playbook.Playbook, workload map[string]any, only string, elements []expression.Value) ([]keptStep, error) {
	var all []keptStep
	for _, state := range book.KeptStates() {
		if only != "" && state.Step != only {
			continue
		}
		at, step, loops, err := locateState(book, workload, state.Step, elements)
		switch {
		case err != nil && only == "" && strings.Contains(state.Step, "/"):
			streams.Notef("note: the name of the state of step %s depends on a run: %v", state.Step, err)
			continue
		case err != nil:
			return nil, cli.UsageError("the name of the state of step %q is not known: %w; pass the missing values with --set or --element", state.Step, err)
		}
		all = append(all, keptStep{name: state.Step, step: step, at: at, state: state, loops: loops})
	}
	return all, nil
}

// locateState returns where a step keeps its state. name may be a step within a step. elements are the elements of the
// loops around the step, outermost first; loops is the number of these loops.
func locateState(
	book *playbook.Playbook, workload map[string]any, name string, elements []expression.Value,
) (at call.StateAt, of *playbook.Step, loops int, err error) {
	values, err := expression.Canonical(load.MergeWorkload(book.Workload, workload))
	if err != nil {
		return call.StateAt{}, nil, 0, fmt.Errorf("the workload: %w", err)
	}
	task := call.Task{
		Run: interpreter.RunInfo{Playbook: book.Name},
		Data: interpreter.Data{
			Workload: expression.Of(values), Vars: expression.Of(map[string]any{}), Steps: expression.Of(map[string]any{}),
		},
	}
	outer, inner, isWithin := strings.Cut(name, "/")
	step := book.Step(outer)
	var element *expression.Value
	if step.Loop != nil {
		loops = 1
		if len(elements) > 0 {
			element, elements = &elements[0], elements[1:]
		}
	}
	if !isWithin {
		at, err = task.StateAt(book, step, element, time.Now())
		return at, step, loops, err
	}
	given, err := task.WorkloadWithin(book, step, element, time.Now())
	if err != nil {
		return call.StateAt{}, nil, 0, err
	}
	at, of, further, err := locateState(step.Action.Inline, given, inner, elements)
	return at, of, loops + further, err
}

// oneState returns the single state that the command line selects.
func oneState(a *cli.App, name, step string, o *stateOptions) (keptStep, error) {
	all, err := loadKeptSteps(a, name, step, o)
	if err != nil {
		return keptStep{}, err
	}
	if len(all) > 1 {
		names := lists.Map(all, func(one keptStep) string { return one.name })
		return keptStep{}, cli.UsageError("several steps keep a state: %s; name one after FILE", strings.Join(names, ", "))
	}
	one := all[0]
	switch {
	case len(o.elements) > 0 && o.state != "" && one.at.Name != "":
		return one, cli.UsageError("--element and --state exclude each other")
	case len(o.elements) > 0 && (one.loops == 0 || !one.at.Each && !strings.Contains(one.name, "/")):
		return one, cli.UsageError("--element: step %q has a single state, %s", one.name, one.at.Name)
	case len(o.elements) > one.loops:
		return one, cli.UsageError("--element: step %q is in %s, so it has no state for more elements", one.name, terminal.Count(one.loops, "loop"))
	case one.at.Name != "" && o.state != "" && o.state != one.at.Name:
		return one, cli.UsageError("--state: the state of step %q is %s", one.name, one.at.Name)
	case one.at.Name == "" && o.state == "":
		return one, cli.UsageError("each element of step %q has its own state, %s; name one with --element or --state", one.name, one.state.Name)
	case one.at.Name == "" && !strings.HasPrefix(o.state, one.at.Prefix):
		return one, cli.UsageError("--state: names of states of step %q begin with %s", one.name, one.at.Prefix)
	}
	if one.at.Name == "" {
		one.at.Name = o.state
		if one.at.Place == nil && one.at.Group == "" {
			one.at.Group = o.state
		}
	}
	return one, nil
}

// withStates calls work with a server that has a worker. If all states are in databases, it starts a server if there
// is none.
func withStates(a *cli.App, o *stateOptions, of []keptStep, work func(context.Context, *session.Session) error) error {
	inTables := !slices.ContainsFunc(of, func(one keptStep) bool { return one.at.Place == nil })
	return session.WithWorker(a, &o.server, &o.local, inTables, "states are read by one", work)
}

// stateCommand has a worker execute a command about a step's state.
func stateCommand(ctx context.Context, s *session.Session, of keptStep, command interpreter.StateCommand) (interpreter.StateAnswer, error) {
	command.Place, command.Group = of.at.Place, of.at.Group
	if of.isUnnamed() {
		return interpreter.StateAnswer{}, cli.UsageError("Temporal keeps each state of step %q separately; show one by --element or --state", of.name)
	}
	return onStates(ctx, s, fmt.Sprintf("the state of step %q", of.name), command)
}

// onStates has a worker execute a command. what names the states in errors.
func onStates(ctx context.Context, s *session.Session, what string, command interpreter.StateCommand) (interpreter.StateAnswer, error) {
	return session.OnWorker[interpreter.StateAnswer](ctx, s, "reprise-state-command/"+uuid.NewString(), interpreter.StateCommandWorkflow, what, command)
}

// foundStates are the states of a step that a worker found.
type foundStates struct {
	states []incremental.State
	more   bool // than these
	// holders are the runs whose visits of the step hold its states; nil if that is not known. heldSince is when the
	// first of them acquired its state.
	holders   []string
	heldSince time.Time
}

// findStates returns the states of a step, or only the selected one.
func findStates(ctx context.Context, s *session.Session, of keptStep) (found foundStates, err error) {
	prefix := of.at.Prefix
	if of.at.Name != "" {
		prefix = of.at.Name
	}
	list := interpreter.StateCommand{Prefix: prefix, Queue: queue.Name{Key: of.at.Key, State: true}.WorkflowID()}
	var answer interpreter.StateAnswer
	if of.isUnnamed() {
		answer, err = onStates(ctx, s, fmt.Sprintf("the states of step %q", of.name), list)
	} else {
		answer, err = stateCommand(ctx, s, of, list)
	}
	if answer.HoldersUnknown == "" {
		found.holders, found.heldSince = append([]string{}, answer.Holders...), answer.HeldSince
	}
	found.states = slices.DeleteFunc(answer.States, func(state incremental.State) bool { return of.at.Name != "" && state.Name != of.at.Name })
	found.more = answer.More && of.at.Name == ""
	return found, err
}

// findState returns the selected state of a step; nil if no run has stored it yet.
func findState(ctx context.Context, s *session.Session, of keptStep) (found foundStates, state *incremental.State, err error) {
	found, err = findStates(ctx, s, of)
	if err != nil || len(found.states) == 0 {
		return found, nil, err
	}
	return found, &found.states[0], nil
}
