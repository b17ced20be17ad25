// Package sqltool is shared by the tools of SQL databases: statements with their values, rows,
// writes to a table, and the ledger of a database.
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

// TableWrite is a write to a table. Its parts own their fields; copying the write copies them.
type TableWrite struct {
	TableName
	mode
	mergeKey
	rowSet
	stateRows
	tool.LedgerRecord
	schemaChange
	settleRules
	tableColumns // once the write is settled
	rejection
	staging
	parentRows
	nestedLists
	Deletes     []map[string]any // whose keys are deleted, once the write is settled
	deletesFrom []int            // the numbers of Deletes, as numbers of rows
	given       int              // how many rows it had at first
	// repeats says that several rows have one key, by the database's equality.
	repeats bool
	// counted says that an earlier pass has counted the rows of the table that it writes.
	counted bool
	cursor  *incremental.CursorField // that of the step, nil for none
	planned bool                     // nothing is written, and its rows are not known
	leftOut interpreter.RowCounts    // what is not written
	target  interpreter.TableRows    // the table as figures name it
	// unfit are the rows, by their numbers, that are refused for a value that would become another one.
	unfit map[int]*RowRefusal
	notes []string // warnings about the rows
	// misspelt are warnings about columns that the sink names and no row has.
	misspelt []string
	// served are the rows, by their numbers, as they were before their values were changed for their columns.
	served  map[int]map[string]any
	refused []int // numbers of the rows that were rejected
	// lenient leaves out rows that the database refuses. finding finds the first of them.
	lenient, finding bool
}

// settleRules are what words of the sink say about values and columns. SettleWrite alone obeys them, and each write is
// settled, also one in one message. One exception: the keys that delete_missing records are those of the rows before
// they are settled, read by columnReaders. So a rule that changes values belongs in Reader (reading.go), which both use.
type settleRules struct {
	contract contract
	types    map[string]string // declared types by columns
}

// TableName names a table.
type TableName struct {
	Table []string // schema and name, or the name
	Shown string   // as the author wrote it
}

// rowSet is the rows of a write.
type rowSet struct {
	Columns []string // the union of all rows' keys, sorted
	Rows    []map[string]any
	uniform bool // each row has all columns
	// columnRows are the rows that Columns were read from.
	columnRows []map[string]any
	numbers    []int       // of each row among those of the call, nil where none was left out
	origins    []rowOrigin // by their numbers, of rows below others
}

// mergeKey is how a write finds the row of the table that one of its rows replaces or deletes, and which of the two
// is newer.
type mergeKey struct {
	Key        []string
	forms      []func(any) string // make the values of the key's columns texts, see keyOf
	sequence   string             // column of sequence_by, "" for none
	order      sequenceOrder
	hardDelete string // column of hard_delete, "" for none
}

// stateRows is how a write recognizes rows that a state knows.
type stateRows struct {
	// State is the change of a state, nil for none.
	State    *incremental.StateWrite
	unneeded bool        // rows are written again without harm, so none is looked up
	known    [][]byte    // each row, where rows are distinguished
	firsts   [][]byte    // each row as the first of those that equal it, where rows are counted
	counts   []int       // and its place among them, from 1; nil where all are the first
	inOrder  bool        // these are sorted
	chunks   []RowLookup // what LookupChunks gives, where that is known
}

// schemaChange are the changes of a write to its table.
type schemaChange struct {
	changes  []interpreter.DDL // once the write is settled
	changing *interpreter.DDL  // the statement that runs just now, nil for none
}

// tableColumns are the columns of the table of a write.
type tableColumns []Column

// TableFields returns the fields of table mode, the same for every database.
func TableFields() []playbook.Field {
	return []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The table to write rows to, with or without its schema. Cannot be combined with statement."},
		{Name: "key", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The column, or list of columns, that identifies rows; required by mode upsert. With a key, mode replace changes only rows that differ."},
		{Name: "mode", Kind: playbook.KindLiteral, Enum: modeNames(), Default: modeInsert, Doc: "How rows are written: insert adds them, upsert replaces rows with the same key, insert_or_ignore skips rows that are already in the table, and replace replaces all rows of the table."},
		{Name: "sequence_by", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{upserts}, Doc: "The column that shows which row is newer: a row never replaces one with a larger value."},
		{Name: "hard_delete", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{upserts}, Doc: "The column that marks deleted rows: a row in which it is truthy is deleted by its key. The table does not need the column."},
		{Name: "replace_where", Kind: playbook.KindMap, Keys: whereKeys(), Needs: []playbook.Need{replaces, deletesMissing}, Doc: "Limits which rows are replaced, or deleted if they were not read: rows whose column equals equals, or is at least from and less than to. Other rows stay, and writing a row outside the limits is an error."},
		{Name: "delete_missing", Kind: playbook.KindBoolean, Default: "false", Needs: []playbook.Need{upserts}, Doc: "Whether rows that the call or loop has not read are deleted from the table when it has completed."},
		{Name: "max_delete", Kind: playbook.KindNumber, Default: fmt.Sprint(defaultDeleted), Needs: []playbook.Need{deletesMissing}, Doc: "The largest share of the table's rows that delete_missing may delete, from 0 to 1. If more would be deleted, the sink fails and nothing is deleted."},
		{Name: "allow_empty", Kind: playbook.KindBoolean, Default: "false", Needs: []playbook.Need{replaces, deletesMissing}, Doc: "Whether a call or loop that has read no rows may empty the table. Otherwise the sink fails and nothing is deleted."},
		{Name: "schema_contract", Kind: playbook.KindChoice, Enum: contractWords, Default: freeze, Keys: contractKeys(), Doc: "What happens to rows that do not match the table: one word, or one each for tables, columns and data_type."},
		{Name: "columns", Kind: playbook.KindMap, Doc: "The types of columns that the sink creates, by name; other types are inferred from the rows."},
		{Name: "rejected", Kind: playbook.KindMap, Keys: rejectedKeys(), Doc: "Where to put rows that the database rejects; the other rows are written. Without it, one such row fails the write."},
		{Name: "nested", Kind: playbook.KindLiteral, Enum: []string{nestedJSON, nestedTables}, Default: nestedJSON, Doc: "What happens to lists in the rows that children does not name: json writes them into their columns, and tables writes each to a table named after the table and the field."},
		{Name: "children", Kind: playbook.KindMap, Each: childKeys(mostNested), Doc: "Tables for lists of maps in the rows, by the names of their fields: each element becomes a row, in the transaction of its parent."},
	}
}

// What words about rows of one key need, and words about rows that are published together.
var (
	upserts        = playbook.Need{Field: "mode", Value: ModeUpsert}
	replaces       = playbook.Need{Field: "mode", Value: modeReplace}
	deletesMissing = playbook.Need{Field: "delete_missing", Value: "true"}
)

// TableDoc is the part of a spec's Doc that table mode has everywhere.
const TableDoc = `With table instead of statement, the tool writes rows: those in args, or the result if
args is not set. A list in a sink is many rows; a step writes one row, a map. Nested
values are stored as JSON. Each row writes only the fields that it has. A field that a
row lacks keeps its value with mode upsert; in a new row, and with mode replace, it gets
the column's default. All rows are written in one transaction, in the order of their
key. mode upsert replaces rows with the same key; the database decides which keys are
equal. If a write has two rows with the same key, the later one wins; rejected and
discarded rows do not count. PostgreSQL aborts some writes because of others (deadlocks
and serialization failures); the tool retries such a write up to 5 times. mode
insert_or_ignore skips rows whose key is already in the table. Without key, it skips
rows that share any unique value with a row of the table. With key, a row with a new key
that breaks another unique constraint is an error. Modes insert, insert_or_ignore and
replace record operation_key in the table reprise_writes, in the same transaction. If
the entry exists, they write nothing, so a write that is delivered twice happens once.
If the entry belongs to other rows, the write fails and says so. If pages, or the
iterations of a batch, share an activity, the same transaction records in the table
reprise_notes how the call continues. Entries are deleted when they are no longer
needed, after 7 days at the latest. Both tables are created when they are first needed.

With sequence_by, mode upsert compares rows with the same key by that column, including
rows of one write: the row with the larger value stays, or the later one if the values
are equal. Values are compared like the cursors of incremental, whatever the type of the
column: numbers as numbers, times in any format as instants, other text by code points.
nil is less than any other value. Texts have the type of incremental if the column is
its cursor_path; otherwise their format decides. With hard_delete, a row in which that
column is truthy deletes the row with its key; with sequence_by, only if the row in the
table is not newer. The result then has rows_deleted. A text such as "false", "no" or
"0", which is also truthy, is an error. A row that arrives after a deletion is written
even if it is older than the deleted row, because nothing is left to compare it with.

schema_contract decides what happens to rows that do not match the table. freeze, the
default, is an error that names row and column. evolve creates the table, and its schema
if the user may, with the columns of key as NOT NULL and primary key. It adds nullable
columns, and widens smallint, integer and bigint up to numeric, real to double
precision, and varchar(n) to text. It never drops, renames or narrows anything. New
columns have the types in columns. Other types are inferred from the rows: bigint,
numeric, boolean, text, and jsonb for lists and maps (text in SQLite); in PostgreSQL
also timestamptz or date for the cursor of incremental. A column that is nil in all rows
is not created yet. discard_value omits the value, and discard_row the row; meta of the
result counts them in discarded_values and discarded_rows, and the run has a warning.
The schema changes in the transaction of the rows. A change that waits more than 5 s for
other transactions is an error of class retryable. SQLite stores values of any type in a
column: there, evolve widens nothing, discard_value and discard_row use the declared
type, and a number that a numeric column would round is an error.

A text with a JSON list or map in it, as in CSV and SQLite, stays a text: a column of
type json or jsonb gets a JSON string, and the run has a warning. fromJSON in fields
parses it. The run also has a warning if evolve adds a column next to one whose name
differs only in case or surrounding spaces, and which no row of the write has.

In both databases, a text fits a numeric column, or a numeric key, only if it is a plain
JSON number without an exponent: "007", " 12 ", "1e3" and "NaN" are data_type
mismatches. So is a NaN or Infinity that was read from a database; select it as NULL,
for example with nullif(x, 'NaN'). In a boolean column, all texts except true, false, t,
f, 1 and 0 are mismatches. A time with an offset is converted to UTC if its column has
no zone (timestamp, date and time), in writes, comparisons and bounds. In such a column,
a time with a named zone is a mismatch. In any column of times, so are a word such as
now or today, a number, and 02/03/2024, where the day or the month may come first.
SQLite has no such columns: a time keeps its text. A value is written even if its column
keeps only a part of it: a number in numeric(p, s), real or double precision, the
fraction of a second, the time of day in a date column, or the date in a time column.
rounded_values counts such values, and rounded_keys those in key columns, where
different rows may become one. unwritten_rows counts rows that a trigger or rule kept
out of the table, and undeleted_rows those that a trigger kept in it. older_rows counts
rows that replaced newer ones of an earlier page, by the cursor of the step, because
sequence_by is not set. Each of these is also a warning.

With mode replace in a sink, the rows of the call, or of the whole loop, replace those
of the table. The table itself stays, with its views, grants, triggers, policies,
publications and foreign keys. Until the call or loop has completed, the rows are staged
in a separate table, reprise_staging_ID. Each staged row is checked for types, NOT NULL
and CHECK, and gets the defaults of columns that it lacks. Unique values and foreign
keys are checked at the end. Then one transaction publishes the rows. With a key, it
applies the difference: it deletes rows that are gone and updates rows that differ. The
last row with a key counts, and columns that no row had keep their values. Without a
key, it uses DELETE and INSERT, which fails if foreign keys of other tables reference
the table. A reader sees either the old rows or the new ones. Writers of the table wait
meanwhile; if one of their transactions takes more than 5 s, the error has class
retryable. The result has rows_affected and rows_deleted. replace_where limits what is
replaced, and what delete_missing deletes. Values are compared by the type of the
column. A row outside the limits, or with NULL there, is an error of type
outside_replace_where. SQLite has no column types for times: there, bounds that are
times are compared as instants with values in any zone and format. A value without a
zone, such as a date, is read in the zone of the bound; a value that is not a time is
outside.

With delete_missing, mode upsert writes rows immediately, and stores the keys of all
rows that were read in a separate table, including rows that were rejected, discarded or
not newer. When the call or loop has completed, rows whose key was not read are deleted.
If that would delete a larger share of the table than max_delete (0.5), the error has
type max_delete.

Before such a call or loop sends its first request, it creates a table
reprise_newer_…_ID beside the target. Other table sinks that write to the target add the
keys of the rows that they write and delete. Those rows are newer, so they are not
replaced, deleted or written again. If the newer rows cannot be known, for example
without a key, or if another load has published rows of the table meanwhile, the error
has type table_changed and nothing is published.

Both need a call or loop that has completed, was not cut short, and has read rows;
otherwise the table stays as it is. Without rows, the error has type empty_replace,
unless allow_empty is set. Staged rows are counted; if rows are missing, the error has
type staging_lost. Staging tables of failed and cancelled runs are dropped by the next
such write to the target once nobody has added to them for an hour, and after 7 days at
the latest. A call that continues after that, for example because it was paused, fails
with staging_lost. Views, foreign and virtual tables, tables with rules, tables with
row-level policies that apply to the user, and tables that others inherit from are
refused. The tables reprise_staging and reprise_staged list which calls stage rows, and
how many.

With rejected, rows that the database refuses (a value that does not fit its type, a
constraint, an error of a trigger) go to a separate table with run, step, visit, index,
page, row, column, sqlstate, reason, at, and the row as text in value. They are recorded
once, even if the write is repeated. The other rows are written. Deferrable constraints
are checked immediately. If more than max rows of a call (100) are rejected, the sink
fails and nothing is written.

With children, each element of a list in a row becomes a row of another table, with some
values of its parent, the row that has the list. Both are written in the same
transaction. With mode upsert, children that are no longer in their parent's list are
deleted; a parent without the field keeps its children, and null or [] deletes them.
With mode replace, children are staged and published with their parents: the children of
the last row with a key replace all children of the replaced rows. If no row had the
field, the error has type empty_replace, unless allow_empty is true. A parent that is
rejected, ignored or older writes no children, and a parent that is deleted loses its
children.

With nested: tables, each list in the rows that children does not name gets a table,
named after the table of the rows and the field, such as orders_items. Its columns are
those of the elements (value for elements that are not maps), the key of the parent
(orders_id), and the position in the list from 0 (orders_items_line). Lists in the
elements get tables in the same way. The tables must exist, or schema_contract must be
evolve.

A step with incremental stores its state beside the rows, in the table reprise_state,
and updates it in the same transaction. The tables reprise_seen and reprise_seen_blocks
identify rows that may be read again; modes insert and insert_or_ignore skip these. A
row without a key is identified by all its written values and by how often it was
written. The table reprise_state_history records how the state has changed. The tables
are created when such a step first runs. A call that no longer holds the state writes
nothing.`

// planWrite reads the fields and rows of table mode and reports what cannot be
// written before anything is.
func planWrite(in interpreter.ToolInput) (*TableWrite, error) {
	w, err := ParseTarget(in)
	if err != nil {
		return nil, err
	}
	w.LedgerRecord, w.cursor = tool.LedgerRecord{Fingerprint: in.Fingerprint}, in.Cursor
	for _, read := range []func(interpreter.ToolInput) error{w.readMode, w.readStaging, w.readContract, w.readRejected, w.readChildren, func(in interpreter.ToolInput) error { return readNested(w, in) }} {
		if err := read(in); err != nil {
			return nil, err
		}
	}
	if w.IsStaged() && w.Do != "" {
		return w, w.planState(in)
	}
	if in.Args == nil && in.Result == nil && in.Place == "" { // a sink that has nil writes no row
		return nil, tool.ConfigErrorf("step %q: there is nothing to write to table %q; set args to a map or a list of maps", in.Step, w.Shown)
	}
	if err := w.readRows(in.SinkRows(), in.Columns); err != nil {
		return nil, err
	}
	w.misspelt = misspeltNotes(w)
	return w, w.planState(in)
}

// readMode reads how the rows are combined with existing ones.
func (w *TableWrite) readMode(in interpreter.ToolInput) error {
	name, err := tool.ChoiceField(in, "mode", modeInsert, modeNames()...)
	if err != nil {
		return err
	}
	w.mode = modeOf(name)
	w.unneeded = w.upsert
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
			return tool.ConfigErrorf("step %q: %s needs mode upsert", in.Step, one.field)
		}
	}
	return nil
}

// readRows reads the rows; columns are those of each row, nil if that is not known.
func (w *TableWrite) readRows(rows []any, columns []string) error {
	for i, row := range rows {
		fields, ok := row.(map[string]any)
		if !ok {
			return tool.Errorf("row %d for table %q is a %s; a row must be a map of columns to values",
				i+1, w.Shown, expression.TypeName(row))
		}
		if len(fields) == 0 {
			return tool.Errorf("row %d for table %q is an empty map; a row needs at least one column", i+1, w.Shown)
		}
		for _, key := range w.Key {
			if (w.upsert || w.replace || w.reports) && fields[key] == nil {
				return tool.Errorf("row %d for table %q has no %q, which is the key", i+1, w.Shown, key)
			}
		}
		if w.hardDelete != "" && isFalseMark(fields[w.hardDelete]) {
			return tool.Errorf("row %d for table %q: %s is the text %q, which is truthy, so the row would be deleted; convert it to a boolean in args",
				i+1, w.Shown, w.hardDelete, fields[w.hardDelete])
		}
		w.Rows = append(w.Rows, fields)
	}
	if w.nests {
		listed := make([]listedRow, len(w.Rows))
		for i, row := range w.Rows {
			listed[i] = listedRow{row, w.RowText(i + 1)}
		}
		if err := nestRows(w, listed); err != nil {
			return err
		}
	}
	w.readColumns(columns)
	if len(w.Columns) == 0 && len(w.Rows) > 0 {
		return tool.Errorf("the rows for table %q have nothing but lists, which go to the tables of children; a row needs at least one column", w.Shown)
	}
	w.given = len(w.Rows)
	return nil
}

// WritesRows reports whether the write was given rows, even if none is left.
func (w *TableWrite) WritesRows() bool { return w.given > 0 }

// withoutRows returns the write without the rows that are marked.
func (w *TableWrite) withoutRows(marked []bool) *TableWrite {
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
	return w.pickRows(stay)
}

// pickRows returns the write of some of its rows, in an order.
func (w *TableWrite) pickRows(rows []int) *TableWrite {
	rest := *w
	rest.Rows, rest.known, rest.chunks = make([]map[string]any, len(rows)), nil, nil
	rest.numbers = make([]int, len(rows))
	if w.known != nil {
		rest.known = elementsAt(w.known, rows)
	}
	if w.firsts != nil {
		rest.firsts = elementsAt(w.firsts, rows)
	}
	if w.counts != nil {
		rest.counts = elementsAt(w.counts, rows)
	}
	for at, i := range rows {
		rest.Rows[at], rest.numbers[at] = w.Rows[i], w.OriginalNumber(i)
	}
	return &rest
}

// elementsAt returns the elements of a list at some positions, in the order of the positions.
func elementsAt[T any](list []T, at []int) []T {
	return lists.Map(at, func(i int) T { return list[i] })
}

// WriteResult counts what a write has done.
type WriteResult struct {
	affected, deleted int64
	// inserted and updated are parts of affected, 0 if unknown.
	inserted, updated int64
	// unwritten counts rows that the database accepted and did not write.
	unwritten int64
	// undeleted counts rows that should have been deleted and are still there.
	undeleted int64
	// beside says that rows are in the staging table until they are published.
	beside bool
}

// AffectedResult returns the result of a write without deletes, if the database does not say which rows are new.
func AffectedResult(rows int64) WriteResult { return WriteResult{affected: rows} }

// SplitResult returns the result of a write without deletes, if the database says which rows are new.
func SplitResult(inserted, updated int64) WriteResult {
	return WriteResult{affected: inserted + updated, inserted: inserted, updated: updated}
}

// Plus adds the results of two parts of a write.
func (r WriteResult) Plus(more WriteResult) WriteResult {
	return WriteResult{
		affected: r.affected + more.affected, deleted: r.deleted + more.deleted, inserted: r.inserted + more.inserted,
		updated: r.updated + more.updated, unwritten: r.unwritten + more.unwritten, undeleted: r.undeleted + more.undeleted, beside: r.beside || more.beside,
	}
}

// OfRows returns the result of a write of some rows, with those that the database did not write without an error: triggers, rules, and in
// SQLite constraints with ON CONFLICT IGNORE ask for that.
func (r WriteResult) OfRows(w *TableWrite) WriteResult {
	if missing := int64(len(w.Rows)) - r.affected; missing > 0 && writesAll(w) {
		r.unwritten = missing
	}
	return r
}

// writesAll reports whether the database counts as many rows as it is sent: it inserts each, or changes the one that is there.
func writesAll(w *TableWrite) bool {
	if w.name == modeInsert || w.name == modeReplace {
		return true
	}
	values := slices.DeleteFunc(slices.Clone(w.Columns), func(column string) bool { return slices.Contains(w.Key, column) })
	return w.upsert && w.sequence == "" && (len(values) > 0 || w.HasChildren())
}

// IsPlain reports whether a settled write only has to insert its rows together.
func (w *TableWrite) IsPlain() bool {
	return !w.IsStaged() && len(w.Rows) > 0 && len(w.Deletes) == 0 && !w.HasChildren() && !w.nests && w.table == nil && !w.lenient && w.where == nil
}

// ToolResult returns the result of a write.
func (w *TableWrite) ToolResult(written WriteResult) interpreter.ToolResult {
	result := RowsAffected(written.affected)
	if w.hardDelete != "" || w.IsStaged() && w.Do == interpreter.StagingPublish {
		result.Data = expression.Of(map[string]any{"rows_affected": int(written.affected), "rows_deleted": int(written.deleted)})
	}
	return withFigures(w, result, written)
}

// EarlierWriteResult returns the result of a write that the ledger has already, with the number of its rows.
func (w *TableWrite) EarlierWriteResult(rows int64) interpreter.ToolResult {
	return withFigures(w, RowsAffected(rows), AffectedResult(rows))
}

// withFigures adds the row counts to a result, and what was left out of the write if its fields allow that.
func withFigures(w *TableWrite, result interpreter.ToolResult, written WriteResult) interpreter.ToolResult {
	result.Meta.Rows, result.Meta.Notes = figuresOf(w, written), slices.Concat(w.misspelt, w.notes)
	leftOut := w.leftOut
	leftOut.UnwrittenRows += int(written.unwritten)
	leftOut.UndeletedRows += int(written.undeleted)
	if w.below != nil {
		result.Meta.Rows, leftOut = result.Meta.Rows.Plus(w.below.rows), *leftOut.Plus(&w.below.leftOut)
		result.Meta.Notes = append(result.Meta.Notes, w.below.notes...)
	}
	if w.table != nil || w.contract != (contract{freeze, freeze, freeze}) || leftOut != (interpreter.RowCounts{}) {
		result.Meta.LeftOut = &leftOut
	}
	return result
}

// figuresOf returns the figures of a write. Staged rows are counted when they are published.
func figuresOf(w *TableWrite, written WriteResult) *interpreter.Rows {
	table := w.target
	table.Rejected, table.Discarded = int64(w.leftOut.RejectedRows), int64(w.leftOut.DiscardedRows)
	if stages := written.beside || w.IsStaged() && w.replace; !stages || w.Do == interpreter.StagingPublish {
		table.Written, table.Deleted, table.Inserted, table.Updated = written.affected, written.deleted, written.inserted, written.updated
		if !w.upsert && !w.replace {
			table.Inserted = written.affected
		}
	}
	return table.ToRows()
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
		return nil, tool.Errorf("%q is not a name", text)
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

// QuotedTable returns the table as SQL has it.
func (t *TableName) QuotedTable() string {
	return strings.Join(lists.Map(t.Table, quoteName), ".")
}
