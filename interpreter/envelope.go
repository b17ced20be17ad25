package interpreter

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// A response often is an envelope: its rows are a list inside it. A table that gets the whole response then has one
// row with all rows as JSON, which only an author who wrote that out can want.

// identities are names of members that identify rows. A map with one of them counts as a row, even if it contains
// lists.
var identities = []string{"id", "_id", "uuid", "guid", "gid", "key", "sid", "number", "code"}

// EnvelopeInSink returns a warning if a sink would write an envelope of rows to its table as one row; "" otherwise.
// result is what it writes; with pages, one of the pages.
func EnvelopeInSink(book *playbook.Playbook, sink *playbook.Sink, result any, pages bool) string {
	action := book.ResolveAction(sink.Action)
	if !action.WritesRows() {
		return ""
	}
	path, plain := writtenPath(action)
	if !plain {
		return ""
	}
	written, _ := expression.FollowKeys(result, path)
	if warning := mapOfRowsInSink(action, sink, written); warning != "" {
		return warning
	}
	row, isMap := written.(map[string]any)
	if !isMap || slices.ContainsFunc(keyColumns(action), func(column string) bool { return row[column] != nil }) {
		return ""
	}
	within, n := listOfMaps(row, 0)
	if n == 0 || action.NamesColumn(expression.Text(within[0])) {
		return ""
	}
	gets, write := "one row", fmt.Sprintf("args: \"{{ result.%s }}\" in the sink", dottedPath(slices.Concat(path, within)))
	if pages {
		gets, write = "one row for each page", fmt.Sprintf("collect: {path: %s}", dottedPath(within))
	}
	return fmt.Sprintf("sink %s (line %d): the table gets %s, in which %s is a list of %s as JSON; to write a row for each, use %s; to keep the list as JSON, declare its column in columns",
		sink.Place, sink.Pos.Line, gets, dottedPath(within), source.Count(n, "map"), write)
}

// mapOfRowsInSink returns a warning if what a sink writes as one row is a map of rows by their names or numbers: maps with the same keys,
// which are three or more, or have one that identifies rows.
func mapOfRowsInSink(action *playbook.Action, sink *playbook.Sink, written any) string {
	if list, isList := written.([]any); isList && len(list) == 1 {
		written = list[0]
	}
	members := expression.MapOf(written)
	var first []string
	for i, name := range playbook.SortedKeys(members) {
		keys := playbook.SortedKeys(expression.MapOf(members[name]))
		if i == 0 {
			first = keys
		}
		if len(keys) == 0 || !slices.Equal(keys, first) || action.NamesColumn(name) {
			return ""
		}
	}
	identified := slices.ContainsFunc(first, func(key string) bool { return slices.Contains(keyColumns(action), key) })
	if len(members) < 2 || len(members) < 3 && !identified {
		return ""
	}
	return fmt.Sprintf("sink %s (line %d): the table gets one row, in which %s are maps with the same keys, as JSON; to write a row for each, end the path in rows of the step with .*, "+
		"or write rows: \"*\"; to keep the maps as JSON, declare their columns in columns", sink.Place, sink.Pos.Line, source.Count(len(members), "column"))
}

// writtenPath returns the path in the result of what a sink writes; plain is false if the sink writes something
// else.
func writtenPath(action *playbook.Action) (path []any, plain bool) {
	if action.Args == nil {
		return nil, true
	}
	if action.Args.Template == nil {
		return nil, false
	}
	program, single := action.Args.Template.SingleProgram()
	if !single {
		return nil, false
	}
	refs := program.Refs()
	if len(refs) != 1 || refs[0].Root != "result" || strings.TrimSpace(program.Source()) != strings.Join(append([]string{"result"}, pathTexts(refs[0].Path)...), ".") {
		return nil, false
	}
	return refs[0].Path, true
}

func pathTexts(path []any) []string { return lists.Map(path, expression.Text) }

func dottedPath(path []any) string { return strings.Join(pathTexts(path), ".") }

// keyColumns returns the columns that may identify rows: the key of the sink, and common names.
func keyColumns(action *playbook.Action) []string {
	columns := slices.Clone(identities)
	if key := action.Field("key"); key != nil {
		for scalar := range key.AllNodes() {
			if text, isText := scalar.Value.(string); isText {
				columns = append(columns, text)
			}
		}
	}
	return columns
}

// listOfMaps returns the path and length of the longest list of maps, or of lists of maps, in a map and its inner
// maps; n is 0 if there is none.
func listOfMaps(row map[string]any, level int) (path []any, n int) {
	const levels = 2
	for _, name := range playbook.SortedKeys(row) {
		switch member := row[name].(type) {
		case []any:
			if len(member) > n && holdsMaps(member) {
				path, n = []any{name}, len(member)
			}
		case map[string]any:
			if within, many := listOfMaps(member, level+1); level < levels && many > n {
				path, n = append([]any{name}, within...), many
			}
		}
	}
	return path, n
}

func holdsMaps(list []any) bool {
	return slices.ContainsFunc(list, func(item any) bool {
		switch item := item.(type) {
		case map[string]any:
			return true
		case []any:
			return len(item) > 0 && expression.MapOf(item[0]) != nil
		}
		return false
	})
}
