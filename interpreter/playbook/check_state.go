package playbook

import "fmt"

// checkStates refuses states that two steps, or the iterations of a loop, would share. Names that differ as templates may still
// render to one.
func checkStates(c *checker) {
	first := map[string]*Step{}
	for _, step := range c.pb.Steps {
		if step.Loop != nil && step.Action != nil && step.Action.Inline != nil {
			c.checkStatesWithin(step, step.Action.Inline)
		}
		i := step.Incremental
		if i == nil {
			continue
		}
		if step.Loop != nil {
			c.checkElementState(step)
			continue
		}
		name := c.pb.StateName(step)
		if earlier := first[name]; earlier != nil {
			other := c.pb.StateGroup(step)
			switch {
			case i.State != nil && i.State.Template != nil: // which renders to one name in both
				other = fmt.Sprintf("%q", step.Name+"/"+name)
			case other == name:
				other = c.pb.StateGroup(earlier)
			}
			c.errorf(i.value("state"), codeStateName,
				"steps %q and %q have one state, %q, so that each would begin where the other has ended; give one of them another name: state: %s",
				earlier.Name, step.Name, name, other)
			continue
		}
		first[name] = step
	}
}

// checkStatesWithin refuses states of a playbook that each iteration of a loop runs, if all of
// them would have one.
func (c *checker) checkStatesWithin(loop *Step, inner *Playbook) {
	for _, step := range inner.Steps {
		if step.Action != nil && step.Action.Inline != nil {
			c.checkStatesWithin(loop, step.Action.Inline)
		}
		if i := step.Incremental; i != nil && (i.State == nil || i.State.Template == nil) {
			c.errorf(i.value("state"), codeStateName,
				"step %q runs in every iteration of %q, and all of them would have one state; pass the element with workload and name the state by it: state: \"%s/{{ %s }}\"",
				step.Name, loop.Name, step.Name, loop.Loop.Element)
		}
	}
}

// checkElementState refuses a name that is the same for all elements, and elements of which
// no name can be made.
func (c *checker) checkElementState(step *Step) {
	i, element := step.Incremental, step.Loop.Element
	if i.State != nil {
		if !i.State.Names(element) && !c.partial {
			c.errorf(i.State.Pos, codeStateName, "all iterations would have one state, as its name does not name the element; write state: \"%s/{{ %s }}\"",
				step.Name, c.nameOfElement(step))
		}
		return
	}
	if what := c.kindOfElement(step.Loop); what != "" {
		c.errorf(i.Pos, codeStateName, "the elements of the loop are %s, of which no name of a state can be made; say what names one: state: \"%s/{{ %s }}\"",
			what, step.Name, c.nameOfElement(step))
	}
}

// nameOfElement shows how an element is named.
func (c *checker) nameOfElement(step *Step) string {
	member := map[string]string{"lists": "[0]", "maps": ".id", "entries of a map": ".key"}[c.kindOfElement(step.Loop)]
	return step.Loop.Element + member
}

// kindOfElement says what the elements of a loop are, where one of them is a list or a map; ""
// where none is, as far as the workload says.
func (c *checker) kindOfElement(loop *Loop) string {
	if loop.Collection == nil {
		return ""
	}
	node := loop.Collection
	switch {
	case node.Entries != nil:
		return elementKind(map[string]any{})
	case node.Items != nil:
		return elementKind(node.outline())
	case node.Template == nil, c.namesOutside(node), c.options.caller != nil:
		return ""
	}
	value, err := node.Render(c.workloadScope(), c.budget())
	if err != nil {
		return ""
	}
	return elementKind(value)
}

// outline is a list with what its items are, empty.
func (n *Node) outline() []any {
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
