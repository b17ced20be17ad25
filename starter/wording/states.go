package wording

import "reprise/interpreter/playbook"

// databases are the display names of tools that keep states.
var databases = map[string]string{"postgres": "PostgreSQL", "sqlite": "SQLite"}

// DescribeState returns where the watermark of a state is stored, and whether rows are written exactly once.
func DescribeState(state playbook.KeptState) string {
	if state.Home == nil {
		if state.Sinks == 0 {
			return "by Temporal, and moves when the run has completed (at least once)"
		}
		return "by Temporal, after the rows (at least once)"
	}
	text := "in " + databases[state.Tool] + ", in the same transaction as the rows "
	switch {
	case state.Unkeyed != nil:
		return text + "(no row is lost; without a key, equal rows are counted)"
	case state.Sinks > 1:
		return text + "(exactly once; at least once in other sinks)"
	}
	return text + "(exactly once)"
}
