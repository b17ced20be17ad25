package try

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// findStep returns the step to try.
func findStep(book *playbook.Playbook, name string) (*playbook.Step, error) {
	var names []string
	for _, step := range book.CallSteps() {
		if step.Action == nil {
			continue
		}
		if name == "" || step.Name == name {
			return step, checkStep(book, step)
		}
		names = append(names, step.Name)
	}
	switch {
	case name == "":
		return nil, refusef("the playbook has no step that calls a tool")
	case book.Step(name) != nil:
		return nil, refusef("step %q calls no tool; those that do are %s", name, strings.Join(names, ", "))
	}
	message := fmt.Sprintf("the playbook has no step %q; its steps are %s", name, strings.Join(names, ", "))
	if near := expression.Suggest(name, names); near != "" {
		message = fmt.Sprintf("the playbook has no step %q; did you mean %q?", name, near)
	}
	return nil, &RefusedError{Message: message}
}

// checkStep refuses steps whose attempts are not made by a tool alone, or whose responses must not be shown.
func checkStep(book *playbook.Playbook, step *playbook.Step) error {
	tool, _ := book.ResolveAction(step.Action).ToolName()
	traits := playbook.TraitsOf(tool)
	switch {
	case step.Secret:
		return refusef("the result of step %q is secret, and a try would show it", step.Name)
	case traits.Plays:
		return refusef("step %q runs another playbook; try the steps of that one", step.Name)
	case traits.InWorkflow:
		return refusef("step %q waits for an answer from outside (tool %s), which only a run can do", step.Name, tool)
	}
	return nil
}

// checkInputs refuses a step that needs something from the run that was not given: results of steps, vars or args.
// The collection of a loop is not needed if an element is given.
func (t *trial) checkInputs() error {
	book, step, with := t.Book, t.step, t.With
	nodes := append(book.CallNodes(step), step.StepSinkNodes()...)
	if step.Loop != nil && t.Element == nil && step.Loop.Source == nil {
		nodes = append(nodes, step.Loop.Collection)
	}
	for _, node := range nodes {
		for scalar, ref := range node.ScalarRefs() {
			if err := missingReference(book, step, with, scalar, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingReference returns the error of a reference to something that does not exist; nil if it
// exists.
func missingReference(book *playbook.Playbook, step *playbook.Step, with map[string]any, node *playbook.Node, ref expression.Ref) error {
	name, what := ref.Root, "the result of step "+ref.Root
	switch {
	case name == "steps" && len(ref.Path) > 0:
		name, _ = ref.Path[0].(string)
		what = "the result of step " + name
	case name == "vars":
		what = "vars, which steps set"
	case name == "args" && book.ResolveAction(step.Action).Args == nil:
		what = "args, which the route to the step gives"
	case book.Step(name) == nil:
		return nil
	}
	if _, given := with[name]; given || name == step.Name || name == "" {
		return nil
	}
	return refusef("%s: step %q needs %s: %s; give it with --with %s=FILE.json",
		placeText(book, node.Position(ref.Offset)), step.Name, what, strings.TrimSpace(node.Raw), name)
}

// expressionData returns the data that expressions of the step may use.
func (o *Options) expressionData() (interpreter.Data, any, error) {
	workload, err := expression.Canonical(o.Workload)
	if err != nil {
		return interpreter.Data{}, nil, refusef("the workload: %v", err)
	}
	empty := expression.Of(map[string]any{})
	data := interpreter.Data{Workload: expression.Of(expression.MapOrEmpty(workload)), Vars: empty, Steps: empty}
	var args any
	for _, name := range playbook.SortedKeys(o.With) {
		value := expression.Of(o.With[name])
		switch {
		case name == "vars":
			err, data.Vars = call.MapOrNil("--with vars", value), value
		case name == "args":
			err, args = call.MapOrNil("--with args", value), value.Data
		case o.Book.Step(name) == nil:
			err = refusef("--with %s: the playbook has no step of that name", name)
		default:
			data = data.WithStep(name, interpreter.CallResult{Status: interpreter.StatusSuccess, Data: value})
		}
		if err != nil {
			return data, nil, refusef("%v", err)
		}
	}
	return data, args, nil
}

// snapshotOf returns the snapshot of the call, with its element if the step has a loop.
func (t *trial) snapshotOf(task call.Task) (call.Snapshot, error) {
	loop := t.step.Loop
	if loop == nil {
		if t.Element != nil {
			return call.Snapshot{}, refusef("--element is for steps with a loop, and step %q has none", t.step.Name)
		}
		return call.Snapshot{}, nil
	}
	if from := loop.Source; from != nil && t.Element == nil {
		return call.Snapshot{}, refusef("the elements of step %q come from its source; try that with --step %s, or give an element with --element",
			t.step.Name, from.Name)
	}
	scope := interpreter.NewScope(t.Book, task.Run, task.Data)
	if task.Args.Data != nil {
		scope = scope.With(map[string]any{"args": task.Args.Data})
	}
	if loop.Source != nil {
		index := 0
		t.report.Element = &expression.Value{Data: t.maskedValue(*t.Element)}
		return call.Snapshot{Index: &index, Element: expression.Of(*t.Element)}, nil
	}
	var elements []any
	collection, err := loop.Collection.Render(scope, expression.NewBudget(expression.DecisionLimits, time.Now()))
	if err == nil {
		elements, err = interpreter.LoopElements(collection)
	}
	switch {
	case t.Element == nil && err != nil:
		return call.Snapshot{}, refusef("%s: the elements of the loop of step %q: %v; give one with --element",
			placeText(t.Book, loop.Collection.Pos), t.step.Name, err)
	case t.Element == nil && len(elements) == 0:
		return call.Snapshot{}, refusef("%s: the loop of step %q has no elements; give one with --element",
			placeText(t.Book, loop.Collection.Pos), t.step.Name)
	}
	index := 0
	element := elementOf(elements, t.Element, &index)
	t.report.Elements, t.report.Element = len(elements), &expression.Value{Data: t.maskedValue(element)}
	return call.Snapshot{Index: &index, Size: max(len(elements), 1), Element: expression.Of(element)}, nil
}

// elementOf returns the element to try, and sets its index in the loop: the first one, or the one that equals the
// requested element, as a value or as text.
func elementOf(elements []any, asked *any, index *int) any {
	if asked == nil {
		return elements[0]
	}
	same := func(element any) bool { return expression.Text(element) == expression.Text(*asked) }
	if i := slices.IndexFunc(elements, same); i >= 0 {
		*index = i
		return elements[i]
	}
	return *asked
}
