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

// mode is how rows meet those that are there. All that modes differ in is here: a further
// mode is a further entry of modes, and what it needs that these lack a further member.
type mode struct {
	name string
	// upsert says that rows take the place of those with their key. A write may be made again
	// then, so that neither its operation key nor its rows are noted.
	upsert bool
	// replace says that rows are beside the table until they take the place of those in it.
	replace bool
	// conflict is the clause for rows that are there, as PostgreSQL and SQLite both write it.
	conflict func(*TableWrite) string
}

var modes = []mode{
	{name: modeInsert, conflict: func(*TableWrite) string { return "" }},
	{name: ModeUpsert, conflict: (*TableWrite).replaces, upsert: true},
	{name: modeInsertOrIgnore, conflict: func(*TableWrite) string { return " ON CONFLICT DO NOTHING" }},
	{name: modeReplace, conflict: func(*TableWrite) string { return "" }, replace: true},
}

func modeNames() []string {
	return lists.Map(modes, func(mode mode) string { return mode.name })
}

func modeOf(name string) mode {
	return modes[slices.IndexFunc(modes, func(m mode) bool { return m.name == name })]
}

// Conflict is the ON CONFLICT clause of the write, "" for none.
func (w *TableWrite) Conflict() string { return w.conflict(w) }

// replaces has a row take the place of the one with its key, unless that one is newer.
func (w *TableWrite) replaces() string {
	var sets []string
	for _, column := range w.Columns {
		if !slices.Contains(w.Key, column) {
			name := quoteName(column)
			sets = append(sets, name+" = excluded."+name)
		}
	}
	clause := " ON CONFLICT (" + QuoteNames(w.Key) + ") DO "
	if len(sets) == 0 {
		return clause + "NOTHING"
	}
	clause += "UPDATE SET " + strings.Join(sets, ", ")
	if w.sequence != "" {
		clause += " WHERE " + w.NotOlder("excluded", quoteName(w.Table[len(w.Table)-1]))
	}
	return clause
}
