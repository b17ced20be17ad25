package sqltool

import (
	"context"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// Column is a column of a table that exists.
type Column struct {
	Name string
	Type string // as the database has it
}

// kind is what the values of a column are, as far as writes tell types apart.
type kind int

const (
	kindOther kind = iota // only the database knows what fits
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

func (k kind) isNumber() bool { return k >= kindSmallint && k <= kindBoolean }

// TableTx is the transaction of a write to a table.
type TableTx interface {
	StateTx
	// Columns are the columns of the table in order, none if there is no such table.
	Columns(ctx context.Context, w *Write) ([]Column, error)
	// Insert writes the rows by the mode of the write, and gives how many were written.
	Insert(ctx context.Context, w *Write) (int64, error)
	// Delete deletes the rows that w.Deletes have the keys of, and gives how many there were.
	Delete(ctx context.Context, w *Write) (int64, error)
}

// Settle makes of a write what is left to do for it in its table: of the rows of one key one,
// those that are to be deleted apart from the others, in columns that the table has.
func Settle(ctx context.Context, tx TableTx, w *Write) (*Write, error) {
	if len(w.Rows) == 0 {
		return w, nil
	}
	columns, err := tx.Columns(ctx, w)
	if err != nil {
		return nil, err
	}
	settled := *w
	settled.codePoints = tx.Dialect().CodePoints
	if i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == w.sequence }); i >= 0 {
		settled.sequenceKind = tx.Dialect().KindOf(columns[i].Type)
	}
	if w.upsert {
		settled = *settled.newest().withDeletes()
	}
	settled.Columns = columnsOf(settled.Rows)
	return &settled, settled.checkColumns(columns)
}

// WriteRows deletes and writes the rows of a write that is settled.
func WriteRows(ctx context.Context, tx TableTx, w *Write) (written Written, err error) {
	if len(w.Deletes) > 0 {
		if written.deleted, err = tx.Delete(ctx, w); err != nil {
			return written, err
		}
	}
	written.affected, err = tx.Insert(ctx, w)
	return written, err
}

// columnsOf is the union of all rows' keys, sorted.
func columnsOf(rows []map[string]any) []string {
	seen := map[string]bool{}
	var columns []string
	for _, row := range rows {
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

// checkColumns compares the rows' columns with the table's, so that the author reads which
// name is wrong and what it might be. The column by which rows are deleted need not exist.
func (w *Write) checkColumns(columns []Column) error {
	if len(columns) == 0 {
		return tool.Errorf("table %q does not exist: create it first, for example with a step that runs CREATE TABLE IF NOT EXISTS", w.Shown)
	}
	existing := make([]string, len(columns))
	for i, column := range columns {
		existing[i] = column.Name
	}
	if !slices.Contains(existing, w.hardDelete) {
		w.Columns = slices.DeleteFunc(w.Columns, func(column string) bool { return column == w.hardDelete })
	}
	for _, column := range slices.Concat(w.Columns, w.DeleteColumns()) {
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

// appendNew appends a text unless the list has it.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(slices.Clip(list), text)
}

// KindOfType is the kind of a type of PostgreSQL, by its name there.
func KindOfType(name string) kind {
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
func KindOfDeclared(name string) kind {
	name = strings.ToUpper(name)
	for _, one := range []struct {
		part string
		kind kind
	}{
		{"INT", kindBigint},
		{"CHAR", kindText},
		{"CLOB", kindText},
		{"TEXT", kindText},
		{"DOUB", kindDouble},
		{"REAL", kindDouble},
		{"FLOA", kindDouble},
		{"NUMERIC", kindNumeric},
		{"DECIMAL", kindNumeric},
		{"BOOL", kindBoolean},
		{"JSON", kindJSON},
	} {
		if strings.Contains(name, one.part) {
			return one.kind
		}
	}
	return kindOther
}
