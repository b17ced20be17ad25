package playtest

import (
	"fmt"
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Coverage lists the parts of a playbook that tests executed: steps, policies and routes.
type Coverage struct {
	File string
	// Parts are all parts, in the order of the file.
	Parts []CoveredPart
}

// CoveredPart is a step, a policy or a target of a route.
type CoveredPart struct {
	Pos  source.Position
	What string // such as "step fetch" or "policy 2 of fetch"
	Took bool   // by a test
}

// CountCovered returns how many parts some test executed.
func (c *Coverage) CountCovered() int {
	n := 0
	for _, part := range c.Parts {
		if part.Took {
			n++
		}
	}
	return n
}

// Percent returns the percentage of parts that some test executed.
func (c *Coverage) Percent() float64 {
	if len(c.Parts) == 0 {
		return 100
	}
	return 100 * float64(c.CountCovered()) / float64(len(c.Parts))
}

// MissedParts returns the parts that no test executed.
func (c *Coverage) MissedParts() []CoveredPart {
	return slices.DeleteFunc(slices.Clone(c.Parts), func(p CoveredPart) bool { return p.Took })
}

// CoverageOf combines the coverage of the tests of one suite.
func CoverageOf(suite *Suite, reports []*Report) *Coverage {
	c := &Coverage{File: suite.Book.File.Name}
	took := coveredParts(suite, reports)
	for _, step := range suite.Book.Steps {
		c.Parts = append(c.Parts, CoveredPart{step.NamePos, "step " + step.Name, took["step "+step.Name]})
		c.addPolicies(step.Name, step.Retry, took)
		for _, sink := range sinksOf(step) {
			c.addPolicies(sink.Place, sink.Action.Retry, took)
		}
		for _, route := range step.Next {
			for _, target := range route.Targets {
				c.Parts = append(c.Parts, CoveredPart{target.Pos, "route from " + step.Name + " to " + target.Step, took["at "+target.Pos.String()]})
			}
		}
	}
	slices.SortStableFunc(c.Parts, func(a, b CoveredPart) int { return a.Pos.Compare(b.Pos) })
	return c
}

func (c *Coverage) addPolicies(place string, policies []*playbook.Policy, took map[string]bool) {
	for _, policy := range policies {
		c.Parts = append(c.Parts, CoveredPart{policy.Pos, fmt.Sprintf("policy %d of %s", policy.Number, place), took["at "+policy.Pos.String()]})
	}
}

func sinksOf(step *playbook.Step) []*playbook.Sink {
	return lists.Map(step.SinkCalls(), func(call playbook.CallAt) *playbook.Sink { return call.Sink })
}

// coveredParts returns the parts of the playbook that a test executed: steps by name, others by place, because each
// run compiles the playbook again.
func coveredParts(suite *Suite, reports []*Report) map[string]bool {
	took := map[string]bool{}
	for _, report := range reports {
		if report == nil || report.stage == nil || report.Suite != suite {
			continue
		}
		seen := report.stage.seen
		seen.mu.Lock()
		for policy := range seen.policies {
			took["at "+policy.Pos.String()] = true
		}
		for target := range seen.targets {
			took["at "+target.Pos.String()] = true
		}
		for step := range seen.visited[suite.Book.Hash] {
			took["step "+step] = true
		}
		seen.mu.Unlock()
		for _, record := range report.outcome.result.Steps {
			if record.Status != "" && record.Status != interpreter.Skipped {
				took["step "+record.Step] = true
			}
		}
	}
	return took
}
