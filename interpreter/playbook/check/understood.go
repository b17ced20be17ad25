package check

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Nothing is reported about the contents of an unknown tool or field, so that each unknown thing causes a single
// message.

// readUnknown records the names used in the contents of unknown tools and fields.
func (c *checker) readUnknown() {
	c.meant = map[string]bool{}
	for _, text := range c.pb.Unread {
		c.meant[text] = true
	}
	for _, call := range c.pb.AllCalls() {
		for _, field := range call.Action.Fields {
			if c.isUnderstood(call.Action, field.Key) {
				continue
			}
			c.unclear = true
			for node := range field.Value.AllNodes() {
				if text, ok := node.Value.(string); ok && isScalar(node) {
					c.meant[text] = true
				}
			}
		}
		c.unclear = c.unclear || !c.knowsTool(call.Action)
	}
}

// dropUnknownContents removes problems that decoding found in the contents of unknown tools and fields.
func (c *checker) dropUnknownContents(found source.Diagnostics) source.Diagnostics {
	for _, inner := range c.inner {
		found = inner.dropUnknownContents(found)
	}
	var muted source.Diagnostics
	for _, call := range c.pb.AllCalls() {
		for field, problems := range call.Action.FieldProblems() {
			if !c.isUnderstood(call.Action, field) {
				muted = append(muted, problems...)
			}
		}
	}
	if len(muted) == 0 {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(d source.Diagnostic) bool { return slices.Contains(muted, d) })
}

// isUnderstood reports whether the meaning of a call's field is known. A misspelt field counts as known.
func (c *checker) isUnderstood(action *playbook.Action, field string) bool {
	name := c.toolOf(action)
	if name == "" || name == playbook.WorkbookTool {
		return true
	}
	spec := c.toolSpec(name)
	if spec == nil {
		return c.knowsTool(action)
	}
	if _, known := spec.Field(field); known {
		return true
	}
	return expression.Suggest(field, append(spec.FieldNames(), playbook.KeysOf("step")...)) != ""
}

// knowsTool reports whether it is known which tool an action calls. A misspelt one counts as known.
func (c *checker) knowsTool(action *playbook.Action) bool {
	name := c.toolOf(action)
	if name == "" || name == playbook.WorkbookTool {
		return true
	}
	if c.toolSpec(name) != nil {
		return true
	}
	_, former := formerTools[name]
	return !former && expression.Suggest(name, c.toolNames()) != ""
}

// toolSpec returns the spec of a tool, nil if there is none.
func (c *checker) toolSpec(name string) *playbook.ToolSpec {
	spec, asked := c.specs[name]
	if asked {
		return spec
	}
	if found, ok := c.tools.Spec(name); ok {
		spec = &found
	}
	c.specs[name] = spec
	return spec
}
