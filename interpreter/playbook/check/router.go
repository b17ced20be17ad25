package check

import (
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkRouter reports retry, loop, rows, where, incremental and sink on a step without a call.
func checkRouter(c *checker) {
	if c.partial {
		return // the tool may be what could not be decoded
	}
	for _, step := range c.pb.Steps {
		if step.Action != nil {
			continue
		}
		refuse := func(key string, pos source.Position) {
			c.Errorf(pos, playbook.CodeRouter, "step %q has %q but no tool: a step without a tool only routes; give it a tool or remove %q",
				step.Name, key, key)
		}
		if len(step.Retry) > 0 {
			refuse("retry", step.Retry[0].Pos)
		}
		if step.Loop != nil {
			refuse("loop", step.Loop.Pos)
		}
		if step.Rows != nil {
			refuse("rows", step.Rows.Pos)
		}
		if step.Where != nil {
			refuse("where", step.Where.Pos)
		}
		if step.Collect != nil {
			refuse("collect", step.Collect.Pos)
		}
		if step.Incremental != nil {
			refuse("incremental", step.Incremental.Pos)
		}
		for _, sink := range step.Sinks {
			refuse("sink", sink.Pos)
		}
	}
}
