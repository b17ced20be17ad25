package playbook

import "slices"

// checkSharedOutput warns of a sink that each iteration of a loop writes, and of which each write
// replaces the file: only the element that is written last is in it.
func checkSharedOutput(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop == nil {
			continue
		}
		for _, call := range step.sinks() {
			if call.spot&(atThenSink|atLoopSink) != 0 {
				c.checkSharedFile(step, call.action)
			}
		}
	}
}

func (c *checker) checkSharedFile(step *Step, action *Action) {
	path, mode := action.Field("path"), action.Field(fieldMode)
	if !TraitsOf(c.toolOf(action)).IntoFile || path == nil || mode == nil || mode.Value != modeOverwrite || c.varies(path) {
		return
	}
	c.warnf(path.Pos, codeSharedOutput, "each iteration replaces this file, and only the element that is written last stays; name the element in path, "+
		"such as {{ %s }}, write mode: append, or write the results of all once with the sink of the step", c.nameOfElement(step))
}

const modeOverwrite = "overwrite"

// varies reports whether a value may be another one in each iteration: it names more than
// what the run and the steps before have given.
func (c *checker) varies(node *Node) bool {
	for _, ref := range node.Refs() {
		_, isKey := c.workload[ref.Root]
		same := slices.Contains([]string{"workload", "steps", "vars", "run", "execution_id", PartitionWord}, ref.Root)
		if !same && !isKey && c.pb.Step(ref.Root) == nil {
			return true
		}
	}
	return false
}
