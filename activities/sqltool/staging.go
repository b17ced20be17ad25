package sqltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// The tables of rows that are published together.
const (
	// StagingTable has a row for each call or loop that stages rows. The row stays, so that
	// rows are published once and the number of dropped ones is known.
	StagingTable = "reprise_staging"
	// StagedTable records what each part of a call or loop has staged.
	StagedTable = "reprise_staged"
	// stagingPrefix begins the names of the tables that are beside targets.
	stagingPrefix = "reprise_staging_"
)

// The columns of a table beside a target that its target does not have.
const (
	partColumn  = "reprise_part"
	roundColumn = "reprise_round"
	orderColumn = "reprise_order"
)

// Types of errors of staged rows.
const (
	typeEmptyReplace = "empty_replace"
	typeMaxDelete    = "max_delete"
	typeStagingLost  = "staging_lost"
	typeOvertaken    = "overtaken"
)

// How long staged rows stay to which nobody adds, in seconds: if another call begins to stage
// rows of the same table, and otherwise.
const (
	idleBesideOther = 3600
	idleUnwritten   = 24 * 3600 // where nothing has been staged yet, beside another call too
	idleForever     = 7 * 24 * 3600
)

// staging is how the rows of a write are published together with those of its call or loop.
type staging struct {
	*interpreter.Staging // nil where the write stages nothing
	deleteMissing        bool
	maxDelete            float64
	allowEmpty           bool
	where                *bounds
	stagedBelow
}

// bounds are the rows that are replaced, or deleted if they were not read: those whose column equals a value, or is
// at least from and less than to.
type bounds struct {
	column           string
	equals, from, to any // nil for none
}

func (b *bounds) boundsText() string {
	if b == nil {
		return ""
	}
	return expression.Text([]any{b.column, b.equals, b.from, b.to})
}

// limit is one comparison that bounds make with their column.
type limit struct {
	operator string // of SQL
	value    any
	// holds compares instants as texts.
	holds func(given, value string) bool
}

// boundLimits returns the comparisons that a row has to satisfy.
func (b *bounds) boundLimits() []limit {
	all := []limit{
		{" = ", b.equals, func(given, value string) bool { return given == value }},
		{" >= ", b.from, func(given, value string) bool { return given >= value }},
		{" < ", b.to, func(given, value string) bool { return given < value }},
	}
	return slices.DeleteFunc(all, func(one limit) bool { return one.value == nil })
}

// IsStaged reports whether what is written is published with the rest of its call or loop.
func (s *staging) IsStaged() bool { return s.Staging != nil }

// partNumber returns the part of the write; a call without a loop has one.
func (s *staging) partNumber() int64 {
	if s.Part == nil {
		return -1
	}
	return int64(*s.Part)
}

// StagingTx is a transaction in which rows are staged and published.
type StagingTx interface {
	RejectingTx
	// RequireAlone returns ErrShared if other writes use the table.
	RequireAlone() error
	// DescribeTarget describes the table of a write.
	DescribeTarget(ctx context.Context, w *TableWrite) (*TargetTable, error)
	// HoldWriters prevents others from writing to the table until the transaction ends, but not
	// from reading it. It waits 5 s at most.
	HoldWriters(ctx context.Context, w *TableWrite) error
	// NewerRowTables are the tables of newer rows whose names begin and end as TableWrite.NewerNames says, by the parts of
	// their names. One with an untrusted owner is an error.
	NewerRowTables(ctx context.Context, w *TableWrite) ([][]string, error)
	// ShareTable lets those add to a table that may write to the table of the write.
	ShareTable(ctx context.Context, w, table *TableWrite) error
	// TablesBehind are the tables beside that of the write whose names begin with its name and _, sorted.
	TablesBehind(ctx context.Context, w *TableWrite) ([]TableColumns, error)
	// LockExclusively gives the transaction exclusive use of a table of newer rows, by the parts of its name; it returns false
	// if others use it.
	LockExclusively(ctx context.Context, table []string) (bool, error)
}

// TargetTable describes the target of staged rows, as far as the staging table must resemble it.
type TargetTable struct {
	Schema string // "" where there is one
	// NoSchema says that the table's schema does not exist.
	NoSchema bool
	Refused  string // why rows of it cannot be replaced, "" if they can
	Columns  []TargetColumn
	Checks   []string // clauses of CREATE TABLE
	Options  string   // behind CREATE TABLE
	// Referencing are the other tables with foreign keys to it.
	Referencing     []string
	SelfReferencing bool
	// HasTriggers says that a trigger, or in SQLite a constraint with ON CONFLICT, may keep rows from being written or deleted.
	HasTriggers bool
}

// AddReference reads the name of a table with a foreign key to this one, and whether it
// is this one itself.
func (i *TargetTable) AddReference(scan func(...any) error) error {
	var (
		table string
		own   bool
	)
	err := scan(&table, &own)
	if own {
		i.SelfReferencing = true
	} else {
		i.Referencing = append(i.Referencing, table)
	}
	return err
}

// TargetColumn is a column of that table, as CREATE TABLE defines it.
type TargetColumn struct {
	Name     string
	Type     string // with its collation
	NotNull  bool
	Default  string // expression, "" for none
	ReadOnly bool   // the database makes the value itself
}

// StagingTables returns the tables that staged rows need.
func (d *Dialect) StagingTables() []NewTable {
	return []NewTable{
		{StagingTable, []string{
			"CREATE TABLE IF NOT EXISTS " + StagingTable + " (id " + d.Name + " PRIMARY KEY, target text NOT NULL, beside text, newer text, replaces text NOT NULL, started_at " +
				d.Time + " NOT NULL, dropped_at " + d.Time + ", published_at " + d.Time +
				", rows_before bigint, rows_affected bigint NOT NULL DEFAULT 0, rows_deleted bigint NOT NULL DEFAULT 0)",
		}},
		{StagedTable, []string{
			"CREATE TABLE IF NOT EXISTS " + StagedTable + " (id " + d.Name + " NOT NULL, part bigint NOT NULL, round bigint NOT NULL, staged bigint NOT NULL DEFAULT 0, " +
				"columns text NOT NULL DEFAULT '[]', written_at " + d.Time + " NOT NULL, PRIMARY KEY (id, part))",
		}},
	}
}

func whereKeys() []playbook.Field {
	return []playbook.Field{
		{Name: "column", Kind: playbook.KindLiteral, Unquoted: true, Required: true, Doc: "The column that decides which rows are replaced, or deleted if they were not read."},
		{Name: "equals", Kind: playbook.KindValue, Doc: "The value of the column in these rows, such as a tenant. Cannot be combined with from and to."},
		{Name: "from", Kind: playbook.KindValue, Doc: "The smallest value of the column in these rows, inclusive; without it there is no lower bound."},
		{Name: "to", Kind: playbook.KindValue, Doc: "The upper bound of the column in these rows, exclusive; without it there is no upper bound."},
	}
}

// defaultDeleted is the share of a table that delete_missing may delete without max_delete.
const defaultDeleted = 0.5

// readStaging reads what is published at the end, and how.
func (w *TableWrite) readStaging(in interpreter.ToolInput) (err error) {
	s := &w.staging
	if s.deleteMissing, err = tool.BoolField(in, "delete_missing", false); err != nil {
		return err
	}
	if s.allowEmpty, err = tool.BoolField(in, "allow_empty", false); err != nil {
		return err
	}
	if err := w.readWhere(in); err != nil {
		return err
	}
	s.maxDelete = defaultDeleted
	if share := in.Fields["max_delete"].Data; share != nil {
		number, isNumber := numberOf(share)
		if isNumber {
			s.maxDelete, _ = number.Float64()
		}
		if !isNumber || s.maxDelete < 0 || s.maxDelete > 1 {
			return tool.ConfigErrorf("step %q: max_delete is %s; it must be a share of the table from 0 to 1", in.Step, expression.Text(share))
		}
	}
	for _, one := range []struct {
		given bool
		needs bool
		says  string
	}{
		{s.deleteMissing, w.upsert, "delete_missing needs mode upsert: rows that were not read are identified by their key"},
		{s.where != nil, w.replace || s.deleteMissing, "replace_where needs mode replace or delete_missing: true"},
		{in.Fields["max_delete"].Data != nil, s.deleteMissing, "max_delete needs delete_missing: true"},
		{s.allowEmpty, w.replace || s.deleteMissing, "allow_empty needs mode replace or delete_missing: true"},
	} {
		if one.given && !one.needs {
			return tool.ConfigErrorf("step %q: %s", in.Step, one.says)
		}
	}
	if !w.replace && !s.deleteMissing {
		return nil
	}
	if in.Staging == nil {
		word := "mode replace"
		if s.deleteMissing {
			word = "delete_missing"
		}
		return tool.ConfigErrorf("step %q: %s works only in a sink, whose rows are published when the call or loop has completed; "+
			"use it in the sink of the step that reads the rows", in.Step, word)
	}
	s.Staging = in.Staging
	if s.Do != "" { // known by the ID of its call or loop
		w.Operation = ""
	}
	return nil
}

// readWhere reads replace_where.
func (s *staging) readWhere(in interpreter.ToolInput) error {
	fields, err := tool.MapField(in, "replace_where")
	if err != nil || fields == nil {
		return err
	}
	column := expression.Text(fields["column"])
	if fields["column"] == nil || column == "" {
		return tool.ConfigErrorf("step %q: replace_where needs column, the column that decides which rows are replaced", in.Step)
	}
	where := &bounds{column: column, equals: fields["equals"], from: fields["from"], to: fields["to"]}
	for _, name := range playbook.SortedKeys(fields) {
		switch fields[name].(type) {
		case []any, map[string]any:
			return tool.ConfigErrorf("step %q: %s of replace_where must be a single value, not a %s", in.Step, name, expression.TypeName(fields[name]))
		case nil: // all rows would be replaced on that side
			return tool.ConfigErrorf("step %q: %s of replace_where is nil; remove it if there is no bound", in.Step, name)
		}
	}
	switch limits := where.boundLimits(); {
	case len(limits) == 0:
		return tool.ConfigErrorf("step %q: replace_where needs equals, from or to; without it all rows are replaced", in.Step)
	case where.equals != nil && len(limits) > 1:
		return tool.ConfigErrorf("step %q: replace_where has equals together with from or to; use one of the two", in.Step)
	}
	s.where = where
	return nil
}

// StoreRows does what a write requests to its table and its staged rows. settled is what is left to write. The
// returned write counts what was left out.
func StoreRows(ctx context.Context, tx StagingTx, w, settled *TableWrite) (WriteResult, *TableWrite, error) {
	if settled.below != nil { // of a transaction before
		*settled.below = childFigures{}
	}
	if !w.IsStaged() {
		written, err := WriteRows(ctx, tx, settled)
		if err == nil && !written.leftNothing(settled) {
			err = recordNewer(ctx, tx, settled)
		}
		return written, settled, err
	}
	s := &stage{tx: tx, write: w}
	switch w.Do {
	case interpreter.StagingBegin:
		return WriteResult{}, w, s.beginRound(ctx)
	case interpreter.StagingPublish:
		written, err := s.publishRows(ctx)
		return written, w, err
	}
	if err := s.enterPart(ctx, false); err != nil {
		return WriteResult{}, w, err
	}
	if w.Do == interpreter.StagingSettle {
		return WriteResult{}, w, s.leavePart(ctx, 0, nil)
	}
	if w.replace {
		return s.writeRows(ctx, settled)
	}
	settled, err := s.withoutNewer(ctx, settled)
	if err != nil {
		return WriteResult{}, settled, err
	}
	written, err := WriteRows(ctx, tx, settled)
	if err != nil {
		return written, settled, err
	}
	if err := s.writeKeys(ctx, settled); err != nil {
		return written, settled, err
	}
	return written, settled, recordNewer(ctx, tx, settled)
}

// leftNothing reports whether a write of mode insert_or_ignore left all existing rows
// unchanged.
func (written WriteResult) leftNothing(w *TableWrite) bool {
	return w.name == modeInsertOrIgnore && written == WriteResult{}
}

// stage is what a call or loop has staged, in a transaction.
type stage struct {
	tx    StagingTx
	write *TableWrite
	// beside is the staging table, nil before it was created.
	beside *TableWrite
	// newer is the table with the keys that other loads have written since this one began to read; nil if there is
	// none.
	newer  *TableWrite
	staged int64 // rows of the part
	// columns are the columns that rows of the part have had.
	columns []string
	// published is the result of publishing, nil before.
	published *WriteResult
	fresh     bool // nothing was known of the call or loop before
	// before is the number of rows before the first write, if rows that were not read are deleted; nil if unknown.
	before *int64
	of     *childTable // whose rows are staged, nil for those above all others
	below  []*stage    // of the tables of children, once the part has been entered
}

func stagingError(kind, format string, args ...any) error {
	err := tool.Errorf(format, args...)
	err.Type = kind
	return err
}

// openRound finds or creates the record of the call or loop and locks it until the transaction
// ends. alone makes the lock exclusive.
func (s *stage) openRound(ctx context.Context, alone bool) error {
	d, id := s.tx.Dialect(), s.write.ID
	lock := d.ShareRow
	if alone {
		lock = d.LockRow
	}
	var (
		known              bool
		beside, newer      *string
		replaces           string
		dropped, published bool
		written            WriteResult
	)
	find := func() error {
		return s.tx.Query(ctx, "SELECT beside, newer, replaces, dropped_at IS NOT NULL, published_at IS NOT NULL, rows_before, rows_affected, rows_deleted FROM "+
			StagingTable+" WHERE id = $1"+lock, []any{id}, func(scan func(...any) error) error {
			known = true
			return scan(&beside, &newer, &replaces, &dropped, &published, &s.before, &written.affected, &written.deleted)
		})
	}
	if err := find(); err != nil {
		return err
	}
	if !known {
		n, err := s.tx.Exec(ctx, "INSERT INTO "+StagingTable+" (id, target, replaces, started_at) VALUES ($1, $2, $3, "+d.Now+") ON CONFLICT DO NOTHING",
			id, s.write.QuotedTable(), s.boundsText())
		if err != nil {
			return err
		}
		s.fresh = n > 0
		if err := find(); err != nil {
			return err
		}
	}
	switch {
	case published:
		s.published = &written
		return nil
	case dropped:
		return stagingError(typeStagingLost, "the staged rows of this call for table %q were dropped, because none was added for more than an hour "+
			"while another run wrote to the table. Run the playbook again", s.write.Shown)
	case replaces != s.boundsText():
		return tool.Errorf("replace_where of table %q differs from another write of the same call or loop (%s, and %s now): "+
			"it must not depend on the element", s.write.Shown, replaces, s.boundsText())
	}
	return s.readNames(beside, newer)
}

// readNames reads the names of the tables with the rows, and with the keys of what is newer.
func (s *stage) readNames(beside, newer *string) error {
	if newer != nil {
		parts, err := splitName(*newer)
		if err != nil {
			return err
		}
		s.newer = s.write.newerOf(s.tx.Dialect(), s.write.ID, parts[:len(parts)-1]...)
	}
	if beside == nil {
		return nil
	}
	parts, err := splitName(*beside)
	s.beside = s.write.besideIn(parts[:len(parts)-1]...)
	return err
}

// besideIn returns a write to the table with the rows.
func (w *TableWrite) besideIn(schema ...string) *TableWrite {
	beside := *w
	beside.Table = append(slices.Clone(schema), stagingPrefix+w.ID)
	beside.mode = modeOf(modeInsert)
	return &beside
}

// enterOwnPart begins what the part does in its round: what rounds before have staged is dropped.
func (s *stage) enterOwnPart(ctx context.Context, alone bool) error {
	if err := s.openRound(ctx, alone); err != nil || s.published != nil && alone {
		return err
	}
	if s.published != nil {
		return s.overtakenError("the rows of its call or loop have been published")
	}
	if s.fresh { // of a loop without an iteration
		if err := s.beginReading(ctx); err != nil {
			return err
		}
	}
	if err := s.countBefore(ctx); err != nil {
		return err
	}
	w := s.write
	var (
		round   int64
		columns string
	)
	err := s.tx.Query(ctx, "INSERT INTO "+StagedTable+" (id, part, round, written_at) VALUES ($1, $2, $3, "+s.tx.Dialect().Now+
		") ON CONFLICT (id, part) DO UPDATE SET written_at = excluded.written_at RETURNING round, staged, columns",
		[]any{w.ID, w.partNumber(), int64(w.Round)}, func(scan func(...any) error) error {
			return scan(&round, &s.staged, &columns)
		})
	if err != nil {
		return err
	}
	if round > int64(w.Round) {
		return s.overtakenError("its call has started again")
	}
	if round < int64(w.Round) {
		return s.forgetPart(ctx)
	}
	return json.Unmarshal([]byte(columns), &s.columns)
}

// countBefore records how many rows the table has before the first write, for delete_missing: if all
// keys change, all old rows are deleted, however many new ones there are by then.
func (s *stage) countBefore(ctx context.Context) error {
	if !s.write.deleteMissing || s.before != nil {
		return nil
	}
	s.before = new(int64)
	columns, err := s.tx.ReadColumns(ctx, s.write)
	if len(columns) == 0 || err != nil {
		return err
	}
	within, err := s.withinCondition(ctx, s.write.where, columns, thereName+".", true)
	if err != nil {
		return err
	}
	if *s.before, err = s.countRows(ctx, s.write.QuotedTable(), within); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, "UPDATE "+StagingTable+" SET rows_before = $2 WHERE id = $1", s.write.ID, *s.before)
	return err
}

func (s *stage) overtakenError(why string) error {
	return stagingError(typeOvertaken, "this write to table %q came too late, because %s; nothing was written", s.write.Shown, why)
}

// forgetPart deletes the rows that the part staged in earlier rounds.
func (s *stage) forgetPart(ctx context.Context) error {
	w := s.write
	if s.staged > 0 && s.beside != nil {
		if _, err := s.tx.Exec(ctx, "DELETE FROM "+s.beside.QuotedTable()+" WHERE "+partColumn+" = $1 AND "+roundColumn+" < $2",
			w.partNumber(), int64(w.Round)); err != nil {
			return err
		}
	}
	s.staged, s.columns = 0, nil
	return nil
}

// leavePart keeps how many rows the part has staged, and which columns they had.
func (s *stage) leavePart(ctx context.Context, rows int64, columns []string) error {
	for _, column := range columns {
		s.columns = appendNew(s.columns, column)
	}
	slices.Sort(s.columns)
	text, err := json.Marshal(s.columns)
	if err != nil {
		return err
	}
	w := s.write
	_, err = s.tx.Exec(ctx, "UPDATE "+StagedTable+" SET round = $3, staged = $4, columns = $5 WHERE id = $1 AND part = $2",
		w.ID, w.partNumber(), int64(w.Round), s.staged+rows, string(text))
	return err
}

// DescribeAction is what the write does, as the beginning of a message.
func (w *TableWrite) DescribeAction() string {
	if w.changing != nil {
		const shown = 300
		return fmt.Sprintf("changing table %q by %s: ", w.Shown, tool.CutText(w.changing.Statement, shown))
	}
	if w.IsStaged() && w.Do == interpreter.StagingPublish {
		return fmt.Sprintf("publishing the rows of table %q: ", w.Shown)
	}
	return fmt.Sprintf("writing %d rows to table %q: ", len(w.Rows), w.Shown)
}

// InWordsOfTarget replaces the name of the staging table in a message by that of its target.
func (w *TableWrite) InWordsOfTarget(message string) string {
	return strings.ReplaceAll(message, stagingPrefix+w.ID, w.Table[len(w.Table)-1])
}

// writeRows writes the rows of the write beside their table.
func (s *stage) writeRows(ctx context.Context, settled *TableWrite) (WriteResult, *TableWrite, error) {
	if len(settled.Rows) == 0 {
		return WriteResult{}, settled, s.leavePart(ctx, 0, nil)
	}
	for _, column := range settled.tableColumns { // the table beside would take them
		if column.ReadOnly && slices.Contains(settled.Columns, column.Name) {
			return WriteResult{}, settled, tool.Errorf("%scolumn %q of table %q cannot be written: the database generates its values; remove it from args",
				settled.placeOf(column.Name, false), column.Name, settled.Shown)
		}
	}
	if err := s.prepareBeside(ctx, settled); err != nil {
		return WriteResult{}, settled, err
	}
	if err := s.holdInstants(settled, settled.tableColumns); err != nil {
		return WriteResult{}, settled, err
	}
	beside := settled.besideIn(s.beside.Table[:len(s.beside.Table)-1]...)
	beside.numberRows(settled.Rows)
	written, err := WriteRows(ctx, s.tx, beside)
	if err != nil {
		return written, beside, err
	}
	written.beside = true
	return written, beside, s.leavePart(ctx, written.affected, settled.Columns)
}

// numberRows gives rows their part, round and place.
func (w *TableWrite) numberRows(rows []map[string]any) {
	w.Columns = slices.Concat(w.Columns, []string{partColumn, roundColumn}, placeColumns(w))
	w.Rows = make([]map[string]any, len(rows))
	for i, row := range rows {
		w.Rows[i] = maps.Clone(row)
		w.Rows[i][partColumn], w.Rows[i][roundColumn] = int(w.partNumber()), w.Round
		placeRow(w, w.Rows[i], w.OriginalNumber(i))
	}
}

// withoutOwn returns a row without its part, round and place.
func withoutOwn(row map[string]any) map[string]any {
	own := maps.Clone(row)
	for _, column := range []string{partColumn, roundColumn, placeColumn, parentColumn} {
		delete(own, column)
	}
	return own
}

// writeKeys records the keys of all rows that were read, also of those that are not written: only rows that were
// not read are missing. A key that the column cannot hold is not in the table either.
func (s *stage) writeKeys(ctx context.Context, settled *TableWrite) error {
	read := s.write.Rows
	if len(settled.tableColumns) == 0 { // there is no table that anything could be missing in
		read = nil
	}
	if len(read) == 0 {
		return s.leavePart(ctx, 0, nil)
	}
	if err := s.prepareBeside(ctx, settled); err != nil {
		return err
	}
	if err := s.holdInstants(s.write, settled.tableColumns); err != nil {
		return err
	}
	columns := s.keyColumns()
	keys := s.write.besideIn(s.beside.Table[:len(s.beside.Table)-1]...)
	keys.tableColumns = settled.tableColumns
	keys.Columns, keys.numbers, keys.known, keys.chunks, keys.rejection = columns, nil, nil, nil, rejection{}
	keys.lenient, keys.uniform, keys.Deletes, keys.State = true, true, nil, nil
	rows, readers := make([]map[string]any, 0, len(read)), settled.columnReaders(s.tx.Dialect(), columns)
	for _, row := range read {
		key := make(map[string]any, len(columns)+2)
		for _, column := range columns {
			key[column] = row[column]
		}
		if fitRow(key, readers) {
			rows = append(rows, key)
		}
	}
	keys.numberRows(rows)
	keys.readBytes(settled.tableColumns)
	written, err := WriteRows(ctx, s.tx, keys)
	if err != nil {
		return err
	}
	return s.leavePart(ctx, written.affected, columns)
}

// keyColumns lists what is recorded about each row that was read: its key, and the columns that decide whether it is
// within bounds.
func (s *stage) keyColumns() []string {
	if where := s.write.where; where != nil {
		return appendNew(s.write.Key, where.column)
	}
	return s.write.Key
}

// holdInstants refuses rows outside of bounds that are times, of a column whose times are texts.
func (s *stage) holdInstants(w *TableWrite, columns []Column) error {
	where := s.write.where
	if where == nil || !s.tx.Dialect().comparesInstants(columnNamed(columns, where.column)) {
		return nil
	}
	for i, row := range w.Rows {
		if !w.isUnfit(i) && !where.holdsInstant(row[where.column]) {
			return w.outsideError(i)
		}
	}
	return nil
}

// prepareBeside creates the staging table, or adapts it to the columns of its target.
func (s *stage) prepareBeside(ctx context.Context, settled *TableWrite) error {
	if s.beside == nil {
		if err := s.makeBeside(ctx, settled.tableColumns); err != nil {
			return err
		}
	}
	columns, err := s.followColumns(ctx, settled.tableColumns)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		return s.lostError(s.staged, 0)
	}
	_, err = s.tx.ReadColumns(ctx, s.beside) // a transaction knows one table
	return err
}

// followColumns adapts the staging table to its target: it adds the columns that were added, and widens those that
// were widened.
func (s *stage) followColumns(ctx context.Context, target []Column) ([]Column, error) {
	there, err := s.tx.ReadColumns(ctx, s.beside)
	if err != nil || len(there) == 0 || s.write.deleteMissing {
		return there, err
	}
	changes, err := s.changesBeside(ctx, target, there)
	if len(changes) == 0 || err != nil {
		return there, err
	}
	return there, s.tx.ChangeSchema(ctx, s.beside, func() error { return s.beside.runStatements(ctx, s.tx, changes) })
}

// changesBeside returns the statements that adapt the staging table.
func (s *stage) changesBeside(ctx context.Context, target, there []Column) (changes []interpreter.DDL, err error) {
	var (
		d         = s.tx.Dialect()
		inspected *TargetTable
	)
	for _, column := range target {
		switch at := slices.IndexFunc(there, func(c Column) bool { return c.Name == column.Name }); {
		case at < 0:
			if inspected == nil {
				if inspected, err = s.inspectTarget(ctx); err != nil {
					return nil, err
				}
			}
			of := slices.IndexFunc(inspected.Columns, func(c TargetColumn) bool { return c.Name == column.Name })
			if of < 0 {
				continue // it is gone again
			}
			changes = append(changes, s.beside.addColumn(d, inspected.Columns[of].columnDefinition()))
		case there[at].Type != column.Type && d.Widen != "":
			changes = append(changes, s.beside.widenColumn(d, column.Name, column.Type))
		}
	}
	return changes, nil
}

// columnDefinition returns the column's definition in a staging table: it has the target's default and NOT NULL.
func (c TargetColumn) columnDefinition() string {
	definition := quoteName(c.Name) + " " + c.Type
	if c.ReadOnly {
		return definition
	}
	if c.Default != "" {
		definition += " DEFAULT " + c.Default
	}
	if c.NotNull {
		definition += " NOT NULL"
	}
	return definition
}

// makeBeside makes the table beside, unless another write of the call or loop has made it.
func (s *stage) makeBeside(ctx context.Context, columns []Column) error {
	w := s.write
	target, err := s.inspectTarget(ctx)
	if err != nil {
		return err
	}
	var schema []string
	if target.Schema != "" {
		schema = []string{target.Schema}
	}
	beside := w.besideIn(schema...)
	n, err := s.tx.Exec(ctx, "UPDATE "+StagingTable+" SET beside = $2 WHERE id = $1 AND beside IS NULL", w.ID, beside.QuotedTable())
	if err != nil {
		return err
	}
	s.beside = beside
	if n == 0 {
		return nil
	}
	create, err := s.createStatement(ctx, target, columns)
	if err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, create)
	return err
}

// inspectTarget describes the target, or says why its rows cannot be published together.
func (s *stage) inspectTarget(ctx context.Context) (*TargetTable, error) {
	w := s.write
	target, err := s.tx.DescribeTarget(ctx, w)
	if err != nil {
		return nil, err
	}
	word := "mode replace"
	if w.deleteMissing {
		word = "delete_missing"
	}
	if target.Refused != "" {
		return nil, tool.Errorf("%s cannot be used with table %q: %s", word, w.Shown, target.Refused)
	}
	if w.replace && len(w.Key) == 0 && len(target.Referencing) > 0 {
		return nil, tool.Errorf("foreign keys of %s reference table %q, so its rows cannot all be deleted; add key, and only differences are written",
			strings.Join(target.Referencing, ", "), w.Shown)
	}
	if where := w.where; where != nil && !slices.ContainsFunc(target.Columns, func(c TargetColumn) bool { return c.Name == where.column }) {
		columns := lists.Map(target.Columns, func(c TargetColumn) Column { return Column{Name: c.Name, Type: c.Type} })
		return nil, w.lacksColumn(columns, where.column, "replace_where: ")
	}
	return target, nil
}

// whereCheck is the constraint that a row is within the bounds of the replaced rows.
const whereCheck = "reprise_replace_where"

// createStatement returns the statement that creates the staging table. It has the target's constraints
// for single rows, but not those between rows.
func (s *stage) createStatement(ctx context.Context, target *TargetTable, there []Column) (string, error) {
	var (
		w       = s.write
		columns []string
		d       = s.tx.Dialect()
	)
	for _, column := range target.Columns {
		if w.deleteMissing && !slices.Contains(s.keyColumns(), column.Name) {
			continue
		}
		definition := quoteName(column.Name) + " " + column.Type
		if w.replace {
			definition = column.columnDefinition()
		}
		columns = append(columns, definition)
	}
	columns = append(columns, partColumn+" bigint NOT NULL", roundColumn+" bigint NOT NULL", orderColumn+" "+d.Serial+" PRIMARY KEY")
	columns = append(columns, lists.Map(placeColumns(w), func(column string) string { return column + " text NOT NULL" })...)
	options := ""
	if w.replace {
		columns, options = append(columns, target.Checks...), target.Options
	}
	if w.where != nil {
		within, err := s.withinCondition(ctx, w.where, there, "", false) // times that are texts are compared before they are written
		if err != nil {
			return "", err
		}
		columns = append(columns, "CONSTRAINT "+whereCheck+" CHECK ("+within+")")
	}
	create := "CREATE TABLE " + s.beside.QuotedTable() + " (" + strings.Join(columns, ", ") + ")" + options
	if options != "" { // which knows few types
		create = strings.ReplaceAll(create, " bigint NOT NULL", " INTEGER NOT NULL")
	}
	return create, nil
}

// withinCondition returns the condition that a row is among those that are replaced; "true" where all are. The database itself
// writes the values as literals. Without instants bounds that are times are left out where the column has texts.
func (s *stage) withinCondition(ctx context.Context, where *bounds, columns []Column, alias string, instants bool) (string, error) {
	d := s.tx.Dialect()
	if where == nil {
		return "true", nil
	}
	of, column := columnNamed(columns, where.column), alias+quoteName(where.column)
	condition := column + " IS NOT NULL"
	for _, one := range where.boundLimits() {
		if at, offset, isTime := instantBound(one.value); isTime && d.comparesInstants(of) {
			if instants {
				condition += " AND " + d.InstantOf(column, offset) + one.operator + d.InstantLiteral(at)
			}
			continue
		}
		value, cast, problem := d.readBound(of, one.value)
		if problem != "" {
			return "", tool.Errorf("replace_where of table %q bounds column %q, of type %s, by rows%s, which %s",
				s.write.Shown, where.column, of.Type, limitWords[one.operator]+strconv.Quote(expression.Text(one.value)), problem)
		}
		err := s.tx.Query(ctx, d.QuoteLiteral, []any{d.Literal(value)}, func(scan func(...any) error) error {
			var literal string
			err := scan(&literal)
			condition += " AND " + column + one.operator + literal + cast
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return condition, nil
}

// limitWords are the comparisons of bounds, for messages.
var limitWords = map[string]string{" = ": " that are ", " >= ": " from ", " < ": " up to but without "}

// outsideError returns the error of a row outside the bounds of the replaced rows.
func (w *TableWrite) outsideError(row int) error {
	where := w.where
	limits := ""
	for _, one := range where.boundLimits() {
		limits += limitWords[one.operator] + expression.Text(one.value)
	}
	value := "nil"
	if given := w.Rows[row][where.column]; given != nil {
		value = fmt.Sprintf("%q", tool.CutText(expression.Text(given), 200))
	}
	return stagingError("outside_replace_where", "%s: column %q is %s, and replace_where is limited to rows%s", w.RowText(w.OriginalNumber(row)), where.column, value, limits)
}

// lostError returns the error of rows that are not there any more.
func (s *stage) lostError(written, there int64) error {
	return stagingError(typeStagingLost, "%d rows were staged for table %q, but %d were found, so nothing was published. Run the playbook again", written, s.write.Shown, there)
}

// dropLeftOver drops what calls have staged that have ended without publishing it.
func (s *stage) dropLeftOver(ctx context.Context) error {
	d := s.tx.Dialect()
	idle := func(seconds int) string {
		ago := d.Ago(seconds)
		return "started_at < " + ago + " AND NOT EXISTS (SELECT 1 FROM " + StagedTable + " AS s WHERE s.id = " + StagingTable + ".id AND s.written_at >= " + ago + ")"
	}
	begun := "EXISTS (SELECT 1 FROM " + StagedTable + " AS s WHERE s.id = " + StagingTable + ".id)"
	left := "dropped_at IS NULL AND published_at IS NULL AND (target = $2 AND (" + idle(idleBesideOther) + " AND " + begun + " OR " + idle(idleUnwritten) + ") OR " + idle(idleForever) + ")"
	var found []leftOver
	err := s.tx.Query(ctx, "SELECT id, beside, newer FROM "+StagingTable+" WHERE id <> $1 AND "+left+d.LockFree,
		[]any{s.write.ID, s.write.QuotedTable()}, func(scan func(...any) error) error {
			var one leftOver
			err := scan(&one.id, &one.beside, &one.newer)
			found = append(found, one)
			return err
		})
	if err != nil {
		return err
	}
	for _, one := range found {
		// A table that another write is using stays for now. If the update fails, this write still succeeds.
		_ = s.tx.TryPart(ctx, func() error {
			n, err := s.tx.Exec(ctx, "UPDATE "+StagingTable+" SET dropped_at = "+d.Now+" WHERE id = $1 AND "+left, one.id, s.write.QuotedTable())
			if n == 0 || err != nil {
				return err
			}
			return s.tx.ChangeSchema(ctx, s.write.besideIn(), func() error { return one.dropTables(ctx, s.tx) })
		})
	}
	return nil
}

// leftOver is what a call or loop has staged without publishing it.
type leftOver struct {
	id            string
	beside, newer *string
}

// dropTables drops its tables, unless somebody is just adding to one of them.
func (l leftOver) dropTables(ctx context.Context, tx StagingTx) error {
	if l.newer != nil {
		table, err := splitName(*l.newer)
		if err != nil {
			return err
		}
		if free, err := tx.LockExclusively(ctx, table); !free || err != nil {
			return errors.Join(err, errInUse)
		}
	}
	for _, table := range []*string{l.beside, l.newer} {
		if table == nil {
			continue
		}
		if _, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+*table); err != nil {
			return err
		}
	}
	return nil
}

// errInUse says that a left-over table stays for now, because a write uses it.
var errInUse = errors.New("a write uses it")
