package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

// checkWorkbook reports entries that steps could not distinguish, and warns about unused ones.
func checkWorkbook(c *checker) {
	first := map[string]*playbook.Action{}
	for _, entry := range c.pb.Workbook {
		if entry.Name == "" {
			continue
		}
		if earlier, ok := first[entry.Name]; ok {
			c.Errorf(entry.Pos, playbook.CodeDuplicateEntry, "two entries of the workbook are named %q; the first is on line %d", entry.Name, earlier.Pos.Line)
			continue
		}
		first[entry.Name] = entry
		if !c.partial && !c.unclear && !c.callsUnknownEntry() && len(c.callingSteps(entry)) == 0 {
			c.Warnf(entry.Pos, codeUnusedEntry, "no step uses the workbook entry %q; to use it, write tool: workbook and name: %s in a step", entry.Name, entry.Name)
		}
	}
}

// callsUnknownEntry reports whether a step calls an entry that does not exist; it may mean an existing one.
func (c *checker) callsUnknownEntry() bool {
	return slices.ContainsFunc(c.pb.Steps, func(step *playbook.Step) bool {
		if step.Action == nil || c.toolOf(step.Action) != playbook.WorkbookTool {
			return false
		}
		name, ok := step.Action.EntryName()
		return ok && c.pb.Action(name) == nil
	})
}

// callingSteps returns the steps that call an entry of the workbook.
func (c *checker) callingSteps(entry *playbook.Action) []*playbook.Step {
	var steps []*playbook.Step
	for _, step := range c.pb.Steps {
		if step.Action == nil || c.toolOf(step.Action) != playbook.WorkbookTool {
			continue
		}
		if name, ok := step.Action.EntryName(); !ok || name == entry.Name {
			steps = append(steps, step)
		}
	}
	return steps
}
