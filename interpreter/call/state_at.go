package call

import (
	"fmt"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// StateAt says where a step keeps its state between runs, as far as that is known without a run.
type StateAt struct {
	// Place and Group are as in interpreter.StateInput. Group is "" if each element has its own.
	Place *interpreter.ToolInput
	Group string
	// Each says that each element of a loop has its own state, with a name that begins with Prefix.
	Each   bool
	Prefix string
	// Name is the name of the state; "" if Each is set and no element was given.
	Name string
	// Key is the name under which the visits of the step share the state.
	Key string
}

// StateAt returns where the task's step keeps its state, or the state of an element of its loop. An error means
// that an expression depends on a run.
func (t Task) StateAt(book *playbook.Playbook, step *playbook.Step, element *expression.Value, now time.Time) (StateAt, error) {
	snapshot := Snapshot{}
	if step.Loop != nil && element != nil {
		snapshot.Index, snapshot.Size, snapshot.Element = new(int), 1, *element
	}
	c := t.BuildCall(book, step, snapshot, func() float64 { return 0 })
	key, err := book.StateKey(step, interpreter.NewScope(book, t.Run, t.Data), expression.DecisionBudget(now))
	if err != nil {
		return StateAt{}, err
	}
	at := StateAt{Key: key, Place: c.keeps.StateSink(now)}
	if home := book.StateHome(step); home != nil && at.Place == nil {
		return at, fmt.Errorf("step %q: %s keeps the state, and its location depends on a run, or on an element of the loop", step.Name, home.Place)
	}
	if names := step.Incremental.State; step.Loop != nil && (names == nil || names.UsesAny(step.Loop.Element)) {
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

// WorkloadWithin returns the workload that a step passes to its inline playbook, for a loop to that of an element.
// An error means that an expression depends on a run.
func (t Task) WorkloadWithin(book *playbook.Playbook, step *playbook.Step, element *expression.Value, now time.Time) (map[string]any, error) {
	field := step.Action.Field(playbook.FieldWorkload)
	if field == nil {
		return nil, nil
	}
	scope := interpreter.NewScope(book, t.Run, t.Data)
	if step.Loop != nil {
		if element == nil && field.UsesAny(step.Loop.Element) {
			return nil, fmt.Errorf("step %q passes a different workload to its playbook for each element", step.Name)
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
