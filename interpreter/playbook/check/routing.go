package check

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// checkRouting checks the routes of `next`: docs/concepts/runs.md#routes.
func checkRouting(c *checker) {
	checkDuplicateSteps(c)
	for _, step := range c.pb.Steps {
		checkTargets(c, step)
		checkElse(c, step)
	}
	checkReachable(c)
	checkCycles(c)
}

func checkDuplicateSteps(c *checker) {
	first := map[string]*playbook.Step{}
	for _, step := range c.pb.Steps {
		if step.Name == "" {
			continue
		}
		if earlier, ok := first[step.Name]; ok {
			c.Errorf(step.NamePos, codeDuplicateStep, "two steps are named %q; the first is on line %d", step.Name, earlier.NamePos.Line)
			continue
		}
		first[step.Name] = step
	}
}

func checkTargets(c *checker, step *playbook.Step) {
	defaults := map[string]bool{} // entries without when are taken together
	for _, route := range step.Next {
		seen := defaults
		if route.When != nil || route.Else {
			seen = map[string]bool{}
		}
		for _, target := range route.Targets {
			switch {
			case target.Step == "", c.isUnnamed() && c.pb.Step(target.Step) == nil:
				// already reported, or the name of a step that could not be decoded
			case c.pb.Step(target.Step) == nil:
				c.Errorf(target.Pos, codeMissingTarget, "step %q leads to %q, which is not a step%s",
					step.Name, target.Step, c.otherStep(target.Step))
				c.AddFix(target.Step, expression.SuggestCertain(target.Step, c.stepNames()))
			case seen[target.Step]:
				c.Errorf(target.Pos, codeDuplicateTarget, "step %q leads to %q twice in one route; keep one of them", step.Name, target.Step)
			}
			seen[target.Step] = true
		}
	}
}

// isUnnamed reports whether some step's name could not be decoded.
func (c *checker) isUnnamed() bool {
	return c.partial && slices.ContainsFunc(c.pb.Steps, func(step *playbook.Step) bool { return step.Name == "" })
}

// otherStep returns a hint for the name of a step that does not exist.
func (c *checker) otherStep(name string) string {
	names := c.stepNames()
	if near := expression.Suggest(name, names); near != "" {
		return `; did you mean "` + near + `"?`
	}
	if name == "end" {
		return `; a run ends after a step without next, so remove next`
	}
	return "; the steps are " + playbook.JoinNames(names)
}

func (c *checker) stepNames() []string {
	return lists.Pick(c.pb.Steps, func(step *playbook.Step) (string, bool) { return step.Name, step.Name != "" })
}

func checkElse(c *checker, step *playbook.Step) {
	var first *playbook.Route
	conditions, unconditional := 0, 0
	for _, route := range step.Next {
		switch {
		case route.When != nil:
			conditions++
		case !route.Else:
			unconditional++
		case first != nil:
			c.Errorf(route.Pos, codeElse, "step %q has a second else in next; the first is on line %d", step.Name, first.Pos.Line)
		default:
			first = route
		}
	}
	if first == nil || c.partial {
		return // without an else, or with conditions that could not be decoded
	}
	if conditions == 0 {
		c.Errorf(first.Pos, codeElse, "step %q has an else but no entry with when in next; write only the step's name", step.Name)
	}
	if unconditional > 0 {
		c.Errorf(first.Pos, codeElse, "step %q has both else and entries without when in next; only one of them can be the default", step.Name)
	}
}

func checkReachable(c *checker) {
	first := c.pb.FirstStep()
	if c.partial || c.unclear || first == nil {
		return // a route that was not understood may lead there
	}
	reached := newRoutes(c).reachableFrom([]*playbook.Step{first}, nil)
	for _, step := range c.pb.Steps {
		if step.Name != "" && !reached[c.pb.Step(step.Name)] {
			c.Errorf(step.NamePos, codeUnreachable, "step %q is never reached: no route leads to it from %q, where the run starts; name it in the next of another step",
				step.Name, first.Name)
		}
	}
}

// joinChoices joins alternatives for a message: a, b or c.
func joinChoices(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
