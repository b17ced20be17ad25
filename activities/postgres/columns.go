package postgres

import (
	"context"

	"reprise/activities/sqltool"
)

// textForm is how a value is written as text, so that it becomes what json_populate_recordset makes
// of the same value as JSON.
type textForm int

// The forms of columns, in the numbers that Columns has for them in SQL.
const (
	noText    textForm = iota // such as a composite type: only JSON will do
	plainText                 // the input function of the type reads it
	jsonText                  // JSON, of texts too
	arrayText                 // an array whose elements are plain
)

// target is what a write knows of its table.
type target struct {
	forms map[string]textForm // by column
	// copyable says that COPY does to it what INSERT does: it has no rules and no policies for rows, and is no
	// view and no foreign table.
	copyable bool
	// tempAllowed says that the user may make temporary tables.
	tempAllowed bool
}

// formsOf are the forms of columns, nil where one has none.
func (t *target) formsOf(columns []string) []textForm {
	forms := make([]textForm, len(columns))
	for i, name := range columns {
		if forms[i] = t.forms[name]; forms[i] == noText {
			return nil
		}
	}
	return forms
}

// Columns are the table's columns in order, none if there is no such table. One that is
// generated, or always numbered, has no form: COPY would write to it where INSERT refuses to.
func (t *tableTx) Columns(ctx context.Context, w *sqltool.Write) (columns []sqltool.Column, err error) {
	const describe = `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
			CASE WHEN a.attidentity = 'a' OR a.attgenerated <> '' THEN 0
				WHEN b.oid IN ('json'::regtype, 'jsonb'::regtype) THEN 2
				WHEN b.typcategory = 'A' AND e.typtype IN ('b', 'e', 'r', 'm') AND e.typdelim = ',' AND e.typcategory <> 'A'
					AND e.oid NOT IN ('json'::regtype, 'jsonb'::regtype) THEN 3
				WHEN b.typcategory <> 'A' AND b.typtype IN ('b', 'e', 'r', 'm') THEN 1
				ELSE 0 END,
			a.attidentity = 'a' OR a.attgenerated <> '',
			c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND NOT c.relhasrules,
			has_database_privilege(current_database(), 'TEMPORARY')
		FROM pg_attribute a
			JOIN pg_class c ON c.oid = a.attrelid
			JOIN pg_type t ON t.oid = a.atttypid
			JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
			LEFT JOIN pg_type e ON e.oid = b.typelem
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	t.target.forms = map[string]textForm{}
	err = t.Query(ctx, describe, []any{w.QuotedTable()}, func(scan func(...any) error) error {
		var (
			column sqltool.Column
			form   textForm
		)
		err := scan(&column.Name, &column.Type, &form, &column.ReadOnly, &t.target.copyable, &t.target.tempAllowed)
		t.target.forms[column.Name] = form
		columns = append(columns, column)
		return err
	})
	return columns, err
}
