package sqltool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// A call or loop whose rows are published together reads for a while. What other loads write to its table in the
// meantime is newer than what it has read (docs/concepts/written-once.md#concurrent-loads-of-a-table): before it reads,
// it makes a table beside its target, and each other write to the target adds there, in its own transaction, the keys
// of the rows that it has written or deleted.
//
// All writes of table sinks take their locks in one order. First comes the name of the table. A write that only adds and changes rows
// shares it with others; one that begins to read, publishes, deletes what was not read, or changes a table, has it alone, and waits for it before
// it has locked anything else. Only the latter take locks that keep others from a whole table. Then come the ledger (notes, operation keys, the
// state, known rows), what is staged (the call or loop, the part), the rows of the table in the order of their key, and those of the tables
// beside it.

// ErrShared is the error of a write that finds out on its way that it has to have its table alone. It is undone, and made again so.
var ErrShared = errors.New("the table is shared with other writes")

// newerPrefix begins the names of the tables with the keys of what is newer.
const newerPrefix = "reprise_newer_"

// Additional columns of such a table, besides the key.
const (
	goneColumn = "reprise_gone" // whether the row was deleted
	noteColumn = "reprise_note" // why it is not known which rows are newer
	// givenColumn numbers rows while they are compared with newer ones.
	givenColumn = "reprise_row"
)

const (
	newerName        = "reprise_newer"
	typeTableChanged = "table_changed"
	tableNameBytes   = 8
)

// newerNames returns the prefix of the names of the tables of newer rows of a table.
func newerNames(d *Dialect, table string) string {
	if d.OneCase != nil {
		table = d.OneCase(table)
	}
	return newerPrefix + expression.Digest(table)[:tableNameBytes] + "_"
}

// NewerNames returns the prefix of the names of the tables that record newer rows of the write's table, and a text
// that sorts after all of them.
func (t *TableName) NewerNames(d *Dialect) (begin, behind string) {
	begin = newerNames(d, t.Table[len(t.Table)-1])
	return begin, strings.TrimSuffix(begin, "_") + "`"
}

// newerOf returns the table of rows that are newer than what a call or loop has read.
func (w *TableWrite) newerOf(d *Dialect, id string, schema ...string) *TableWrite {
	return &TableWrite{TableName: TableName{append(slices.Clone(schema), newerNames(d, w.Table[len(w.Table)-1])+id), w.Shown}, mode: modeOf(modeInsert)}
}

// newerKey returns the columns by which rows are compared: the key, or else the column that bounds what is replaced.
// It returns none if the table lacks one of them.
func (s *stage) newerKey(target *TargetTable) (key []TargetColumn) {
	names := s.write.Key
	if where := s.write.where; len(names) == 0 && where != nil {
		names = []string{where.column}
	}
	for _, name := range names {
		at := slices.IndexFunc(target.Columns, func(c TargetColumn) bool { return c.Name == name })
		if at < 0 {
			return nil
		}
		key = append(key, target.Columns[at])
	}
	return key
}

// beginRound makes the call or loop known, before it reads.
func (s *stage) beginRound(ctx context.Context) error {
	if err := s.openRound(ctx, false); err != nil || !s.fresh {
		return err
	}
	if err := s.beginReading(ctx); err != nil {
		return err
	}
	for _, below := range s.stagesBelow() {
		if err := below.beginRound(ctx); err != nil {
			return asChildError(below.write, err)
		}
	}
	return nil
}

// beginReading creates the table that collects the rows which other loads write from now on.
func (s *stage) beginReading(ctx context.Context) error {
	if err := s.tx.RequireAlone(); err != nil {
		return err
	}
	if err := s.dropLeftOver(ctx); err != nil {
		return err
	}
	target, err := s.tx.DescribeTarget(ctx, s.write)
	if err != nil || target.NoSchema {
		return err
	}
	var schema []string
	if target.Schema != "" {
		schema = []string{target.Schema}
	}
	var (
		d          = s.tx.Dialect()
		newer      = s.write.newerOf(d, s.write.ID, schema...)
		key        = s.newerKey(target)
		columns    = lists.Map(key, func(c TargetColumn) string { return quoteName(c.Name) + " " + c.Type })
		withOthers = slices.Concat(columns, []string{goneColumn + " boolean", noteColumn + " text", givenColumn + " bigint"})
	)
	if _, err := s.tx.Exec(ctx, "CREATE TABLE "+newer.QuotedTable()+" ("+strings.Join(withOthers, ", ")+")"); err != nil {
		return err
	}
	if len(key) > 0 { // some types have no order
		names := QuoteNames(lists.Map(key, func(c TargetColumn) string { return c.Name }))
		_ = s.tx.TryPart(ctx, func() error {
			_, err := s.tx.Exec(ctx, "CREATE INDEX "+quoteName(newer.Table[len(newer.Table)-1]+"_key")+" ON "+newer.QuotedTable()+" ("+names+")")
			return err
		})
	}
	if err := s.tx.ShareTable(ctx, s.write, newer); err != nil {
		return err
	}
	s.newer = newer
	_, err = s.tx.Exec(ctx, "UPDATE "+StagingTable+" SET newer = $2 WHERE id = $1", s.write.ID, newer.QuotedTable())
	return err
}

// IsBegin reports whether the write has a call or loop known that begins to read.
func (s *staging) IsBegin() bool { return s.IsStaged() && s.Do == interpreter.StagingBegin }

// StagingID returns the ID of the call or loop of a write that is staged.
func (s *staging) StagingID() string { return s.ID }

// NeedsExclusiveTable reports whether the write needs exclusive use of the table, if that is known beforehand: when a call or loop
// begins to read, publishes, or writes rows that others may have written recently.
func (s *staging) NeedsExclusiveTable() bool {
	return s.IsStaged() && (s.IsBegin() || s.Do == interpreter.StagingPublish || s.deleteMissing)
}

// BegunStatement finds out whether a call or loop has begun.
const BegunStatement = "SELECT 1 FROM " + StagingTable + " WHERE id = $1"

// isKeyOf returns the columns by which rows are compared in a table of newer rows.
func isKeyOf(columns []Column) []string {
	return slices.DeleteFunc(lists.Map(columns, columnName), func(name string) bool {
		return name == goneColumn || name == noteColumn || name == givenColumn
	})
}

// recordNewer adds the written rows to the tables of newer rows of other calls and loops that are reading.
func recordNewer(ctx context.Context, tx StagingTx, w *TableWrite) error {
	if len(w.Rows)+len(w.Deletes) == 0 {
		return nil
	}
	readers, err := otherNewerTables(ctx, tx, w)
	if err != nil {
		return err
	}
	for _, reader := range readers {
		if err := recordKeys(ctx, tx, w, reader); err != nil {
			return err
		}
	}
	if len(readers) > 0 {
		_, err = tx.ReadColumns(ctx, w) // a transaction knows one table
	}
	return err
}

// otherNewerTables returns the tables of newer rows of the write's target, without the write's own.
func otherNewerTables(ctx context.Context, tx StagingTx, w *TableWrite) (found []*TableWrite, err error) {
	readers, err := tx.NewerRowTables(ctx, w)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		if name := reader[len(reader)-1]; w.IsStaged() && strings.HasSuffix(name, "_"+w.ID) {
			continue
		}
		found = append(found, &TableWrite{TableName: TableName{reader, w.Shown}, mode: modeOf(modeInsert)})
	}
	return found, nil
}

// recordKeys adds the keys of what was written to one table.
func recordKeys(ctx context.Context, tx StagingTx, w, reader *TableWrite) error {
	columns, err := tx.ReadColumns(ctx, reader)
	if err != nil {
		return err
	}
	key := isKeyOf(columns)
	if len(key) == 0 {
		return recordUnknown(ctx, tx, reader, "another load has written rows of it")
	}
	rows, known := w.keysWritten(key)
	if known && len(rows) > 0 {
		reader.Columns, reader.Rows = slices.Concat(key, []string{goneColumn}), rows
		err := tx.TryPart(ctx, func() error {
			_, err := tx.InsertRows(ctx, reader)
			return err
		})
		if err == nil {
			return nil
		}
		if tx.RefusalOf(reader, err) == nil {
			return err
		}
		known = false
	}
	if !known {
		return recordUnknown(ctx, tx, reader, "another load has written rows of it whose "+strings.Join(key, ", ")+" is not known")
	}
	return nil
}

// recordUnknown records that it is not known which rows are newer.
func recordUnknown(ctx context.Context, tx StagingTx, reader *TableWrite, note string) error {
	_, err := tx.Exec(ctx, "INSERT INTO "+reader.QuotedTable()+" ("+goneColumn+", "+noteColumn+") VALUES (false, $1)", note)
	return err
}

// keysWritten returns the keys of written and deleted rows; known is false if a row lacks one.
func (w *TableWrite) keysWritten(key []string) (rows []map[string]any, known bool) {
	add := func(row map[string]any, gone bool) bool {
		own := make(map[string]any, len(key)+1)
		for _, column := range key {
			if row[column] == nil {
				return false
			}
			own[column] = row[column]
		}
		own[goneColumn] = gone
		rows = append(rows, own)
		return true
	}
	for i, row := range w.Rows {
		if !slices.Contains(w.refused, w.OriginalNumber(i)) && !add(row, false) {
			return nil, false
		}
	}
	for _, row := range w.Deletes {
		if !add(row, true) {
			return nil, false
		}
	}
	return rows, true
}

// withoutNewer returns the write without rows that other loads have written or deleted since its call or loop began to read.
func (s *stage) withoutNewer(ctx context.Context, settled *TableWrite) (*TableWrite, error) {
	key, some, err := s.readNewer(ctx)
	if !some || err != nil || len(settled.Rows)+len(settled.Deletes) == 0 {
		if err == nil && s.newer != nil {
			_, err = s.tx.ReadColumns(ctx, s.write) // a transaction knows one table
		}
		return settled, err
	}
	rows := slices.Concat(settled.Rows, settled.Deletes)
	given := *s.newer
	given.Columns, given.Rows = slices.Concat(key, []string{givenColumn}), make([]map[string]any, len(rows))
	for i, row := range rows {
		given.Rows[i] = map[string]any{givenColumn: i}
		for _, column := range key {
			given.Rows[i][column] = row[column]
		}
	}
	given.lenient, given.uniform = true, true // a key that the column does not hold is of no row
	if _, err := WriteRows(ctx, s.tx, &given); err != nil {
		return nil, err
	}
	newer := make([]bool, len(rows))
	table := s.newer.QuotedTable()
	err = s.tx.Query(ctx, "SELECT "+givenName+"."+givenColumn+" FROM "+table+" AS "+givenName+" WHERE "+givenName+"."+givenColumn+" IS NOT NULL AND EXISTS (SELECT 1 FROM "+
		table+" AS "+newerName+" WHERE "+newerName+"."+givenColumn+" IS NULL AND "+SameKey(key, newerName, givenName)+")", nil, func(scan func(...any) error) error {
		var at int64
		err := scan(&at)
		newer[at] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.tx.Exec(ctx, "DELETE FROM "+table+" WHERE "+givenColumn+" IS NOT NULL"); err != nil {
		return nil, err
	}
	rest := settled.withoutRows(newer[:len(settled.Rows)])
	rest.Deletes, rest.deletesFrom = nil, nil
	for i, row := range settled.Deletes {
		if !newer[len(settled.Rows)+i] {
			rest.Deletes, rest.deletesFrom = append(rest.Deletes, row), append(rest.deletesFrom, settled.deletesFrom[i])
		}
	}
	_, err = s.tx.ReadColumns(ctx, s.write) // a transaction knows one table
	return rest, err
}

// readNewer finds out whether any row is newer, and by which columns they are compared.
func (s *stage) readNewer(ctx context.Context) (key []string, some bool, err error) {
	if s.newer == nil {
		return nil, false, nil
	}
	columns, err := s.tx.ReadColumns(ctx, s.newer)
	if err != nil {
		return nil, false, err
	}
	if len(columns) == 0 {
		return nil, false, stagingError(typeStagingLost, "the table %s beside table %q no longer exists, so nothing was published. Run the playbook again",
			s.newer.QuotedTable(), s.write.Shown)
	}
	err = s.tx.Query(ctx, "SELECT 1 FROM "+s.newer.QuotedTable()+" LIMIT 1", nil, func(scan func(...any) error) error {
		some = true
		var one int64
		return scan(&one)
	})
	key = isKeyOf(columns)
	return key, some && len(key) > 0, err
}

// checkNewer refuses to publish if it is unknown which rows are newer.
func (s *stage) checkNewer(ctx context.Context, there []Column) error {
	if s.newer == nil {
		return nil
	}
	compared, _, err := s.readNewer(ctx)
	if err != nil {
		return err
	}
	table, note := s.newer.QuotedTable(), ""
	read := func(scan func(...any) error) error { return scan(&note) }
	if err := s.tx.Query(ctx, "SELECT "+noteColumn+" FROM "+table+" WHERE "+noteColumn+" IS NOT NULL LIMIT 1", nil, read); err != nil {
		return err
	}
	// The rows have no key, and the column of bounds is kept unless the target lacked it: then the notes say all.
	if where := s.write.where; note == "" && len(s.write.Key) == 0 && where != nil && slices.Contains(compared, where.column) {
		condition, err := s.withinCondition(ctx, s.write.where, there, newerName+".", true)
		if err != nil {
			return err
		}
		if err := s.tx.Query(ctx, "SELECT 'another load has written rows of it' FROM "+table+" AS "+newerName+" WHERE "+condition+" LIMIT 1", nil, read); err != nil {
			return err
		}
	}
	if note == "" {
		return nil
	}
	remedy := ""
	if len(s.write.Key) == 0 {
		remedy = "; with key, the newer rows would be kept"
	}
	return stagingError(typeTableChanged, "table %q has changed since this load started to read: %s. Nothing was published, because that would undo the change%s. Run the playbook again",
		s.write.Shown, note, remedy)
}

// SameKey returns the condition that the rows of two tables or aliases have the same key.
func SameKey(key []string, one, other string) string {
	return strings.Join(lists.Map(key, func(column string) string {
		name := quoteName(column)
		return one + "." + name + " = " + other + "." + name
	}), " AND ")
}

// recordPublished records which rows were published, for other calls and loops that read at the same time.
func (s *stage) recordPublished(ctx context.Context, there []Column) error {
	readers, err := otherNewerTables(ctx, s.tx, s.write)
	if err != nil {
		return err
	}
	for _, reader := range readers {
		name := reader.Table[len(reader.Table)-1]
		meets, err := s.meetsOther(ctx, name[strings.LastIndexByte(name, '_')+1:], there)
		if err != nil {
			return err
		}
		if !meets {
			continue
		}
		if err := recordUnknown(ctx, s.tx, reader, "another load has replaced or deleted rows of it"); err != nil {
			return err
		}
	}
	return nil
}

// meetsOther reports whether another call or loop may replace rows that this one does.
func (s *stage) meetsOther(ctx context.Context, id string, there []Column) (bool, error) {
	own, column, of := s.boundsOf()
	text := ""
	err := s.tx.Query(ctx, "SELECT replaces FROM "+StagingTable+" WHERE id = $1", []any{id}, func(scan func(...any) error) error { return scan(&text) })
	if err != nil || own == nil || text == "" {
		return true, err
	}
	other := &bounds{}
	parts := []*any{new(any), &other.equals, &other.from, &other.to}
	decoded := lists.Map(parts, func(part *any) any { return part })
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return true, tool.Errorf("the bounds of another load of table %q cannot be read: %w", s.write.Shown, err)
	}
	if (*parts[0]) != any(column) {
		return true, nil
	}
	other.column = own.column
	if of != s.write {
		if there, err = s.tx.ReadColumns(ctx, of); err != nil {
			return true, err
		}
	}
	first, second := own.beginValue(), other.beginValue()
	if first == nil && second == nil {
		return true, nil
	}
	for _, one := range []struct {
		value any
		of    *bounds
	}{{first, other}, {second, own}} {
		if one.value == nil {
			continue
		}
		holds, err := s.holdsValue(ctx, one.of, there, one.value)
		if holds || err != nil {
			return holds, err
		}
	}
	return false, nil
}

// beginValue returns the lower bound, nil if there is none.
func (b *bounds) beginValue() any {
	if b.equals != nil {
		return b.equals
	}
	return b.from
}

// holdsValue reports whether bounds hold a value.
func (s *stage) holdsValue(ctx context.Context, b *bounds, there []Column, value any) (holds bool, err error) {
	condition, err := s.withinCondition(ctx, b, there, thereName+".", true)
	if err != nil {
		return false, err
	}
	d, of, cast, literal := s.tx.Dialect(), columnNamed(there, b.column), "", ""
	if _, _, isTime := instantBound(value); !isTime || !d.comparesInstants(of) {
		value, cast, _ = d.readBound(of, value) // what is wrong with it is said where it bounds rows
	}
	err = s.tx.Query(ctx, d.QuoteLiteral, []any{d.Literal(value)}, func(scan func(...any) error) error { return scan(&literal) })
	if err != nil {
		return false, err
	}
	if d.Widen != "" && cast == "" { // a literal has no type yet
		cast = "::" + of.Type
	}
	literal += cast
	err = s.tx.Query(ctx, "SELECT 1 FROM (SELECT "+literal+" AS "+quoteName(b.column)+") AS "+thereName+" WHERE "+condition, nil, func(scan func(...any) error) error {
		holds = true
		var one int64
		return scan(&one)
	})
	return holds, err
}
