// Package sqltool is what the tools of SQL databases share: statements with their values,
// rows, writes to a table, and the ledger of a database.
package sqltool

import (
	"fmt"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// TableWrite is what a call in table mode requests.
type TableWrite struct {
	Table []string // schema and name, or the name
	Shown string   // the table as the author wrote it
	mode
	Key     []string
	Columns []string // the union of all rows' keys, sorted
	Rows    []map[string]any
	Deletes []map[string]any // whose keys are deleted, once the write is settled
	tool.LedgerRecord
	// State is what the write does to a state, nil for nothing.
	State *incremental.StateWrite

	uniform bool        // each row has all columns
	given   int         // how many rows it had at first
	known   [][]byte    // each row, where rows are distinguished
	inOrder bool        // these are sorted
	chunks  []RowLookup // what Seen gives, where that is known
	numbers []int       // of each row, where rows are left out

	// keyForms make the values of the key's columns texts, see keyOf.
	keyForms []func(any) string
	// repeats says that several rows have one key, by the database's equality.
	repeats bool
	// counted says that its rows of the table are those of a turn before.
	counted     bool
	deletesFrom []int // the numbers of Deletes, as numbers

	sequence   string // column of sequence_by, "" for none
	order      sequenceOrder
	cursor     *incremental.CursorField // that of the step, nil for none
	hardDelete string                   // column of hard_delete, "" for none

	planned  bool // nothing is written, and its rows are not known
	contract contract
	types    map[string]string     // declared types by columns
	changes  []string              // statements that change the table, once the write is settled
	changing string                // the statement that changes the table just now, "" for none
	leftOut  interpreter.RowCounts // what is not written
	rejected rejected
	// unfit are the rows, by their numbers, that are refused for a value that would become another one, and served what rows were before
	// their values were changed for their columns.
	unfit   map[int]*RowRefusal
	served  map[int]map[string]any
	refused []int // numbers of the rows that were rejected
	staging staging
	// tableColumns are those of the table, once the write is settled.
	tableColumns []Column
	// lenient leaves out rows that the database refuses. finding finds the first of them.
	lenient, finding bool
}

// TableFields are the fields of table mode, the same for every database.
func TableFields() []playbook.Field {
	return []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The table to write rows to, with or without its schema. Not used beside statement."},
		{Name: "key", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The column, or list of columns, that identifies rows; needed by mode upsert. With it mode replace changes only what differs."},
		{Name: "mode", Kind: playbook.KindLiteral, Enum: modeNames(), Default: modeInsert, Doc: "Whether rows are added, take the place of those with the same key, are left out where the table has such a row, or take the place of all rows of the table."},
		{Name: "sequence_by", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{upserts}, Doc: "The column that says which row is newer: a row never takes the place of one with a larger value."},
		{Name: "hard_delete", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{upserts}, Doc: "The column that marks deleted rows: one in which it is truthy is deleted by its key. The table need not have the column."},
		{Name: "replace_where", Kind: playbook.KindMap, Keys: whereKeys(), Needs: []playbook.Need{replaces, deletesMissing}, Doc: "Which rows are replaced, or deleted if they were not read: those whose column is equals, or at least from and less than to. Others stay, and a row to be written that is not among them is an error."},
		{Name: "delete_missing", Kind: playbook.KindBoolean, Default: "false", Needs: []playbook.Need{upserts}, Doc: "Whether rows of the table that the call or loop has not read are deleted once it has completed."},
		{Name: "max_delete", Kind: playbook.KindNumber, Default: fmt.Sprint(mostDeleted), Needs: []playbook.Need{deletesMissing}, Doc: "The largest share of the rows that the table had which delete_missing may delete, from 0 to 1; more is an error, and nothing is deleted."},
		{Name: "allow_empty", Kind: playbook.KindBoolean, Default: "false", Needs: []playbook.Need{replaces, deletesMissing}, Doc: "Whether a call or loop that has read no rows empties the table; else that is an error, and nothing is deleted."},
		{Name: "schema_contract", Kind: playbook.KindChoice, Enum: contractWords, Default: freeze, Keys: contractKeys(), Doc: "What happens to rows that differ from their table: one word, or one for tables, columns and data_type."},
		{Name: "columns", Kind: playbook.KindMap, Doc: "Types of columns that the sink makes, by their names; others follow from the rows."},
		{Name: "rejected", Kind: playbook.KindMap, Keys: rejectedKeys(), Doc: "Where rows go that the database refuses; the others are written. Without it such a row fails the write."},
	}
}

// What words about rows of one key need, and words about rows that are published together.
var (
	upserts        = playbook.Need{Field: "mode", Value: ModeUpsert}
	replaces       = playbook.Need{Field: "mode", Value: modeReplace}
	deletesMissing = playbook.Need{Field: "delete_missing", Value: "true"}
)

// TableDoc is the part of a spec's Doc that table mode has everywhere.
const TableDoc = `With table instead of statement, rows are written: args, else the result of what
the sink belongs to. In a sink a list is many rows; a step writes one, a map. Nested values are
stored as JSON. Each row writes its own fields: what it lacks stays as it is with mode upsert, and gets
the column's default in a new row, whatever other rows have; with mode replace it is NULL if others have it. All rows
are written in one transaction, in the order of their key. mode upsert replaces rows with the same key
(of two such rows in one write the later wins, and one that is refused or discarded is as if it were not there); which keys
are equal is for the database to say. PostgreSQL undoes some writes because of others (a deadlock, or a serialization
failure); such a write is made again up to 5 times. mode insert_or_ignore leaves out
rows of which the table has the key, or any other value that is unique. Modes
insert, insert_or_ignore and replace note operation_key in the table reprise_writes, in
the same transaction, and write nothing if it is there: a write that is
delivered twice is written once. If it is there with other rows, the write fails
and says so. Where pages, or the iterations of a
batch, share an activity, the same transaction notes in the table reprise_notes
how the call continues; those notes are deleted when they are no longer needed, at
the latest after 7 days. Both tables are made when they are first needed.

With sequence_by, mode upsert compares rows of one key by that column, those of
one write too: the larger value stays, of equal ones the later row. They are compared as incremental compares
cursors, whatever the column's type: numbers as numbers, times as instants in any form, other text by code points; nil is less than
any other value. Of texts the type of incremental decides, where the column is its cursor_path, else what they look like. With hard_delete, a row in which that column is truthy deletes the row with
its key (a text such as "false", "no" or "0", which is truthy too, is an error), beside sequence_by only one that is not newer, and the result has
rows_deleted. A row that comes later, and is older than the one that was deleted,
is written: nothing is left to compare it with.

schema_contract says what happens to rows that differ from their table. freeze (the
default) is an error that names row and column. evolve makes the table, and its schema where the user may, with the
columns of key NOT NULL and its primary key, adds columns that may be NULL, and
widens smallint, integer and bigint up to numeric, real to double precision, and
varchar(n) to text; it drops, renames and narrows nothing. The types of new columns
are those of columns, else follow from the rows: bigint, numeric, boolean, text, and
jsonb for lists and maps (SQLite: text), and in PostgreSQL timestamptz or date for the cursor of incremental. A column that is nil in all rows
is not made yet.
discard_value leaves out the value, discard_row the row; the result's meta counts
them in discarded_values and discarded_rows, and the run warns of them. Changes are
made in the transaction of the rows. One that waits more than 5 s for other
transactions is an error of class retryable. SQLite keeps values of any type in a column: there
evolve widens nothing, discard_value and discard_row go by the declared type, and
a number that a column of numbers would round is an error.

In both databases a text goes into a column of numbers, a key too, only where it is the plain form of one, as JSON writes numbers, without an exponent: "007",
" 12 ", "1e3" and "NaN" are differences of data_type, and in a column of booleans all texts but true, false, t, f, 1 and 0. A time with an
offset is converted to UTC for a column without one (timestamp, and time and date, which keep a part of it), in writes, comparisons and bounds; one with a zone by name is a difference there, and a
word such as now or today is one in any column of times. SQLite has no such columns: a time keeps its text.

With mode replace, in a sink, the rows of the call, or of the whole loop, take the place of those of the table:
the rows, never the table, which keeps its views, grants, triggers, policies, publications and foreign keys. Until
the call or loop has completed they are staged in a table of their own, reprise_staging_ID, where a row is checked for types, NOT NULL and
CHECK; values that are unique, and foreign keys, are checked at the end. Then one transaction puts them in place, by difference where there is a
key (what is gone is deleted, what differs is changed, of rows with one key the one that was written last counts, and columns that no row
had stay), else by DELETE and INSERT, which a table that others' foreign keys point at does not allow. A reader sees the old rows or the new. Writers of
the table wait meanwhile; a transaction of theirs that takes more than 5 s is an error of class retryable. The result has
rows_affected and rows_deleted. A column that cannot be NULL has its default in rows without a value. replace_where bounds
what is replaced, and what delete_missing deletes; values are compared as the column's type, and a row outside, or with NULL there, is an error of type outside_replace_where.
In SQLite, whose columns have no type for times, bounds that are times are compared as instants with whatever the column has in any zone
and form; a value without a zone, such as a date, is of the zone of the bound, and what is no time is outside.

With delete_missing, mode upsert writes rows at once, and keeps the keys of all that were read beside the table, also of those that were
rejected, discarded or not newer. Once the call or loop has completed, rows whose key was not read are deleted; more than max_delete of
the table (0.5) are an error of type max_delete.

Before such a call or loop sends its first request, it makes a table reprise_newer_…_ID beside the target, to which other writes of
table sinks add the keys of the rows that they write and delete. Those are newer: they are neither replaced nor deleted, nor written
again. Where that is not known, as without a key, or where another load has published rows of it meanwhile, the
error is of type table_changed, and nothing is published.

Both need a call or loop that has completed, was not cut short, and has read rows: else the table stays as it is. No rows are an error of type
empty_replace without allow_empty. Staged rows are counted, and less than was written is an error of type staging_lost. What failed
and cancelled runs leave beside a table is dropped by the next write of that kind to it, once nobody has added to it for an hour, and after 7 days; the call that comes back
then, such as one that was paused, fails with staging_lost. Views, foreign and virtual tables, tables with rules, with policies for rows that hold for the user, or from which others
inherit are refused. The tables reprise_staging and reprise_staged say which calls stage rows, and how many.

With rejected, rows that the database refuses (data that a type does not hold, constraints, an error
of a trigger) go to a table of their own with run, step, visit, index, page, row, column, sqlstate, reason, at and
the row as text in value, once however often the write is made; the others are written. Constraints that may
be deferred are checked at once. More than max rows of a call (100) fail the sink, and the write.

A step with incremental keeps its state beside the rows and moves it in their
transaction: in the table reprise_state; in reprise_seen and reprise_seen_blocks what
rows are identified by that may come again, which modes insert and insert_or_ignore
leave out; and in reprise_state_history how the state has changed. These are made when
such a step first runs. A write of a call that no longer holds the state writes nothing.`

// planWrite reads the fields and rows of table mode and reports what cannot be
// written before anything is.
func planWrite(in interpreter.ToolInput) (*TableWrite, error) {
	w, err := Target(in)
	if err != nil {
		return nil, err
	}
	w.LedgerRecord, w.cursor = tool.LedgerRecord{Fingerprint: in.Fingerprint}, in.Cursor
	for _, read := range []func(interpreter.ToolInput) error{w.readMode, w.readStaging, w.readContract, w.readRejected} {
		if err := read(in); err != nil {
			return nil, err
		}
	}
	if w.Staged() && w.staging.Do != "" {
		return w, w.planState(in)
	}
	if in.Args == nil && in.Result == nil && in.Place == "" { // a sink that has nil writes no row
		return nil, tool.ConfigErrorf("step %q: there is nothing to write to table %q: give args, a map or a list of maps", in.Step, w.Shown)
	}
	if err := w.readRows(in.Rows()); err != nil {
		return nil, err
	}
	return w, w.planState(in)
}

// readMode reads how rows meet those that are there.
func (w *TableWrite) readMode(in interpreter.ToolInput) error {
	name, err := tool.Choice(in, "mode", modeInsert, modeNames()...)
	if err != nil {
		return err
	}
	w.mode = modeOf(name)
	if !w.upsert {
		w.Operation = in.OperationKey
	}
	if w.Key, err = tool.TextList(in, "key"); err != nil {
		return err
	}
	if w.upsert && len(w.Key) == 0 {
		return tool.ConfigErrorf("step %q: mode upsert needs key, the column that identifies rows", in.Step)
	}
	for _, one := range []struct {
		field  string
		column *string
	}{{"sequence_by", &w.sequence}, {"hard_delete", &w.hardDelete}} {
		if *one.column, err = tool.TextField(in, one.field); err != nil {
			return err
		}
		if *one.column != "" && !w.upsert {
			return tool.ConfigErrorf("step %q: %s needs mode upsert, as it is about rows with the same key", in.Step, one.field)
		}
	}
	return nil
}

func (w *TableWrite) readRows(rows []any) error {
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
			if (w.upsert || w.replace) && fields[key] == nil {
				return tool.Errorf("row %d for table %q has no %q, which is the key", i+1, w.Shown, key)
			}
		}
		if mark := fields[w.hardDelete]; w.hardDelete != "" && saysNo(mark) {
			return tool.Errorf("row %d for table %q: %s is the text %q, which is truthy, so the row would be deleted; make it a boolean in args",
				i+1, w.Shown, w.hardDelete, mark)
		}
		w.Rows = append(w.Rows, fields)
	}
	w.Columns, w.uniform = columnsOf(w.Rows)
	w.given = len(w.Rows)
	return nil
}

// WritesRows reports whether the write was given rows, whatever is left of them.
func (w *TableWrite) WritesRows() bool { return w.given > 0 }

// without is the write without the rows that are marked.
func (w *TableWrite) without(marked []bool) *TableWrite {
	if !slices.Contains(marked, true) {
		rest := *w
		return &rest
	}
	var stay []int
	for i := range w.Rows {
		if !marked[i] {
			stay = append(stay, i)
		}
	}
	return w.pick(stay)
}

// pick is the write of some of its rows, in an order.
func (w *TableWrite) pick(rows []int) *TableWrite {
	rest := *w
	rest.Rows, rest.known, rest.chunks = make([]map[string]any, len(rows)), nil, nil
	rest.numbers = make([]int, len(rows))
	if w.known != nil {
		rest.known = make([][]byte, len(rows))
	}
	for at, i := range rows {
		rest.Rows[at], rest.numbers[at] = w.Rows[i], w.Number(i)
		if w.known != nil {
			rest.known[at] = w.known[i]
		}
	}
	return &rest
}

// Written is what a write has done.
type Written struct{ affected, deleted int64 }

// Affected is what a write has done that deletes nothing.
func Affected(rows int64) Written { return Written{affected: rows} }

// IsPlain reports whether all that is left of a write that is settled is to insert its rows together.
func (w *TableWrite) IsPlain() bool {
	return !w.Staged() && len(w.Rows) > 0 && len(w.Deletes) == 0 && w.rejected.table == nil && !w.lenient && w.staging.where == nil
}

// Result is the result of a write.
func (w *TableWrite) Result(written Written) interpreter.ToolResult {
	result := RowsAffected(written.affected)
	if w.hardDelete != "" || w.Staged() && w.staging.Do == interpreter.StagingPublish {
		result.Data = expression.Of(map[string]any{"rows_affected": int(written.affected), "rows_deleted": int(written.deleted)})
	}
	return w.Counted(result)
}

// Counted is a result with what was left out of the write, where its words say that something may be.
func (w *TableWrite) Counted(result interpreter.ToolResult) interpreter.ToolResult {
	if w.rejected.table != nil || w.contract != (contract{freeze, freeze, freeze}) {
		leftOut := w.leftOut
		result.Meta.LeftOut = &leftOut
	}
	return result
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
	return strings.Join(lists.Map(names, quoteName), ", ")
}

// QuoteLiteral makes a literal of SQL of a text.
func QuoteLiteral(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// QuotedTable is the table as SQL has it.
func (w *TableWrite) QuotedTable() string {
	return strings.Join(lists.Map(w.Table, quoteName), ".")
}
