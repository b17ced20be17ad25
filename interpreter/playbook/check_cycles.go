package playbook

import (
	"regexp"
	"slices"
)

// checkCycles warns of routes that lead back to a step without anything that bounds how often. A condition over data of
// others is no bound: they may never say what ends the cycle.
func (c *checker) checkCycles() {
	if c.partial || c.unclear || c.pb.Timeout > 0 {
		return
	}
	routes := newRoutes(c)
	warned := map[*Step]bool{}
	for i, step := range c.pb.Steps {
		for _, route := range step.Next {
			for _, target := range route.Targets {
				back := c.pb.Step(target.Step)
				if back == nil || slices.Index(c.pb.Steps, back) > i || warned[back] || !routes.leads(back, step) || c.bounded(routes, back) {
					continue
				}
				warned[back] = true
				c.warnf(target.Pos, codeUnboundedCycle,
					"step %q leads back to %q, and nothing bounds how often; count the rounds in vars, as in vars: {rounds: \"{{ (vars.rounds | default(0)) + 1 }}\"}, "+
						"and name them in when, or give the playbook a timeout. A run ends with an error before it makes a step more than %d times",
					step.Name, back.Name, DefaultVisitsLimit)
			}
		}
	}
}

// boundWords are what a condition names that knows how often or how long a run has gone round.
var boundWords = []string{"vars", "args", "run"}

// bounded reports whether something ends the cycles through a step: a condition of them that counts or looks at the time,
// or a person or another system who is asked in each round.
func (c *checker) bounded(routes *routes, through *Step) bool {
	for _, step := range c.pb.Steps {
		if step != through && (!routes.leads(through, step) || !routes.leads(step, through)) {
			continue
		}
		if step.Action != nil && TraitsOf(c.toolOf(c.pb.Resolve(step.Action))).Awaits {
			return true
		}
		if slices.ContainsFunc(step.Next, func(route *Route) bool { return route.When.counts() }) {
			return true
		}
	}
	return false
}

// nowCall is a condition that looks at the time.
var nowCall = regexp.MustCompile(`\bnow\s*\(`)

// counts reports whether a condition may know how often, or how long.
func (n *Node) counts() bool {
	return n != nil && (n.Names(boundWords...) || nowCall.MatchString(n.Raw))
}
