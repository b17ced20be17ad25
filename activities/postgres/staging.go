package postgres

import (
	"context"

	"reprise/activities/sqltool"
)

// HoldWriters locks the table so that others read it and do not write to it.
func (t *tableTx) HoldWriters(ctx context.Context, w *sqltool.TableWrite) error {
	if _, err := t.Exec(ctx, "SELECT set_config('lock_timeout', $1, true)", changeWait); err != nil {
		return err
	}
	_, err := t.Exec(ctx, "LOCK TABLE "+w.QuotedTable()+" IN SHARE ROW EXCLUSIVE MODE")
	return err
}

// DescribeTarget describes the table of a write.
func (t *tableTx) DescribeTarget(ctx context.Context, w *sqltool.TableWrite) (*sqltool.TargetTable, error) {
	found := &sqltool.TargetTable{}
	for _, read := range []func(context.Context, *sqltool.TableWrite, *sqltool.TargetTable) error{
		t.inspectTable, t.inspectColumns, t.inspectChecks, t.inspectReferences,
	} {
		if err := read(ctx, w, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *tableTx) inspectTable(ctx context.Context, w *sqltool.TableWrite, found *sqltool.TargetTable) error {
	const describe = `SELECT n.nspname::text, c.relkind::text, row_security_active(c.oid), c.relhasrules,
			EXISTS (SELECT FROM pg_trigger g WHERE (g.tgrelid = c.oid OR g.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid))) AND NOT g.tgisinternal AND g.tgenabled <> 'D'),
			c.relkind <> 'p' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`
	kinds := map[string]string{"v": "a view", "m": "a materialized view", "f": "a foreign table"}
	err := t.Query(ctx, describe, []any{w.QuotedTable()}, func(scan func(...any) error) error {
		var (
			kind                     string
			policies, rules, parents bool
		)
		err := scan(&found.Schema, &kind, &policies, &rules, &found.HasTriggers, &parents)
		switch {
		case kinds[kind] != "":
			found.Refused = "it is " + kinds[kind] + "; write to the table behind it"
		case policies:
			found.Refused = "row-level security may hide some rows from the user of the connection; use a user to whom it does not apply, such as the owner"
		case rules:
			found.Refused = "it has rules, which rewrite statements"
		case parents:
			found.Refused = "other tables inherit from it, and their rows are also its rows"
		}
		return err
	})
	if err != nil || found.Schema != "" {
		return err
	}
	const schemaOf = "SELECT coalesce((SELECT nspname::text FROM pg_namespace WHERE nspname = coalesce($1, current_schema())), '')"
	var schema any
	if len(w.Table) > 1 {
		schema = w.Table[len(w.Table)-2]
	}
	err = t.Query(ctx, schemaOf, []any{schema}, func(scan func(...any) error) error { return scan(&found.Schema) })
	found.NoSchema = found.Schema == ""
	return err
}

// inspectColumns makes defaults look sequences up by name: a reference from a staging table would prevent its target,
// which owns the sequences, from being dropped.
func (t *tableTx) inspectColumns(ctx context.Context, w *sqltool.TableWrite, found *sqltool.TargetTable) error {
	const describe = `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attcollation <> t.typcollation
				THEN ' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname) ELSE '' END,
			a.attnotnull,
			coalesce('(' || CASE WHEN a.attidentity <> '' THEN 'nextval(' || quote_literal(pg_get_serial_sequence($1, a.attname)) || '::text)'
				WHEN a.attgenerated = '' THEN replace(pg_get_expr(d.adbin, d.adrelid), '''::regclass', '''::text::regclass') END || ')', ''),
			a.attidentity = 'a' OR a.attgenerated <> ''
		FROM pg_attribute a
			JOIN pg_type t ON t.oid = a.atttypid
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
			LEFT JOIN pg_collation l ON l.oid = a.attcollation
			LEFT JOIN pg_namespace n ON n.oid = l.collnamespace
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
	return t.Query(ctx, describe, []any{w.QuotedTable()}, func(scan func(...any) error) error {
		var column sqltool.TargetColumn
		err := scan(&column.Name, &column.Type, &column.NotNull, &column.Default, &column.ReadOnly)
		found.Columns = append(found.Columns, column)
		return err
	})
}

func (t *tableTx) inspectChecks(ctx context.Context, w *sqltool.TableWrite, found *sqltool.TargetTable) error {
	const describe = `SELECT 'CONSTRAINT ' || quote_ident(conname) || ' CHECK (' || pg_get_expr(conbin, conrelid) || ')'
		FROM pg_constraint WHERE conrelid = to_regclass($1) AND contype = 'c' ORDER BY conname`
	return t.Query(ctx, describe, []any{w.QuotedTable()}, func(scan func(...any) error) error {
		var check string
		err := scan(&check)
		found.Checks = append(found.Checks, check)
		return err
	})
}

func (t *tableTx) inspectReferences(ctx context.Context, w *sqltool.TableWrite, found *sqltool.TargetTable) error {
	const describe = `SELECT DISTINCT conrelid::regclass::text, conrelid = confrelid FROM pg_constraint
		WHERE confrelid = to_regclass($1) AND contype = 'f' ORDER BY 1`
	return t.Query(ctx, describe, []any{w.QuotedTable()}, found.AddReference)
}
