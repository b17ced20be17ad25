package check

import (
	"fmt"
	"slices"

	"reprise/interpreter/playbook"
)

// checkStates reports states that two steps, or the iterations of a loop, would share. Names that differ as
// templates may still render to the same name.
func checkStates(c *checker) {
	first := map[string]*playbook.Step{}
	for _, step := range c.pb.Steps {
		if step.Loop != nil && step.Action != nil && step.Action.Inline != nil {
			checkStatesWithin(c, step, step.Action.Inline)
		}
		i := step.Incremental
		if i == nil {
			continue
		}
		if step.Loop != nil {
			checkElementState(c, step)
			continue
		}
		name := c.pb.StateName(step)
		if earlier := first[name]; earlier != nil {
			other := c.pb.StateGroup(step)
			switch {
			case i.State != nil && i.State.Template != nil: // it renders to the same name in both
				other = fmt.Sprintf("%q", step.Name+"/"+name)
			case other == name:
				other = c.pb.StateGroup(earlier)
			}
			c.Errorf(placeOfField(i, "state"), codeStateName,
				"steps %q and %q have the same state, %q, so each would start where the other has ended; choose another name for one of them: state: %s",
				earlier.Name, step.Name, name, other)
			continue
		}
		first[name] = step
	}
}

// checkStatesWithin reports states of a playbook that each iteration of a loop runs, if all of them would share
// one.
func checkStatesWithin(c *checker, loop *playbook.Step, inner *playbook.Playbook) {
	for _, step := range inner.Steps {
		if step.Action != nil && step.Action.Inline != nil {
			checkStatesWithin(c, loop, step.Action.Inline)
		}
		if i := step.Incremental; i != nil && (i.State == nil || i.State.Template == nil) {
			c.Errorf(placeOfField(i, "state"), codeStateName,
				"step %q runs in every iteration of %q, and all of them would share one state; pass the element with workload and use it in the name: state: \"%s/{{ %s }}\"",
				step.Name, loop.Name, step.Name, loop.Loop.Element)
		}
	}
}

// checkElementState reports state names that are equal for all elements, and elements from which no name can be
// made.
func checkElementState(c *checker, step *playbook.Step) {
	i, element := step.Incremental, step.Loop.Element
	if i.State != nil {
		if !i.State.UsesAny(element) && !c.partial {
			c.Errorf(i.State.Pos, codeStateName, "all iterations would share one state, because its name does not use the element; write state: \"%s/{{ %s }}\"",
				step.Name, c.nameOfElement(step))
		}
		return
	}
	if what := c.kindOfElement(step.Loop); what != "" {
		c.Errorf(i.Pos, codeStateName, "the elements of the loop are %s, which cannot be part of a name; choose what identifies an element: state: \"%s/{{ %s }}\"",
			what, step.Name, c.nameOfElement(step))
	}
}

// nameOfElement returns an example of how an element is named.
func (c *checker) nameOfElement(step *playbook.Step) string {
	member := map[string]string{"lists": "[0]", "maps": ".id", "entries of a map": ".key"}[c.kindOfElement(step.Loop)]
	return step.Loop.Element + member
}

// kindOfElement describes a loop's elements if they are lists or maps; "" otherwise, as far as the workload shows.
func (c *checker) kindOfElement(loop *playbook.Loop) string {
	if loop.Collection == nil {
		return ""
	}
	node := loop.Collection
	switch {
	case node.Entries != nil:
		return elementKind(map[string]any{})
	case node.Items != nil:
		return elementKind(outlineOf(node))
	case node.Template == nil, c.namesOutside(node), c.options.caller != nil:
		return ""
	}
	value, err := node.Render(c.workloadScope(), c.newBudget())
	if err != nil {
		return ""
	}
	return elementKind(value)
}

// outlineOf returns a list with an empty value for each item, of the same kind.
func outlineOf(n *playbook.Node) []any {
	list := make([]any, len(n.Items))
	for i, item := range n.Items {
		switch {
		case item.Items != nil:
			list[i] = []any{}
		case item.Entries != nil:
			list[i] = map[string]any{}
		}
	}
	return list
}

func elementKind(collection any) string {
	switch collection := collection.(type) {
	case map[string]any:
		return "entries of a map"
	case []any:
		for _, element := range collection {
			switch element.(type) {
			case map[string]any:
				return "maps"
			case []any:
				return "lists"
			}
		}
	}
	return ""
}

// writesOnlyPages reports whether a call of the step may write to nothing but one sink for pages.
func writesOnlyPages(s *playbook.Step) bool {
	sinks := s.SuccessSinks()
	return len(sinks) == 1 && !slices.ContainsFunc(s.Retry, func(policy *playbook.Policy) bool { return len(policy.Then.Sinks) > 0 }) &&
		slices.ContainsFunc(s.Retry, func(policy *playbook.Policy) bool { return len(policy.Then.PageSinks) > 0 })
}
