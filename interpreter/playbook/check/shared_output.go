package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

// checkSharedOutput warns about a sink that replaces the same file in each iteration of a loop, so that it contains
// only the last written element.
func checkSharedOutput(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop == nil {
			continue
		}
		for _, call := range step.SinkCalls() {
			if call.Spot&(playbook.AtThenSink|playbook.AtLoopSink) != 0 && !c.pb.StagesFile(step, call.Sink) {
				checkSharedFile(c, step, call.Action)
			}
		}
	}
}

func checkSharedFile(c *checker, step *playbook.Step, action *playbook.Action) {
	path, mode := action.Field("path"), action.Field(playbook.FieldMode)
	if !playbook.TraitsOf(c.toolOf(action)).IntoFile || path == nil || mode == nil || mode.Value != modeOverwrite || c.mayVary(path) {
		return
	}
	c.Warnf(path.Pos, codeSharedOutput, "each iteration overwrites this file, so only the last one stays; use the element in path, "+
		"such as {{ %s }}, use mode: append, or write all results once with the sink of the step", c.nameOfElement(step))
}

const modeOverwrite = "overwrite"

// mayVary reports whether a value may differ between iterations: it uses more than data of the run and of earlier
// steps.
func (c *checker) mayVary(node *playbook.Node) bool {
	for _, ref := range node.Refs() {
		_, isKey := c.workload[ref.Root]
		same := slices.Contains([]string{"workload", "steps", "vars", "run", "execution_id", playbook.PartitionWord}, ref.Root)
		if !same && !isKey && c.pb.Step(ref.Root) == nil {
			return true
		}
	}
	return false
}
