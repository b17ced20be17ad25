package check

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkNotYetRun warns about a step that uses the result of a step which cannot have run before it, because no
// route leads from there. Such a result is always nil.
func checkNotYetRun(c *checker) {
	if c.partial || c.unclear || c.pb.FirstStep() == nil || len(c.pb.Steps) > mostSuggested {
		return // a route that was not understood may lead there
	}
	r := newRoutes(c)
	check := func(at playbook.StepSpot, node *playbook.Node, ref expression.Ref) {
		name, shown := ref.Root, ref.Root
		if name == "steps" {
			name, _ = playbook.MemberAt(ref.Path, 0)
			shown = "steps." + name
		}
		named := c.pb.Step(name)
		if at.Step != nil && at.Step.IsSource() {
			at.Step = c.pb.Step(playbook.LoopStep(at.Step.Name)) // it begins when the loop does
			at.Spot = playbook.AtCollection
		}
		_, isKey := c.workload[ref.Root]
		if at.Step == nil || named == nil || isKey || slices.Contains(c.elementNames(at), ref.Root) || slices.Contains(collectedNames(at), ref.Root) {
			return
		}
		if named == at.Step && at.Spot&(playbook.AtField|playbook.AtCollection) == 0 || r.canHaveRun(named, at.Step) {
			return
		}
		c.Warnf(c.placeOf(node, ref.Offset).sourcePosition(), codeNotYetRun, "step %q cannot have run before %s, so %s is always nil here; %s",
			named.Name, stepName(at.Step, named), shown, remedyText(at.Step, named))
	}
	for _, at := range c.pb.AllValues() {
		for leaf, ref := range at.Node.ScalarRefs() {
			check(at.StepSpot, leaf, ref)
		}
	}
}

func stepName(step, named *playbook.Step) string {
	if step == named {
		return "itself"
	}
	return "step " + playbook.QuoteWord(step.Name)
}

func remedyText(step, named *playbook.Step) string {
	if step == named {
		return "in retry, the response of the previous attempt is response"
	}
	return "add a route from " + named.Name + " to " + step.Name + " with next, or use a step that runs before it"
}

// routes has which steps lead to which.
type routes struct {
	pb   *playbook.Playbook
	next map[*playbook.Step][]*playbook.Step
	// forks is set if branches may run in parallel that do not lead to each other.
	forks bool
	// behind has, for each step, the steps that it leads to.
	behind map[*playbook.Step]map[*playbook.Step]bool
	// without has, for each step, the steps that a run can reach without passing through it.
	without map[*playbook.Step]map[*playbook.Step]bool
}

func newRoutes(c *checker) *routes {
	pb := c.pb
	r := &routes{pb: pb, next: map[*playbook.Step][]*playbook.Step{}, behind: map[*playbook.Step]map[*playbook.Step]bool{}, without: map[*playbook.Step]map[*playbook.Step]bool{}}
	for _, step := range pb.Steps {
		together := 0 // all entries without when are followed together
		for _, route := range step.Next {
			if route.When == nil && !route.Else {
				together += len(route.Targets)
			}
			r.forks = r.forks || len(route.Targets) > 1 || together > 1
			for _, target := range route.Targets {
				next := pb.Step(target.Step)
				if next == nil { // already reported; a step with a similar name is meant
					next = pb.Step(expression.Suggest(target.Step, c.stepNames()))
				}
				if next != nil {
					r.next[step] = append(r.next[step], next)
				}
			}
		}
	}
	return r
}

// leadsTo reports whether a step leads to another one, or back to itself.
func (r *routes) leadsTo(from, to *playbook.Step) bool {
	if r.behind[from] == nil {
		r.behind[from] = r.reachableFrom(r.next[from], nil)
	}
	return r.behind[from][to]
}

// reachableFrom returns the steps reachable from some steps, including these, without passing through without.
func (r *routes) reachableFrom(from []*playbook.Step, without *playbook.Step) map[*playbook.Step]bool {
	reached := map[*playbook.Step]bool{}
	for queue := slices.Clone(from); len(queue) > 0; {
		step := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if step == without || reached[step] {
			continue
		}
		reached[step] = true
		queue = append(queue, r.next[step]...)
	}
	return reached
}

// canHaveRun reports whether a step may have run when another one begins.
func (r *routes) canHaveRun(step, before *playbook.Step) bool {
	switch {
	case r.leadsTo(step, before):
		return true
	case step == before || !r.forks:
		return false
	}
	// A parallel branch may have advanced far; but steps that can only be reached through the step run later.
	if r.without[before] == nil {
		r.without[before] = r.reachableFrom([]*playbook.Step{r.pb.FirstStep()}, before)
	}
	return r.without[before][step]
}
