package check

import (
	"maps"
	"slices"

	"reprise/interpreter/source"
)

// checkHidden warns about workload keys and steps that are hidden by a name with precedence: words, elements, into,
// steps, workload keys, in this order.
func checkHidden(c *checker) {
	hiding := c.hidingNames()
	for _, key := range slices.Sorted(maps.Keys(c.workload)) {
		by := hiding[key]
		if by == "" {
			continue
		}
		pos := c.pb.WorkloadPos.Place(key, source.Position{})
		c.Warnf(pos, codeHiddenName, "the workload key %q is hidden by %s; use workload.%s", key, by, key)
	}
	for _, step := range c.pb.Steps {
		if loop := step.Loop; loop != nil && c.pb.Step(loop.Element) != nil {
			c.Warnf(elementPos(loop), codeHiddenName,
				"the element %q hides the step with this name inside the loop; use steps.%s.data for its result", loop.Element, loop.Element)
		}
		for collect := range step.CollectSections() {
			if c.pb.Step(collect.Into) != nil {
				c.Warnf(collect.Words.Place("into", collect.Pos), codeHiddenName,
					"into: %q hides the step with this name in this retry; use steps.%s.data for its result", collect.Into, collect.Into)
			}
		}
	}
}

// hidingNames describes each name that hides a workload key. The name with the highest precedence is entered last.
func (c *checker) hidingNames() map[string]string {
	by := map[string]string{}
	for _, step := range c.pb.Steps {
		by[step.Name] = "the step with this name"
	}
	for _, step := range slices.Backward(c.pb.Steps) {
		for collect := range step.CollectSections() {
			by[collect.Into] = "the into of step \"" + step.Name + "\""
		}
		if step.Loop != nil {
			by[step.Loop.Element] = "the element of the loop in step \"" + step.Name + "\""
		}
	}
	for _, word := range words {
		if !word.row {
			by[word.name] = "the keyword with this name"
		}
	}
	return by
}
