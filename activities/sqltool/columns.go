package sqltool

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Column is a column of a table that exists.
type Column struct {
	Name string
	Type string // as the database has it
	// Base is the underlying type of a domain, "" for other types.
	Base string
	// ReadOnly says that the database sets the values itself.
	ReadOnly bool
	Bytes    BytesColumn
	// Required says that a new row needs a value: the column cannot be NULL and has no default.
	Required bool
	// Collation is the one by which texts of the column are compared, as the database names it; "" for that of the type. SQLite says it
	// only of columns that a write compares.
	Collation string
	// DeletesOthers says that the table is declared to delete rows that a new one conflicts with: ON CONFLICT REPLACE in SQLite.
	DeletesOthers bool
}

// ColumnKind classifies a column's type, as finely as writes need.
type ColumnKind int

const (
	kindOther ColumnKind = iota // only the database knows what fits
	kindSmallint
	kindInteger
	kindBigint
	kindNumeric
	kindReal
	kindDouble
	kindBoolean
	kindInstant   // with an offset, or text with any
	kindTimestamp // without one
	kindDate
	kindClock   // a time of day without an offset
	kindVarchar // of a limited length
	kindText
	kindJSON
)

// isTime reports whether the kind's values are points in time.
func (k ColumnKind) isTime() bool { return k >= kindInstant && k <= kindDate }

func (k ColumnKind) isNumber() bool { return k >= kindSmallint && k <= kindBoolean }

// SchemaTx is the part of a transaction that SettleWrite needs: the columns of the table, and how to
// change them.
type SchemaTx interface {
	Dialect() *Dialect
	Exec(ctx context.Context, statement string, args ...any) (affected int64, err error)
	// ReadColumns returns the columns of the table in order, none if the table does not exist.
	ReadColumns(ctx context.Context, w *TableWrite) ([]Column, error)
	// LacksSchema reports whether the schema of the table is missing and can be created. Until the transaction ends
	// nobody else creates it.
	LacksSchema(ctx context.Context, w *TableWrite) (bool, error)
	// ChangeSchema runs change with exclusive use of the table; it returns ErrShared if others use it.
	ChangeSchema(ctx context.Context, w *TableWrite, change func() error) error
	// FindMisfits returns the indexes of values that the column cannot hold.
	FindMisfits(ctx context.Context, w *TableWrite, column Column, values []any) ([]int, error)
}

// TableTx is the transaction of a write to a table.
type TableTx interface {
	StateTx
	SchemaTx
	// InsertRows writes the rows by the mode of the write, and returns how many were written and, if the database can say it at no
	// noticeable cost, how many of them were new. Where w.ReportsRows, it calls w.SkipRow for each row that was not written, because the
	// table has it, or a newer one.
	InsertRows(ctx context.Context, w *TableWrite) (WriteResult, error)
	// DeleteRows deletes the rows that w.Deletes have the keys of, and gives how many there were.
	DeleteRows(ctx context.Context, w *TableWrite) (int64, error)
	// SplitPasses splits a write into passes that are written one after the other, so that rows with one key, by the
	// database's own equality, have the effect of separate writes. A pass deletes before it writes.
	SplitPasses(ctx context.Context, w *TableWrite) ([]*TableWrite, error)
	// HasBelow reports whether DeleteBelow may delete rows if none is excepted.
	HasBelow(ctx context.Context, w *TableWrite, rows RowsBelow) (bool, error)
	// DeleteBelow deletes children from the table of a write, whose columns are known, and returns how many.
	DeleteBelow(ctx context.Context, w *TableWrite, rows RowsBelow) (int64, error)
	// KeysBelow are the keys of the rows that DeleteBelow deletes, as the table has them.
	KeysBelow(ctx context.Context, w *TableWrite, rows RowsBelow) ([]map[string]any, error)
	// StoredKeys are the keys of the table's rows that have the keys of given rows by the database's own equality, by the places of
	// these, as the table has them; nil for a row that the table lacks, and with onlyOlder for one that is newer than the given row.
	StoredKeys(ctx context.Context, w *TableWrite, given []map[string]any, onlyOlder bool) ([]map[string]any, error)
	// KeysWhere are the keys of the rows of the table that a condition holds for, in which it has the name reprise_there.
	KeysWhere(ctx context.Context, w *TableWrite, condition string) ([]map[string]any, error)
}

// SettleWrite decides by the table's columns what a write does, and returns that write: it has one row for each key, rows
// to be deleted in Deletes, and only columns and values that the table can hold. Columns that the contract adds or
// widens are changed in the transaction before it returns. On error nothing was written.
func SettleWrite(ctx context.Context, tx SchemaTx, w *TableWrite) (*TableWrite, error) {
	if err := w.checkNames(tx.Dialect()); err != nil || len(w.Rows) == 0 {
		return w, err
	}
	settled, columns, err := w.settleColumns(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(settled.changes) > 0 {
		err = tx.ChangeSchema(ctx, w, func() error {
			if settled, columns, err = w.settleColumns(ctx, tx); err != nil { // another write may have changed it
				return err
			}
			if err := w.runStatements(ctx, tx, settled.changes); err != nil {
				return err
			}
			columns, err = tx.ReadColumns(ctx, w)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	settled.tableColumns = columns
	noteEmptyTexts(settled, tx.Dialect(), w.Rows)
	settled.readBytes(columns)
	if err := settled.discardMisfits(ctx, tx, columns); err != nil {
		return nil, err
	}
	if len(settled.Columns) == 0 { // nothing is left of any row
		settled.Rows = nil
	}
	keys := keysOfWrite(settled, tx.Dialect(), columns)
	noteRepeatedKeys(settled, keys)
	return settled.withoutReplaced(keys), nil
}

// settleColumns is SettleWrite without changing the table: what it needs is in the changes of the write that it returns.
func (w *TableWrite) settleColumns(ctx context.Context, tx SchemaTx) (*TableWrite, []Column, error) {
	columns, err := tx.ReadColumns(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	dialect, settled := tx.Dialect(), *w
	if err := settled.fitRows(dialect, columns); err != nil {
		return nil, nil, err
	}
	settled.orderBySequence(dialect, columns)
	noteDocuments(&settled, dialect, columns)
	if w.upsert {
		settled.forms = settled.formsOfKey(dialect, columns)
		settled = *settled.withDeletes()
	}
	if len(settled.Rows) == 0 || !lists.IsSame(settled.Rows, settled.columnRows) {
		settled.readColumns(nil)
	}
	if err := settled.conformToContract(dialect, columns); err != nil {
		return &settled, columns, err
	}
	return &settled, columns, settled.makeSchema(ctx, tx, columns)
}

// discardMisfits removes values that columns cannot hold, if the contract says so.
func (w *TableWrite) discardMisfits(ctx context.Context, tx SchemaTx, columns []Column) error {
	if !w.contract.discardsMisfits() {
		return nil
	}
	for _, column := range columns {
		if !slices.Contains(w.Columns, column.Name) {
			continue
		}
		var (
			rows   []int
			values []any
			kind   = tx.Dialect().KindOf(column.Type)
			bound  = limitOf(column.Type) > 0
			rounds = tx.Dialect().LongNumbers != kindOther
		)
		if column.Bytes != noBytes {
			w.discardNoBytes(column)
			continue
		}
		for i, row := range w.Rows {
			if value := row[column.Name]; value != nil && (bound || !kind.CanHold(value) || rounds && RoundsDeclared(column.Type, value)) {
				rows, values = append(rows, i), append(values, value)
			}
		}
		if len(rows) == 0 {
			continue
		}
		misfits, err := tx.FindMisfits(ctx, w, column, values)
		if err != nil {
			return err
		}
		marked := make([]bool, len(w.Rows))
		for _, i := range misfits {
			marked[rows[i]] = true
		}
		if len(misfits) > 0 {
			w.discardValues(column.Name, marked)
		}
	}
	return nil
}

// discardNoBytes removes values that a column of bytes cannot hold.
func (w *TableWrite) discardNoBytes(column Column) {
	marked := make([]bool, len(w.Rows))
	for i, row := range w.Rows {
		marked[i] = column.Bytes.refusesValue(row[column.Name])
	}
	if slices.Contains(marked, true) {
		w.discardValues(column.Name, marked)
	}
}

// WriteRows deletes and writes the rows of a write that is settled, pass by pass.
func WriteRows(ctx context.Context, tx StagingTx, w *TableWrite) (written WriteResult, err error) {
	if err := countOlder(ctx, tx, w); err != nil {
		return written, err
	}
	w.beginReport()
	insert, fit, err := newInserter(ctx, tx, w)
	if err != nil {
		return written, err
	}
	passes, err := tx.SplitPasses(ctx, fit)
	if err != nil {
		return written, err
	}
	for _, pass := range passes {
		if len(pass.Deletes) > 0 {
			if err := deleteChildren(ctx, tx, w, pass); err != nil {
				return written, err
			}
			gone, err := deleteRows(ctx, tx, pass)
			if written = written.Plus(gone); err != nil {
				return written, err
			}
		}
		inserted, err := insert(ctx, pass)
		if err == nil {
			err = refuseOrphans(w, inserted)
		}
		if err != nil {
			return written, err
		}
		if !pass.counted {
			written = written.Plus(inserted)
		}
		if err := writeChildren(ctx, tx, w, pass); err != nil {
			return written, err
		}
	}
	if w.leftOut.RejectedRows > 0 {
		if err := w.RecountRows(ctx, tx, len(w.Rows)-w.leftOut.RejectedRows); err != nil {
			return written, err
		}
	}
	if w.State != nil && w.WritesRows() && written.affected == 0 {
		if err := recordEmptied(ctx, tx, w); err != nil {
			return written, err
		}
	}
	return written, recordFilled(ctx, tx, w)
}

// deleteRows deletes rows by their keys, and counts those that the table still has afterwards, because of a trigger or a rule.
func deleteRows(ctx context.Context, tx TableTx, pass *TableWrite) (gone WriteResult, err error) {
	if gone.deleted, err = tx.DeleteRows(ctx, pass); err != nil || gone.deleted >= int64(len(pass.Deletes)) {
		return gone, err
	}
	stored, err := tx.StoredKeys(ctx, pass, pass.Deletes, true)
	for _, key := range stored {
		if key != nil {
			gone.undeleted++
		}
	}
	return gone, err
}

// baseType returns the type of the column, for a domain the one below it.
func (c Column) baseType() string { return cmp.Or(c.Base, c.Type) }

// TypeOf returns the type of a column of the table, "" if it is unknown.
func (c tableColumns) TypeOf(column string) string {
	return columnNamed(c, column).Type
}

// columnNamed returns the column with a name; without a type if it does not exist.
func columnNamed(columns []Column, name string) Column {
	if i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return columns[i]
	}
	return Column{Name: name}
}

// columnsOf returns the union of all rows' keys, sorted. uniform says that each row has all of them.
func columnsOf(rows []map[string]any) (columns []string, uniform bool) {
	seen := map[string]bool{}
	uniform = true
	for i, row := range rows {
		if len(row) == len(columns) && hasAll(row, columns) {
			continue // as most rows are; to look keys up is quicker than to list them
		}
		uniform = i == 0
		for column := range row {
			if !seen[column] {
				seen[column] = true
				columns = append(columns, column)
			}
		}
	}
	slices.Sort(columns)
	return columns, uniform
}

// readColumns reads which columns the rows have; known are those of each row, nil if that is not known.
func (w *TableWrite) readColumns(known []string) {
	if known != nil && len(w.Rows) > 0 && !w.nests {
		w.Columns, w.uniform = slices.Sorted(slices.Values(known)), true
	} else {
		w.Columns, w.uniform = columnsOf(w.Rows)
	}
	w.columnRows = w.Rows
	w.leaveChildren()
}

func hasAll(row map[string]any, columns []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool {
		_, has := row[column]
		return !has
	})
}

// appendNew appends a text unless the list has it.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(slices.Clip(list), text)
}

// kindsOfTypes are the kinds of PostgreSQL's types, by their names and the aliases that an author may use.
var kindsOfTypes = map[string]ColumnKind{
	"smallint": kindSmallint, "int2": kindSmallint,
	"integer": kindInteger, "int": kindInteger, "int4": kindInteger,
	"bigint": kindBigint, "int8": kindBigint,
	"numeric": kindNumeric, "decimal": kindNumeric,
	"real": kindReal, "float4": kindReal,
	"double precision": kindDouble, "float8": kindDouble, "float": kindDouble,
	"boolean": kindBoolean, "bool": kindBoolean,
	"text": kindText, "character varying": kindText, "varchar": kindText,
	"json": kindJSON, "jsonb": kindJSON,
	"timestamp with time zone": kindInstant, "timestamptz": kindInstant,
	"timestamp": kindTimestamp, "timestamp without time zone": kindTimestamp,
	"date": kindDate,
	"time": kindClock, "time without time zone": kindClock,
}

// KindOfType returns the kind of a type of PostgreSQL.
func KindOfType(name string) ColumnKind {
	kind := kindsOfTypes[strings.ToLower(limits.ReplaceAllString(name, ""))]
	if kind == kindText && strings.Contains(name, "(") {
		return kindVarchar
	}
	return kind
}

// limits are the length or the precision in the name of a type.
var limits = regexp.MustCompile(` ?\([^)]*\)`)

// KindOfDeclared returns the kind of a type declared in SQLite, which stores integers of 64
// bits, floats and text, and compares times as text.
func KindOfDeclared(name string) ColumnKind {
	name = strings.ToUpper(name)
	for _, one := range []struct {
		part string
		kind ColumnKind
	}{
		{"INT", kindBigint},
		{"CHAR", kindText},
		{"CLOB", kindText},
		{"TEXT", kindText},
		{"DOUBLE", kindDouble},
		{"REAL", kindDouble},
		{"FLOA", kindDouble},
		{"NUMERIC", kindNumeric},
		{"DECIMAL", kindNumeric},
		{"NUMBER", kindNumeric},
		{"MONEY", kindNumeric},
		{"CURRENCY", kindNumeric},
		{"BOOL", kindBoolean},
		{"JSON", kindJSON},
		{"DATE", kindInstant},
		{"TIME", kindInstant},
	} {
		if strings.Contains(name, one.part) {
			return one.kind
		}
	}
	return kindOther
}
