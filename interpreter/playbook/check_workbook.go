package playbook

import "slices"

// checkWorkbook refuses entries that steps could not distinguish and warns of
// those that no step uses.
func checkWorkbook(c *checker) {
	first := map[string]*Action{}
	for _, entry := range c.pb.Workbook {
		if entry.Name == "" {
			continue
		}
		if earlier, ok := first[entry.Name]; ok {
			c.errorf(entry.Pos, codeDuplicateEntry, "two entries of the workbook are named %q; the first is in line %d", entry.Name, earlier.Pos.Line)
			continue
		}
		first[entry.Name] = entry
		if !c.partial && !c.unclear && !c.strayCalls() && len(c.callers(entry)) == 0 {
			c.warnf(entry.Pos, codeUnusedEntry, "no step uses the workbook entry %q; a step does with tool: workbook and name: %s", entry.Name, entry.Name)
		}
	}
}

// strayCalls reports whether a step calls an entry that does not exist, which
// may be meant for one that does.
func (c *checker) strayCalls() bool {
	return slices.ContainsFunc(c.pb.Steps, func(step *Step) bool {
		if step.Action == nil || c.toolOf(step.Action) != WorkbookTool {
			return false
		}
		name, ok := step.Action.entryName()
		return ok && c.pb.Action(name) == nil
	})
}

// callers are the steps that call an entry of the workbook.
func (c *checker) callers(entry *Action) []*Step {
	var steps []*Step
	for _, step := range c.pb.Steps {
		if step.Action == nil || c.toolOf(step.Action) != WorkbookTool {
			continue
		}
		if name, ok := step.Action.entryName(); !ok || name == entry.Name {
			steps = append(steps, step)
		}
	}
	return steps
}

// entryName is the workbook entry that an action calls, where it is literal.
func (a *Action) entryName() (string, bool) {
	node := a.Field("name")
	if node == nil || !node.Constant() {
		return "", false
	}
	name, ok := node.Value.(string)
	return name, ok
}
