package call

import (
	"fmt"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// StateAt is where a step keeps its state, as far as that is known before a run.
type StateAt struct {
	// Place and Group are as in interpreter.StateInput. Group is "" where each element has
	// one of its own.
	Place *interpreter.ToolInput
	Group string
	// Each says that the elements of a loop have a state each, whose names begin with Prefix.
	Each   bool
	Prefix string
	// Name is the name of the state; "" of Each without an element.
	Name string
	// Key is the name under which visits of the step share the state.
	Key string
}

// StateAt says where the task's step keeps its state, or the state of an element of its loop. The
// error is one of the playbook: it takes a run to know.
func (t Task) StateAt(book *playbook.Playbook, step *playbook.Step, element *expression.Value, now time.Time) (StateAt, error) {
	snapshot := Snapshot{}
	if step.Loop != nil && element != nil {
		snapshot.Index, snapshot.Size, snapshot.Element = new(int), 1, *element
	}
	c := t.Call(book, step, snapshot, func() float64 { return 0 })
	key, err := book.StateKey(step, interpreter.NewScope(book, t.Run, t.Data), expression.DecisionBudget(now))
	if err != nil {
		return StateAt{}, err
	}
	at := StateAt{Key: key, Place: c.keeps.Home(now)}
	if home := book.StateHome(step); home != nil && at.Place == nil {
		return at, fmt.Errorf("step %q: %s keeps the state, and its location depends on a run, or on an element of the loop", step.Name, home.Place)
	}
	if names := step.Incremental.State; step.Loop != nil && (names == nil || names.Names(step.Loop.Element)) {
		at.Each = true
		at.Prefix, _, _ = strings.Cut(key, "{{")
		if names == nil {
			at.Prefix = key + "/"
		}
		if element == nil {
			if names == nil && at.Place == nil {
				at.Group = key
			}
			return at, nil
		}
	}
	if at.Name, at.Group, err = c.keeps.Name(now); at.Place != nil {
		at.Group = ""
	}
	return at, err
}

// WorkloadWithin is the workload that a step gives to the playbook that is written within it, in a loop for an element. The error
// is one of the playbook: it takes a run to know.
func (t Task) WorkloadWithin(book *playbook.Playbook, step *playbook.Step, element *expression.Value, now time.Time) (map[string]any, error) {
	field := step.Action.Field(playbook.FieldWorkload)
	if field == nil {
		return nil, nil
	}
	scope := interpreter.NewScope(book, t.Run, t.Data)
	if step.Loop != nil {
		if element == nil && field.Names(step.Loop.Element) {
			return nil, fmt.Errorf("step %q gives its playbook another workload for each element", step.Name)
		}
		if element != nil {
			scope = scope.WithElement(step.Loop.Element, element.Data, interpreter.ElementPosition{Size: 1})
		}
	}
	given, err := field.Render(scope, expression.DecisionBudget(now))
	if err != nil {
		return nil, err
	}
	workload, isMap := given.(map[string]any)
	if !isMap && given != nil {
		return nil, fmt.Errorf("step %q: workload must be a map, not %s", step.Name, expression.TypeName(given))
	}
	return workload, nil
}
