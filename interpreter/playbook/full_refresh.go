package playbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// FullRefreshable are the steps of a playbook that keep a state, in the order of the file.
func (pb *Playbook) FullRefreshable() []string {
	var names []string
	for _, step := range pb.Steps {
		if step.Incremental != nil {
			names = append(names, step.Name)
		}
	}
	return names
}

// CheckFullRefresh refuses steps that cannot read from the initial value again: those that keep
// no state, and those whose sink would insert the rows of earlier runs twice.
func (pb *Playbook) CheckFullRefresh(steps []string) error {
	for _, name := range steps {
		step := pb.Step(name)
		switch {
		case step == nil:
			return fmt.Errorf("playbook %s has no step %q to read in full%s", pb.Name, name, pb.otherSteps(name))
		case step.Incremental == nil:
			return fmt.Errorf("step %q has no incremental, so it reads everything in every run%s", name, pb.otherSteps(name))
		}
		if sink := pb.insertsTwice(step); sink != nil {
			return fmt.Errorf("step %q reads all rows again, and the sink in line %d would insert those that its table has already; "+
				"write mode: upsert with a key, or empty the table and forget the state with starter state reset", name, sink.Pos.Line)
		}
	}
	if len(steps) != len(slices.Compact(slices.Sorted(slices.Values(steps)))) {
		return errors.New("a step is named twice among those to read in full")
	}
	return nil
}

// otherSteps says which steps keep a state.
func (pb *Playbook) otherSteps(name string) string {
	known := pb.FullRefreshable()
	if near := expression.Suggest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return "; no step of the playbook keeps a state"
	}
	return "; those that keep a state: " + strings.Join(known, ", ")
}

// insertsTwice is the first sink of a step that inserts rows again which it has written in an
// earlier run, nil for none.
func (pb *Playbook) insertsTwice(step *Step) *Sink {
	for _, sink := range step.successSinks() {
		if sink.Action == nil {
			continue
		}
		if action := pb.Resolve(sink.Action); action.Traits().KeepsStates && action.Field("table") != nil && !action.takesAgain() {
			return sink
		}
	}
	return nil
}
