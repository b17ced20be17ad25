package sqltool

import (
	"context"

	"reprise/interpreter"
)

// createSchema returns the statement that makes the schema of the table.
func (t *TableName) createSchema() interpreter.DDL {
	return interpreter.DDL{Kind: interpreter.CreateSchema, Statement: "CREATE SCHEMA IF NOT EXISTS " + quoteName(t.Table[len(t.Table)-2])}
}

// createTable makes the table with columns, and constraints, that are written out.
func (t *TableName) createTable(definitions string) interpreter.DDL {
	return interpreter.DDL{Kind: interpreter.CreateTable, Statement: "CREATE TABLE IF NOT EXISTS " + t.QuotedTable() + " (" + definitions + ")"}
}

// addColumn adds a column to the table; definition has its quoted name and type as in CREATE TABLE.
func (t *TableName) addColumn(d *Dialect, definition string) interpreter.DDL {
	return interpreter.DDL{Kind: interpreter.AddColumn, Statement: "ALTER TABLE " + t.QuotedTable() + " ADD COLUMN " + d.IfNotExists + definition}
}

// widenColumn gives a column of the table another type, which loses nothing.
func (t *TableName) widenColumn(d *Dialect, column, typed string) interpreter.DDL {
	return interpreter.DDL{
		Kind:      interpreter.WidenColumn,
		Statement: "ALTER TABLE " + t.QuotedTable() + " ALTER COLUMN " + quoteName(column) + " " + d.Widen + " " + typed,
	}
}

// makeSchema adds the creation of a missing schema before that of its table.
func (w *TableWrite) makeSchema(ctx context.Context, tx SchemaTx, table []Column) error {
	if len(table) > 0 || len(w.changes) == 0 || len(w.Table) == 1 {
		return nil
	}
	lacks, err := tx.LacksSchema(ctx, w)
	if lacks {
		w.changes = append([]interpreter.DDL{w.createSchema()}, w.changes...)
	}
	return err
}

// runStatements runs statements one after the other. A failed one stays in c.changing, for its message.
func (c *schemaChange) runStatements(ctx context.Context, tx SchemaTx, statements []interpreter.DDL) error {
	for i := range statements {
		c.changing = &statements[i]
		if _, err := tx.Exec(ctx, statements[i].Statement); err != nil {
			return err
		}
	}
	c.changing = nil
	return nil
}

// MakesSchema reports whether the schema of the table is being made just now.
func (c *schemaChange) MakesSchema() bool {
	return c.changing != nil && c.changing.Kind == interpreter.CreateSchema
}
