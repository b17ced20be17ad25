package sqltool

import (
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// The modes of table mode.
const (
	modeInsert         = "insert"
	modeInsertOrIgnore = "insert_or_ignore"
	ModeUpsert         = "upsert"
	modeReplace        = "replace"
)

// mode is how rows meet existing ones. All differences between modes are here: a new mode is an
// entry of modes, with a new member for what these lack.
type mode struct {
	name string
	// upsert says that rows replace those with their key. Such a write may be repeated, so that
	// neither its operation key nor its rows are recorded.
	upsert bool
	// replace says that rows are staged in a table of their own until they replace the existing
	// ones.
	replace bool
	// conflict returns the ON CONFLICT clause for existing rows; PostgreSQL and SQLite have the same one.
	conflict func(w *TableWrite, lacks func(column string) string) string
}

var modes = []mode{
	{name: modeInsert, conflict: func(*TableWrite, func(string) string) string { return "" }},
	{name: ModeUpsert, conflict: (*TableWrite).replaceClause, upsert: true},
	{name: modeInsertOrIgnore, conflict: (*TableWrite).ignoreClause},
	{name: modeReplace, conflict: func(*TableWrite, func(string) string) string { return "" }, replace: true},
}

func modeNames() []string {
	return lists.Map(modes, func(mode mode) string { return mode.name })
}

func modeOf(name string) mode {
	return modes[slices.IndexFunc(modes, func(m mode) bool { return m.name == name })]
}

// ConflictClause returns the ON CONFLICT clause of the write, "" for none. lacks returns the condition that a row has no value
// for a column, "" if each row has one.
func (w *TableWrite) ConflictClause(lacks func(column string) string) string {
	return w.conflict(w, lacks)
}

// MayConflict reports whether rows to be written may exist already.
func (w *TableWrite) MayConflict() bool { return w.conflict(w, HasAll) != "" }

// UpdatesRows reports whether rows to be written replace existing ones.
func (w *TableWrite) UpdatesRows() bool { return w.upsert }

// ignoreClause returns the clause by which a row is skipped that the table has. With a key, that is a row of its key: one
// that conflicts with another in other columns is an error, not a row that is there.
func (w *TableWrite) ignoreClause(func(string) string) string {
	if len(w.Key) == 0 {
		return " ON CONFLICT DO NOTHING"
	}
	return " ON CONFLICT (" + QuoteNames(w.Key) + ") DO NOTHING"
}

// replaceClause returns the clause by which a row replaces the one with its key, unless that one is newer. Columns
// that the row lacks keep their values.
func (w *TableWrite) replaceClause(lacks func(string) string) string {
	var sets []string
	there := quoteName(w.Table[len(w.Table)-1])
	for _, column := range w.Columns {
		if slices.Contains(w.Key, column) {
			continue
		}
		name := quoteName(column)
		value := "excluded." + name
		if condition := lacks(column); condition != "" {
			value = "CASE WHEN " + condition + " THEN " + there + "." + name + " ELSE " + value + " END"
		}
		sets = append(sets, name+" = "+value)
	}
	clause := " ON CONFLICT (" + QuoteNames(w.Key) + ") DO "
	switch {
	case len(sets) > 0:
	case w.HasChildren(): // the row is locked, so that of two writes of its children one waits for the other
		key := quoteName(w.Key[0])
		sets = []string{key + " = " + there + "." + key}
	default:
		return clause + "NOTHING"
	}
	clause += "UPDATE SET " + strings.Join(sets, ", ")
	if w.sequence == "" {
		return clause
	}
	newer := w.NotOlder("excluded", there)
	switch condition := lacks(w.sequence); {
	case !slices.Contains(w.Columns, w.sequence): // or the default of the column would count
		newer = there + "." + quoteName(w.sequence) + " IS NULL"
	case condition != "":
		newer = "(" + there + "." + quoteName(w.sequence) + " IS NULL OR NOT " + condition + " AND " + newer + ")"
	}
	return clause + " WHERE " + newer
}

// HasAll is for writes whose rows lack no column.
func HasAll(string) string { return "" }
