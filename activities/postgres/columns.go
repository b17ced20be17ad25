package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
)

// textForm is how a value is written as text, so that it becomes what json_populate_recordset makes
// of the same value as JSON.
type textForm int

// The forms of columns.
const (
	noText    textForm = iota // such as a composite type: only JSON will do
	plainText                 // the input function of the type reads it
	jsonText                  // JSON, of texts too
	arrayText                 // an array whose elements are plain
)

// column is a column of a table that exists.
type column struct {
	Name string
	Form textForm
}

// target is a table that exists.
type target struct {
	Columns []column
	// Copyable says that COPY does to it what INSERT does: it has no rules and no policies for rows, and is no
	// view and no foreign table.
	Copyable bool
	// TempAllowed says that the user may make temporary tables.
	TempAllowed bool
}

// names are the columns' names, in order.
func (t *target) names() []string {
	names := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		names[i] = column.Name
	}
	return names
}

// forms are the forms of columns, nil where one has none.
func (t *target) forms(columns []string) []textForm {
	known := map[string]textForm{}
	for _, column := range t.Columns {
		known[column.Name] = column.Form
	}
	forms := make([]textForm, len(columns))
	for i, name := range columns {
		if forms[i] = known[name]; forms[i] == noText {
			return nil
		}
	}
	return forms
}

// describeTarget reads the table of a write; one without columns does not exist. A column that
// is generated, or always numbered, has no form: COPY would write to it where INSERT refuses to.
func describeTarget(ctx context.Context, tx pgx.Tx, w *sqltool.Write) (t target, err error) {
	const describe = `SELECT a.attname::text,
			CASE WHEN a.attidentity = 'a' OR a.attgenerated <> '' THEN 0
				WHEN b.oid IN ('json'::regtype, 'jsonb'::regtype) THEN 2
				WHEN b.typcategory = 'A' AND e.typtype IN ('b', 'e', 'r', 'm') AND e.typdelim = ',' AND e.typcategory <> 'A'
					AND e.oid NOT IN ('json'::regtype, 'jsonb'::regtype) THEN 3
				WHEN b.typcategory <> 'A' AND b.typtype IN ('b', 'e', 'r', 'm') THEN 1
				ELSE 0 END,
			c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND NOT c.relhasrules,
			has_database_privilege(current_database(), 'TEMPORARY')
		FROM pg_attribute a
			JOIN pg_class c ON c.oid = a.attrelid
			JOIN pg_type t ON t.oid = a.atttypid
			JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
			LEFT JOIN pg_type e ON e.oid = b.typelem
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	rows, err := tx.Query(ctx, describe, w.QuotedTable())
	if err != nil {
		return t, err
	}
	t.Columns, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.Name, &c.Form, &t.Copyable, &t.TempAllowed)
		return c, err
	})
	return t, err
}
