package sqltool

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// writtenKeys are the keys of the rows of a write, as far as they are compared without the database.
type writtenKeys struct {
	texts  []string // see keyOf; nil for a write that does not find rows by their keys
	repeat bool     // rows have the same key
}

func keysOfWrite(w *TableWrite, d *Dialect, columns []Column) (keys writtenKeys) {
	if len(w.Key) == 0 || !w.upsert && !w.replace || len(w.Rows) < 2 {
		return keys
	}
	by := *w
	if by.forms == nil {
		by.forms = w.formsOfKey(d, columns)
	}
	keys.texts = make([]string, len(w.Rows))
	seen := make(map[string]struct{}, len(w.Rows))
	for i, row := range w.Rows {
		if !w.isUnfit(i) {
			keys.texts[i] = by.keyOf(row)
			seen[keys.texts[i]] = struct{}{}
		} else { // as if it were not there
			keys.repeat = true
		}
	}
	keys.repeat = keys.repeat || len(seen) < len(w.Rows)
	return keys
}

// noteRepeatedKeys warns about rows of one write that have the same key and different values, of which only the last one stays: the key
// probably lacks a column. Versions of a row are expected from a source that says which rows have changed, and where sequence_by orders
// them.
func noteRepeatedKeys(w *TableWrite, keys writtenKeys) {
	if !keys.repeat || w.sequence != "" || w.hardDelete != "" || w.cursor != nil {
		return
	}
	last := make(map[string]int, len(w.Rows))
	for i, key := range keys.texts {
		if w.isUnfit(i) { // as if it were not there
			continue
		}
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
		switch above := w.origins[one-1].row() == w.origins[other-1].row(); {
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
