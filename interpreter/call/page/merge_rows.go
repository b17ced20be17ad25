package page

import (
	"fmt"
	"maps"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// RowMerge is the result of MergeRows.
type RowMerge struct {
	Rows []any
	// Alone counts rows that came less often than others, or cannot be merged: they may lack fields.
	Alone int
	// First identifies the first of them, for people.
	First string
	most  int // how often a row came at most
}

// MergeRows makes one row of those that have the same values in the columns of a key: it has the fields of all of them,
// of which the last one stays. Rows are in the order of their first occurrence, and those without a value in the key stay
// as they are. The arguments are not changed.
func MergeRows(rows []any, key []string) RowMerge {
	out := RowMerge{Rows: make([]any, 0, len(rows))}
	type place struct {
		at, times int
		shown     string
	}
	var found []*place
	places := map[string]*place{}
	for _, row := range rows {
		values, has := keyValues(row, key)
		of := &place{at: len(out.Rows), times: 1, shown: "a row without " + strings.Join(key, " and ")}
		if has {
			digest := expression.Digest(values...)
			if known := places[digest]; known != nil {
				known.times++
				out.most = max(out.most, known.times)
				whole := maps.Clone(expression.MapOf(out.Rows[known.at]))
				for _, name := range playbook.SortedKeys(expression.MapOf(row)) {
					whole[name] = expression.MapMember(row, name)
				}
				out.Rows[known.at] = whole
				continue
			}
			of.shown = keyText(key, values)
			places[digest] = of
		} else {
			of.times = 0
		}
		found = append(found, of)
		out.Rows = append(out.Rows, row)
	}
	for _, one := range found {
		if one.times >= max(out.most, 2) {
			continue
		}
		if out.Alone++; out.First == "" {
			out.First = one.shown
		}
	}
	return out
}

// keyValues returns the values of a row's key; false if it is no map, or lacks one.
func keyValues(row any, key []string) (values []any, has bool) {
	fields, isMap := row.(map[string]any)
	for _, column := range key {
		if fields[column] == nil {
			return nil, false
		}
		values = append(values, fields[column])
	}
	return values, isMap
}

func keyText(key []string, values []any) string {
	const longest = 40
	parts := make([]string, len(key))
	for i, column := range key {
		shown := expression.Text(values[i])
		if len(shown) > longest {
			shown = strings.ToValidUTF8(shown[:longest], "") + "…"
		}
		parts[i] = column + " " + shown
	}
	return strings.Join(parts, ", ")
}

// Warning says which rows of several pages were not merged, "" for none.
func (m RowMerge) Warning(key []string) string {
	switch {
	case m.Alone == 0:
		return ""
	case m.most == 0:
		return fmt.Sprintf("merge_by merged nothing: no two of %d rows have the same %s", len(m.Rows), strings.Join(key, " and "))
	}
	return fmt.Sprintf("merge_by: %d of %d rows occurred less often than others and may lack fields; the first is %s", m.Alone, len(m.Rows), m.First)
}
