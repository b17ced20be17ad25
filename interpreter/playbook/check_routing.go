package playbook

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// checkRouting checks what next leads to: docs/concepts/runs.md#routes.
func checkRouting(c *checker) {
	c.checkDuplicateSteps()
	for _, step := range c.pb.Steps {
		c.checkTargets(step)
		c.checkElse(step)
	}
	c.checkReachable()
	c.checkCycles()
}

func (c *checker) checkDuplicateSteps() {
	first := map[string]*Step{}
	for _, step := range c.pb.Steps {
		if step.Name == "" {
			continue
		}
		if earlier, ok := first[step.Name]; ok {
			c.errorf(step.NamePos, codeDuplicateStep, "two steps are named %q; the first is in line %d", step.Name, earlier.NamePos.Line)
			continue
		}
		first[step.Name] = step
	}
}

func (c *checker) checkTargets(step *Step) {
	defaults := map[string]bool{} // entries without when are taken together
	for _, route := range step.Next {
		seen := defaults
		if route.When != nil || route.Else {
			seen = map[string]bool{}
		}
		for _, target := range route.Targets {
			switch {
			case target.Step == "", c.unnamed() && c.pb.Step(target.Step) == nil:
				// reported, or the name of a step that could not be decoded
			case c.pb.Step(target.Step) == nil:
				c.errorf(target.Pos, codeMissingTarget, "step %q leads to %q, which is no step%s",
					step.Name, target.Step, c.otherStep(target.Step))
				c.offer(target.Step, expression.Certain(target.Step, c.stepNames()))
			case seen[target.Step]:
				c.errorf(target.Pos, codeDuplicateTarget, "step %q leads to %q twice in one route; name it once", step.Name, target.Step)
			}
			seen[target.Step] = true
		}
	}
}

// unnamed reports whether a step's name could not be decoded.
func (c *checker) unnamed() bool {
	return c.partial && slices.ContainsFunc(c.pb.Steps, func(step *Step) bool { return step.Name == "" })
}

// otherStep completes a message about a step that does not exist.
func (c *checker) otherStep(name string) string {
	names := c.stepNames()
	if near := expression.Suggest(name, names); near != "" {
		return `; did you mean "` + near + `"?`
	}
	if name == "end" {
		return `; a run ends by itself where a step has no next, so leave next out`
	}
	return "; the steps are " + listed(names)
}

func (c *checker) stepNames() []string {
	return lists.Pick(c.pb.Steps, func(step *Step) (string, bool) { return step.Name, step.Name != "" })
}

func (c *checker) checkElse(step *Step) {
	var first *Route
	conditions, unconditional := 0, 0
	for _, route := range step.Next {
		switch {
		case route.When != nil:
			conditions++
		case !route.Else:
			unconditional++
		case first != nil:
			c.errorf(route.Pos, codeElse, "step %q has a second else in next; the first is in line %d", step.Name, first.Pos.Line)
		default:
			first = route
		}
	}
	if first == nil || c.partial {
		return // without an else, or with conditions that could not be decoded
	}
	if conditions == 0 {
		c.errorf(first.Pos, codeElse, "step %q has an else but no entry with when in next; write the step's name alone", step.Name)
	}
	if unconditional > 0 {
		c.errorf(first.Pos, codeElse, "step %q has both else and entries without when in next; only one of them can be the default", step.Name)
	}
}

func (c *checker) checkReachable() {
	first := c.pb.First()
	if c.partial || c.unclear || first == nil {
		return // a route that was not understood may lead there
	}
	reached := newRoutes(c).reach([]*Step{first}, nil)
	for _, step := range c.pb.Steps {
		if step.Name != "" && !reached[c.pb.Step(step.Name)] {
			c.errorf(step.NamePos, codeUnreachable, "no route leads from %q, where the run starts, to step %q; name it in the next of another step",
				first.Name, step.Name)
		}
	}
}

// listed joins names for a message; long lists are cut.
func listed(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// oneOf joins alternatives for a message: a, b or c.
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
