// Package sqltool is what the tools of SQL databases share: statements with their values,
// rows, writes to a table, and the ledger of a database.
package sqltool

import (
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// The modes of table mode.
const (
	modeInsert = "insert"
	ModeUpsert = "upsert"
)

// Write is what a call in table mode requests.
type Write struct {
	Table   []string // schema and name, or the name
	Shown   string   // the table as the author wrote it
	upsert  bool
	Key     []string
	Columns []string // the union of all rows' keys, sorted
	Rows    []map[string]any
	tool.LedgerEntry
	// State is what the write does to a state, nil for nothing.
	State *incremental.Write

	known   [][]byte // each row, where rows are told apart
	numbers []int    // of each row, where rows are left out
}

// TableFields are the fields of table mode, the same for every database.
func TableFields() []playbook.Field {
	return []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The table to write rows to, with or without its schema; it must exist. Not used beside statement."},
		{Name: "key", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The column, or list of columns, that tells rows apart; needed by mode upsert."},
		{Name: "mode", Kind: playbook.KindLiteral, Enum: []string{modeInsert, ModeUpsert}, Default: modeInsert, Doc: "Whether rows are added, or replace those with the same key."},
	}
}

// TableDoc is the part of a spec's Doc that table mode has everywhere.
const TableDoc = `With table instead of statement, rows are written: args, else the result of what
the sink belongs to. A list is many rows, a map is one, nested values are
stored as JSON, and a key that a row lacks but others have is NULL. All rows
are written in one transaction. mode upsert replaces rows with the same key
(of two such rows in one write the later wins). mode insert notes operation_key
in the table reprise_writes, in the same transaction, and writes nothing if it
is there: a write that is delivered twice is written once. If it is there with
other rows, the write fails and says so. Where pages, or the iterations of a
batch, share an activity, the same transaction notes in the table reprise_notes
how the call goes on; those notes are deleted when they are no longer needed, at
the latest after 7 days. Both tables are made when they are first needed.

A step with incremental keeps its state beside the rows and moves it in their
transaction: in the table reprise_state; in reprise_seen what rows are told apart
by that may come again, which mode insert then leaves out; and in
reprise_state_history how the state has changed. These are made when such a step
first runs. A write of a call that no longer holds the state writes nothing.`

// PlanWrite reads the fields and rows of table mode and reports what cannot be
// written before anything is.
func PlanWrite(in interpreter.ToolInput) (*Write, error) {
	w, err := Target(in)
	if err != nil {
		return nil, err
	}
	w.LedgerEntry = tool.LedgerEntry{Note: in.Note, Fingerprint: in.Fingerprint}
	mode, err := tool.Choice(in, "mode", modeInsert, modeInsert, ModeUpsert)
	if err != nil {
		return nil, err
	}
	w.upsert = mode == ModeUpsert
	if !w.upsert {
		w.Operation = in.OperationKey
	}
	if w.Key, err = tool.TextList(in, "key"); err != nil {
		return nil, err
	}
	if w.upsert && len(w.Key) == 0 {
		return nil, tool.ConfigErrorf("step %q: mode upsert needs key, the column that tells rows apart", in.Step)
	}
	if in.Args == nil && in.Result == nil && in.Place == "" { // a sink that has nil writes no row
		return nil, tool.ConfigErrorf("step %q: there is nothing to write to table %q: give args, a map or a list of maps", in.Step, w.Shown)
	}
	if err := w.readRows(in.Rows()); err != nil {
		return nil, err
	}
	return w, w.planState(in)
}

func (w *Write) readRows(rows []any) error {
	columns := map[string]bool{}
	for i, row := range rows {
		fields, ok := row.(map[string]any)
		if !ok {
			return tool.Errorf("row %d for table %q is a %s; a row is a map of columns to values",
				i+1, w.Shown, expression.TypeName(row))
		}
		if len(fields) == 0 {
			return tool.Errorf("row %d for table %q is an empty map; a row has at least one column", i+1, w.Shown)
		}
		for _, key := range w.Key {
			if w.upsert && fields[key] == nil {
				return tool.Errorf("row %d for table %q has no %q, which is the key", i+1, w.Shown, key)
			}
		}
		for column := range fields {
			columns[column] = true
		}
		w.Rows = append(w.Rows, fields)
	}
	for column := range columns {
		w.Columns = append(w.Columns, column)
	}
	slices.Sort(w.Columns)
	if w.upsert {
		w.Rows = lastOfEachKey(w.Rows, w.Key)
	}
	return nil
}

// lastOfEachKey drops rows that a later one replaces: one INSERT … ON CONFLICT
// cannot touch a row twice. Keys are compared as text, as a column would store
// 7 and "7" alike.
func lastOfEachKey(rows []map[string]any, key []string) []map[string]any {
	seen := map[string]bool{}
	kept := make([]map[string]any, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		parts := make([]any, len(key))
		for i, column := range key {
			parts[i] = expression.Text(row[column])
		}
		id := expression.Text(parts)
		if !seen[id] {
			seen[id] = true
			kept = append(kept, row)
		}
	}
	slices.Reverse(kept)
	return kept
}

// CheckColumns compares the rows' columns with the table's, so that the author
// reads which name is wrong and what it might be.
func (w *Write) CheckColumns(existing []string) error {
	if len(existing) == 0 {
		return tool.Errorf("table %q does not exist: create it first, for example with a step that runs CREATE TABLE IF NOT EXISTS", w.Shown)
	}
	for _, column := range slices.Concat(w.Columns, w.Key) {
		if slices.Contains(existing, column) {
			continue
		}
		hint := "it has " + tool.CutText(strings.Join(existing, ", "), 500)
		if near := expression.Suggest(column, existing); near != "" {
			hint = `did you mean "` + near + `"?`
		}
		return tool.Errorf("table %q has no column %q: %s", w.Shown, column, hint)
	}
	return nil
}

// Conflict is the ON CONFLICT clause of an upsert, "" otherwise. The words are
// the same in PostgreSQL and SQLite.
func (w *Write) Conflict() string {
	if !w.upsert {
		return ""
	}
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
	return clause + "UPDATE SET " + strings.Join(sets, ", ")
}

// splitName parts schema.name; parts in double quotes may hold dots.
func splitName(text string) ([]string, error) {
	var (
		parts  []string
		part   strings.Builder
		quoted bool
	)
	for i, r := range text {
		switch {
		case r == '"':
			if !quoted && i > 0 && text[i-1] == '"' {
				part.WriteRune('"') // "" inside quotes is one
			}
			quoted = !quoted
		case r == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	parts = append(parts, part.String())
	if quoted || len(parts) > 3 || slices.Contains(parts, "") || strings.ContainsRune(text, 0) {
		return nil, tool.Errorf("%q is no name", text)
	}
	return parts, nil
}

// quoteName makes an SQL identifier of a name, letter case kept.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteNames makes a list of SQL identifiers.
func QuoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteName(name)
	}
	return strings.Join(quoted, ", ")
}

// QuotedTable is the table as SQL has it.
func (w *Write) QuotedTable() string {
	quoted := make([]string, len(w.Table))
	for i, part := range w.Table {
		quoted[i] = quoteName(part)
	}
	return strings.Join(quoted, ".")
}
