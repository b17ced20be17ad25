package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

// checkCycles warns about routes that lead back to a step without a bound. A condition on external data is not a
// bound, since the data may never change.
func checkCycles(c *checker) {
	if c.partial || c.unclear || c.pb.Timeout > 0 {
		return
	}
	routes := newRoutes(c)
	warned := map[*playbook.Step]bool{}
	for i, step := range c.pb.Steps {
		for _, route := range step.Next {
			for _, target := range route.Targets {
				back := c.pb.Step(target.Step)
				if back == nil || slices.Index(c.pb.Steps, back) > i || warned[back] || !routes.leadsTo(back, step) || c.isBounded(routes, back) {
					continue
				}
				warned[back] = true
				c.Warnf(target.Pos, codeUnboundedCycle,
					"step %q leads back to %q, and nothing limits the number of rounds; count them in vars, as in vars: {rounds: \"{{ (vars.rounds | default(0)) + 1 }}\"}, "+
						"and test the count in when, or set a timeout for the playbook. A run visits a step at most %d times, then it fails",
					step.Name, back.Name, playbook.DefaultVisitsLimit)
			}
		}
	}
}

// boundWords are names from which a condition can know how often or how long a run has gone round.
var boundWords = []string{"vars", "args", "run"}

// isBounded reports whether something ends the cycles through a step: a condition that counts or uses the time, or
// a person or another system that is asked in each round.
func (c *checker) isBounded(routes *routes, through *playbook.Step) bool {
	for _, step := range c.pb.Steps {
		if step != through && (!routes.leadsTo(through, step) || !routes.leadsTo(step, through)) {
			continue
		}
		if step.Action != nil && playbook.TraitsOf(c.toolOf(c.pb.ResolveAction(step.Action))).Awaits {
			return true
		}
		if slices.ContainsFunc(step.Next, func(route *playbook.Route) bool { return mayCount(route.When) }) {
			return true
		}
	}
	return false
}

// mayCount reports whether a condition may depend on the number of rounds, or on the time.
func mayCount(n *playbook.Node) bool {
	return n != nil && (n.UsesAny(boundWords...) || n.Template.Calls("now"))
}
