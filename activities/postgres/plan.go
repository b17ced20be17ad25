package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// PlanWrite predicts what a write would do to its table, in a read-only transaction.
func (t *Tool) PlanWrite(ctx context.Context, in interpreter.ToolInput) (plan interpreter.TablePlan, err error) {
	err = t.inSession(ctx, in, sessionRun(in), func(conn *pgx.Conn) error {
		err := readOnly(ctx, conn, func(tx pgx.Tx) (err error) {
			if plan, err = sqltool.PlanWrite(ctx, &tableTx{stateTx: stateTx{tx}}, in); err != nil {
				return err
			}
			return plan.EachTable(func(plan interpreter.TablePlan) error {
				name, err := sqltool.NameOf(plan.Name)
				switch {
				case err != nil:
					return err
				case plan.Exists && plan.Mode == sqltool.ModeUpsert:
					return isUnique(ctx, tx, &name, plan)
				case !plan.Exists && plan.FromRows:
					return mayCreate(ctx, tx, &name, in.Auth)
				}
				return nil
			})
		})
		return classifyPlan(ctx, err)
	})
	return plan, err
}

// isUnique refuses an upsert without a unique index on the key. Views are accepted, because their tables may have
// one.
func isUnique(ctx context.Context, tx pgx.Tx, w *sqltool.TableName, plan interpreter.TablePlan) error {
	const describe = `SELECT c.relkind IN ('r', 'p'), coalesce(array_agg(array_to_json(ARRAY(
			SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
		))::text) FILTER (WHERE i.indrelid IS NOT NULL), '{}')
		FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
		WHERE c.oid = to_regclass($1) GROUP BY c.relkind`
	var isTable bool
	var lists []string
	if err := tx.QueryRow(ctx, describe, w.QuotedTable()).Scan(&isTable, &lists); err != nil || !isTable {
		return err
	}
	indexes := make([][]string, len(lists))
	for i, list := range lists {
		if err := json.Unmarshal([]byte(list), &indexes[i]); err != nil {
			return err
		}
	}
	return sqltool.CheckUnique(plan, indexes)
}

// mayCreate returns an error for a table that cannot be created, because its schema does not exist or the user may
// not create tables in it.
func mayCreate(ctx context.Context, tx pgx.Tx, w *sqltool.TableName, auth string) error {
	schema := ""
	if len(w.Table) > 1 {
		schema = w.Table[len(w.Table)-2]
	}
	var exists, allowed, makes bool
	const describe = `SELECT n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'CREATE'), false), has_database_privilege(current_database(), 'CREATE')
		FROM (SELECT CASE WHEN $1 = '' THEN current_schema() ELSE $1 END AS name) AS s LEFT JOIN pg_namespace n ON n.nspname = s.name`
	if err := tx.QueryRow(ctx, describe, schema).Scan(&exists, &allowed, &makes); err != nil {
		return err
	}
	switch {
	case !exists && schema == "":
		return tool.Errorf("table %q cannot be created: no schema of search_path exists", w.Shown)
	case !exists && !makes:
		return tool.Errorf("table %q cannot be created: there is no schema %q, and the user of connection %q may not create one; create it first, or grant CREATE on the database",
			w.Shown, schema, auth)
	case exists && !allowed:
		return tool.Errorf("table %q cannot be created: the user of connection %q may not create tables in its schema; grant it CREATE", w.Shown, auth)
	}
	return nil
}

// classifyPlan turns an error of the server into one for the playbook.
func classifyPlan(ctx context.Context, err error) error {
	if _, own := errors.AsType[*tool.Error](err); own || err == nil {
		return err
	}
	return fmt.Errorf("look up the table: %w", classifyError(ctx, err))
}
