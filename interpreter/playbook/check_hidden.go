package playbook

import (
	"maps"
	"slices"

	"reprise/interpreter/source"
)

// checkHidden warns of workload keys and steps that a name found earlier hides:
// words, elements, into, steps, workload keys, in this order.
func checkHidden(c *checker) {
	for _, key := range slices.Sorted(maps.Keys(c.workload)) {
		by := c.hides(key)
		if by == "" {
			continue
		}
		pos := c.pb.WorkloadPos.at(key, source.Position{})
		c.warnf(pos, codeHiddenName, "the workload key %q is hidden by %s; write workload.%s for it", key, by, key)
	}
	for _, step := range c.pb.Steps {
		if loop := step.Loop; loop != nil && c.pb.Step(loop.Element) != nil {
			c.warnf(elementPos(loop), codeHiddenName,
				"the element %q hides the step of that name inside the loop; write steps.%s.data for its result", loop.Element, loop.Element)
		}
		for _, policy := range step.Retry {
			if collect := policy.Then.Collect; collect != nil && c.pb.Step(collect.Into) != nil {
				c.warnf(collect.Words.at("into", collect.Pos), codeHiddenName,
					"the into %q hides the step of that name in this retry; write steps.%s.data for its result", collect.Into, collect.Into)
			}
		}
	}
}

// hides says what hides a workload key, "" if nothing does.
func (c *checker) hides(key string) string {
	if _, ok := findWord(key); ok {
		return "the word of the language"
	}
	for _, step := range c.pb.Steps {
		if step.Loop != nil && step.Loop.Element == key {
			return "the element of the loop in step \"" + step.Name + "\""
		}
		for _, policy := range step.Retry {
			if collect := policy.Then.Collect; collect != nil && collect.Into == key {
				return "the into of step \"" + step.Name + "\""
			}
		}
	}
	if c.pb.Step(key) != nil {
		return "the step of that name"
	}
	return ""
}

// loops are the loops of the playbook in the order of the file.
func (pb *Playbook) loops() []*Loop {
	var loops []*Loop
	for _, step := range pb.Steps {
		if step.Loop != nil {
			loops = append(loops, step.Loop)
		}
	}
	return loops
}
