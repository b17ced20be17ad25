package sqltool

import (
	"fmt"
	"maps"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// misspeltNotes returns notes about columns that the fields of a sink name and none of its rows has, where the rows have another that
// the sink does not name and the author certainly meant: rows would not be deleted, or lists would not become rows, in silence.
func misspeltNotes(w *TableWrite) (notes []string) {
	declared := slices.Sorted(maps.Keys(w.types))
	fields := lists.Map(w.children, func(child *childTable) string { return child.field })
	var names []string // of the rows, which are looked at only if a name is not among the columns of the write
	for _, one := range []struct {
		key     string
		columns []string
	}{{"hard_delete", []string{w.hardDelete}}, {"columns", declared}, {"children", fields}} {
		for _, column := range one.columns {
			if column == "" || slices.Contains(w.Columns, column) {
				continue
			}
			if names == nil {
				names = namesOf(w.Rows)
			}
			if slices.Contains(names, column) {
				continue
			}
			unnamed := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return name == w.hardDelete || name == w.sequence || slices.Contains(declared, name) || slices.Contains(fields, name) || slices.Contains(w.Key, name)
			})
			if meant := expression.SuggestCertain(column, unnamed); meant != "" {
				notes = append(notes, fmt.Sprintf("%s: no row for table %q has %q; did you mean %q?", one.key, w.Shown, column, meant))
			}
		}
	}
	return notes
}

// namesOf returns the names of the fields that any row has, sorted.
func namesOf(rows []map[string]any) []string {
	names := map[string]bool{}
	for _, row := range rows {
		for name := range row {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
