package sqltool

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// noteRepeatedKeys warns about rows of one write that have the same key and different values, of which only the last one stays: the key
// probably lacks a column. Versions of a row are expected from a source that says which rows have changed, and where sequence_by orders
// them.
func noteRepeatedKeys(w *TableWrite, d *Dialect, columns []Column) {
	if len(w.Key) == 0 || !w.upsert && !w.replace || w.sequence != "" || w.hardDelete != "" || w.cursor != nil || len(w.Rows) < 2 {
		return
	}
	keys := *w
	if keys.forms == nil {
		keys.forms = w.formsOfKey(d, columns)
	}
	last := make(map[string]int, len(w.Rows))
	for i, row := range w.Rows {
		if w.isUnfit(i) { // as if it were not there
			continue
		}
		key := keys.keyOf(row)
		if before, known := last[key]; known {
			if note := repeatedKeyNote(w, before, i); note != "" {
				w.notes = append(w.notes, note)
				return
			}
		}
		last[key] = i
	}
}

// repeatedKeyNote returns the warning about two rows with the same key; "" if no value is lost.
func repeatedKeyNote(w *TableWrite, before, after int) string {
	differs := func(column string) bool {
		value, has := w.Rows[after][column]
		other, had := w.Rows[before][column]
		return has && had && !reflect.DeepEqual(value, other)
	}
	same, more := "rows of one write", "add columns to key"
	if one, other := w.OriginalNumber(before), w.OriginalNumber(after); max(one, other) <= len(w.origins) {
		linked := !slices.ContainsFunc(w.links, differs)
		switch above := w.origins[one-1].row == w.origins[other-1].row; {
		case linked && !above: // the last of several parents with one key counts, with its children
			return ""
		case linked:
			same, more = "elements of one list", "add columns to its key in children, or use position"
		default:
			same, more = "elements of different parents", "add the columns of with to its key in children"
		}
	}
	if !slices.ContainsFunc(w.Columns, func(column string) bool { return !slices.Contains(w.Key, column) && differs(column) }) {
		return ""
	}
	return fmt.Sprintf("table %q: %s have the same key (%s) and different values, so only the last one stays; %s, unless they are versions of one row",
		w.Shown, same, strings.Join(w.Key, ", "), more)
}
