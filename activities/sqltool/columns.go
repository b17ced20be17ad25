package sqltool

import (
	"context"
	"slices"
	"strings"
)

// Column is a column of a table that exists.
type Column struct {
	Name string
	Type string // as the database has it
	// ReadOnly says that the database makes the values itself.
	ReadOnly bool
}

// ColumnKind is what the values of a column are, as far as writes distinguish types.
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
	kindInstant
	kindVarchar // of a limited length
	kindText
	kindJSON
)

func (k ColumnKind) isNumber() bool { return k >= kindSmallint && k <= kindBoolean }

// TableTx is the transaction of a write to a table.
type TableTx interface {
	StateTx
	// Columns are the columns of the table in order, none if there is no such table.
	Columns(ctx context.Context, w *TableWrite) ([]Column, error)
	// Change runs what changes the table, while nobody else changes it so.
	Change(ctx context.Context, w *TableWrite, change func() error) error
	// Misfits are the numbers of those values that the column does not hold.
	Misfits(ctx context.Context, w *TableWrite, column Column, values []any) ([]int, error)
	// Insert writes the rows by the mode of the write, and gives how many were written.
	Insert(ctx context.Context, w *TableWrite) (int64, error)
	// Delete deletes the rows that w.Deletes have the keys of, and gives how many there were.
	Delete(ctx context.Context, w *TableWrite) (int64, error)
}

// Settle makes of a write what is left to do for it in its table: of the rows of one key one,
// those that are to be deleted apart from the others, and what the table holds of them by the
// contract, for which the table may change.
func Settle(ctx context.Context, tx TableTx, w *TableWrite) (*TableWrite, error) {
	if err := w.checkNames(tx.Dialect()); err != nil || len(w.Rows) == 0 {
		return w, err
	}
	settled, columns, err := w.settle(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(settled.changes) > 0 {
		err = tx.Change(ctx, w, func() error {
			if settled, columns, err = w.settle(ctx, tx); err != nil { // another write may have changed it
				return err
			}
			for _, w.changing = range settled.changes {
				if _, err := tx.Exec(ctx, w.changing); err != nil {
					return err
				}
			}
			w.changing = ""
			columns, err = tx.Columns(ctx, w)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	settled.tableColumns = columns
	if err := settled.discardMisfits(ctx, tx, columns); err != nil {
		return nil, err
	}
	if len(settled.Columns) == 0 { // nothing is left of any row
		settled.Rows = nil
	}
	return settled, nil
}

// settle decides by the columns that there are.
func (w *TableWrite) settle(ctx context.Context, tx TableTx) (*TableWrite, []Column, error) {
	columns, err := tx.Columns(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	dialect, settled := tx.Dialect(), *w
	settled.codePoints, settled.instantOf = dialect.CodePoints, dialect.InstantOf
	settled.sequenceKind = dialect.KindOf(settled.typeOf(dialect, settled.sequence))
	if i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == w.sequence }); i >= 0 {
		settled.sequenceKind = dialect.KindOf(columns[i].Type)
	}
	if w.upsert {
		settled.keyForms = settled.formsOfKey(dialect, columns)
		settled = *settled.newest().withDeletes()
	}
	settled.Columns = columnsOf(settled.Rows)
	return &settled, columns, settled.conform(dialect, columns)
}

// discardMisfits leaves out what columns do not hold, where the contract says so.
func (w *TableWrite) discardMisfits(ctx context.Context, tx TableTx, columns []Column) error {
	if w.contract.dataType != discardValue && w.contract.dataType != discardRow {
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
		for i, row := range w.Rows {
			if value := row[column.Name]; value != nil && (bound || !kind.Holds(value) || rounds && RoundsDeclared(column.Type, value)) {
				rows, values = append(rows, i), append(values, value)
			}
		}
		if len(rows) == 0 {
			continue
		}
		misfits, err := tx.Misfits(ctx, w, column, values)
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

// WriteRows deletes and writes the rows of a write that is settled.
func WriteRows(ctx context.Context, tx RejectingTx, w *TableWrite) (written Written, err error) {
	if len(w.Deletes) > 0 {
		if written.deleted, err = tx.Delete(ctx, w); err != nil {
			return written, err
		}
	}
	if len(w.Rows) > 0 {
		if written.affected, err = insertAll(ctx, tx, w); err != nil {
			return written, err
		}
	}
	if w.State != nil && w.WritesRows() && written.affected == 0 {
		return written, keepEmptied(ctx, tx, w)
	}
	return written, nil
}

// TypeOf is the type of a column of the table, "" where it is not known.
func (w *TableWrite) TypeOf(column string) string {
	for _, one := range w.tableColumns {
		if one.Name == column {
			return one.Type
		}
	}
	return ""
}

// columnsOf is the union of all rows' keys, sorted.
func columnsOf(rows []map[string]any) []string {
	seen := map[string]bool{}
	var columns []string
	for _, row := range rows {
		if len(row) == len(columns) && hasAll(row, columns) {
			continue // as most rows are; to look keys up is quicker than to list them
		}
		for column := range row {
			if !seen[column] {
				seen[column] = true
				columns = append(columns, column)
			}
		}
	}
	slices.Sort(columns)
	return columns
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

// KindOfType is the kind of a type of PostgreSQL, by its name there.
func KindOfType(name string) ColumnKind {
	base, _, limited := strings.Cut(name, "(")
	switch base {
	case "smallint":
		return kindSmallint
	case "integer":
		return kindInteger
	case "bigint":
		return kindBigint
	case "numeric":
		return kindNumeric
	case "real":
		return kindReal
	case "double precision":
		return kindDouble
	case "boolean":
		return kindBoolean
	case "text":
		return kindText
	case "character varying":
		if limited {
			return kindVarchar
		}
		return kindText
	case "json", "jsonb":
		return kindJSON
	case "date", "timestamp", "timestamp without time zone", "timestamp with time zone":
		return kindInstant
	}
	return kindOther
}

// KindOfDeclared is the kind of a type as it is declared in SQLite, which keeps integers of
// 64 bits, other numbers, and text; it compares times as text.
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
