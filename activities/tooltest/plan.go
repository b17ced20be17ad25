package tooltest

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

var planCases = tableCases{
	"plans without rows": plansWithoutRows,
	"plans of replace":   plansOfReplace,
	"plans have kinds":   plansHaveKinds,
}

// twins counts the tables on which plans are carried out.
var twins atomic.Int64

// planAndApply plans a write, which must change nothing, and carries the plan out on a copy of the table.
// What it gives checks the plan once the write was made: an error that is predicted is the write's, and the copy has the
// schema that the write has made.
func (s *TableTest) planAndApply(in interpreter.ToolInput) (made func(error)) {
	s.Helper()
	in = CompleteInput(in, s.db.Name)
	in.Tool = s.db.Name
	name := expression.Text(in.Fields["table"].Data)
	own := *s
	own.Table = name
	before := own.tableSchema()
	plan, refused := activities.PlanTable(s.t.Context(), s.db.Catalogue, in)
	require.Equal(s, before, own.tableSchema(), "a plan has changed the table")
	twin := *s
	twin.Table = fmt.Sprintf("twin%d", twins.Add(1))
	rename := strings.NewReplacer(`"`+name+`"`, `"`+twin.Table+`"`, "TABLE "+name+" ", "TABLE "+twin.Table+" ")
	if len(before) > 0 {
		copied := "CREATE TABLE " + twin.Table + " (LIKE " + name + " INCLUDING ALL)"
		if s.db.Name == "sqlite" {
			copied = rename.Replace(s.Query("SELECT sql FROM sqlite_master WHERE name = {{ name }}", row{"name": name}).([]any)[0].(row)["sql"].(string))
		}
		s.Query(copied, nil)
	}
	for _, ddl := range plan.DDL {
		if refused == nil {
			require.Contains(s, ddl.Statement, `"`+name+`"`)
			s.Query(rename.Replace(ddl.Statement), nil)
		}
	}
	return func(failed error) {
		s.Helper()
		if refused != nil {
			require.Error(s, failed)
			require.Equal(s, ErrorObject(s.t, failed).Message, ErrorObject(s.t, refused).Message)
			return
		}
		if failed == nil {
			require.Equal(s, own.tableSchema(), twin.tableSchema(), "the plan is not what the write has done: %v", plan.DDL)
		}
	}
}

// tableSchema returns the columns of the table, with their types, and whether they are of the primary key and may be NULL.
func (s *TableTest) tableSchema() []any {
	s.Helper()
	query := "SELECT name, lower(type) AS type, \"notnull\", pk FROM pragma_table_info('" + s.Table + "')"
	if s.db.Name == "postgres" {
		query = `SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS "notnull",
			EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey)) AS pk
			FROM pg_attribute WHERE attrelid = to_regclass('` + s.Table + `') AND attnum > 0 ORDER BY attnum`
	}
	return s.Query(query, nil).([]any)
}

// planFields is that of a write whose rows are not known.
func (s *TableTest) planFields(fields row) (interpreter.TablePlan, error) {
	s.Helper()
	in := CompleteInput(s.WriteInput(fields), s.db.Name)
	in.Result, in.Tool = nil, s.db.Name
	return activities.PlanTable(s.t.Context(), s.db.Catalogue, in)
}

// plansOfReplace: what would be replaced or deleted is known before a run, and so is what cannot be.
func plansOfReplace(s *TableTest) {
	where := func(column, contract string) row {
		return row{"mode": "replace", "schema_contract": contract, "columns": row{"day": "date"}, "replace_where": row{"column": column, "to": 9}}
	}
	s.Query("SELECT 1 AS n", nil) // the file is there
	found, err := s.planFields(where("day", "evolve"))
	require.NoError(s, err)
	require.Equal(s, &interpreter.ReplacedRows{Column: "day", To: "9"}, found.ReplaceWhere)
	s.Create("id bigint PRIMARY KEY, n integer")
	found, err = s.planFields(row{"key": "id", "mode": "upsert", "delete_missing": true, "max_delete": 0.25})
	require.NoError(s, err)
	require.InDelta(s, 0.25, *found.MaxDelete, 0)
	_, err = s.planFields(where("nn", "freeze"))
	require.Contains(s, ErrorObject(s.t, err).Message, `replace_where: table "`+s.Table+`" has no column "nn": did you mean "n"?`)
	_, err = s.planFields(where("nn", "evolve"))
	require.NoError(s, err, "rows may have it")
	s.Query("CREATE TABLE "+s.Table+"_child (id bigint REFERENCES "+s.Table+" (id))", nil)
	_, err = s.planFields(where("n", "freeze"))
	require.Contains(s, ErrorObject(s.t, err).Message, "foreign keys of "+s.Table+"_child reference table")
}

// plansHaveKinds: what each statement of a plan does is known without reading it.
func plansHaveKinds(s *TableTest) {
	kinds := func(fields row) []interpreter.DDLKind {
		fields["schema_contract"] = row{"tables": "evolve", "columns": "evolve", "data_type": "evolve"}
		in := CompleteInput(s.WriteInput(fields, row{"id": 1, "n": 1.5}), s.db.Name)
		in.Tool = s.db.Name
		plan, err := activities.PlanTable(s.t.Context(), s.db.Catalogue, in)
		require.NoError(s, err)
		return lists.Map(plan.DDL, func(ddl interpreter.DDL) interpreter.DDLKind { return ddl.Kind })
	}
	s.Query("SELECT 1 AS n", nil) // the file is there
	require.Equal(s, []interpreter.DDLKind{interpreter.CreateTable}, kinds(row{}))
	s.Create("id bigint PRIMARY KEY")
	require.Equal(s, []interpreter.DDLKind{interpreter.AddColumn}, kinds(row{}))
	if s.db.Name == "postgres" {
		require.Equal(s, []interpreter.DDLKind{interpreter.CreateSchema, interpreter.CreateTable}, kinds(row{"table": "nowhere." + s.Table}))
		s.Query("ALTER TABLE "+s.Table+" ADD COLUMN n integer", nil)
		require.Equal(s, []interpreter.DDLKind{interpreter.WidenColumn}, kinds(row{}))
	}
}

// plansWithoutRows: of rows that are not known, what is declared is.
func plansWithoutRows(s *TableTest) {
	plan := s.planFields
	s.Query("SELECT 1 AS n", nil) // the file is there
	evolve := row{"schema_contract": "evolve", "key": "id", "mode": "upsert", "columns": row{"day": "date"}, "rejected": row{"table": "refused"}}
	found, err := plan(evolve)
	require.NoError(s, err)
	qualified := map[string]string{"postgres": "public." + s.Table, "sqlite": s.Table}[s.db.Name]
	create := `CREATE TABLE IF NOT EXISTS "` + s.Table + `" ("id" … NOT NULL, "day" date, PRIMARY KEY ("id"))`
	require.Equal(s, interpreter.TablePlan{
		Name: s.Table, Qualified: qualified, Mode: "upsert", Key: []string{"id"}, DDL: []interpreter.DDL{{Kind: interpreter.CreateTable, Statement: create}}, FromRows: true, Rejected: "refused",
	}, found)
	found, err = plan(row{"schema_contract": "evolve"})
	require.NoError(s, err)
	require.Equal(s, interpreter.TablePlan{Name: s.Table, Qualified: qualified, Mode: "insert", FromRows: true}, found)
	_, err = plan(row{"key": "id"})
	require.Contains(s, ErrorObject(s.t, err).Message, "does not exist: create it first")
	found, err = plan(row{"schema_contract": "evolve", "mode": "replace", "columns": row{"day": "date"}})
	require.NoError(s, err)
	require.Equal(s, []interpreter.DDL{{Kind: interpreter.CreateTable, Statement: `CREATE TABLE IF NOT EXISTS "` + s.Table + `" ("day" date)`}}, found.DDL)
	require.Equal(s, "replace", found.Mode)
	require.Empty(s, s.tableSchema())
	s.Create("id bigint PRIMARY KEY, n integer")
	found, err = plan(evolve)
	require.NoError(s, err)
	require.True(s, found.Exists)
	require.True(s, found.FromRows)
	require.Empty(s, found.DDL)
	found, err = plan(row{"key": "id"})
	require.NoError(s, err)
	require.False(s, found.FromRows, "a table that is frozen stays as it is")
	_, err = plan(row{"schema_contract": "evolve", "key": "other", "mode": "upsert"})
	require.Contains(s, ErrorObject(s.t, err).Message, `has no column "other"`)
	_, err = plan(row{"key": "n", "mode": "upsert"})
	require.Contains(s, ErrorObject(s.t, err).Message, `mode upsert needs a primary key or unique index on exactly ("n")`)
	s.Query(`CREATE UNIQUE INDEX `+s.Table+`_part ON `+s.Table+` (n) WHERE n > 0`, nil)
	_, err = plan(row{"key": "n", "mode": "upsert"})
	require.Contains(s, ErrorObject(s.t, err).Message, `unique index on exactly ("n")`, "one of some rows is none")
	s.Query(`CREATE UNIQUE INDEX `+s.Table+`_two ON `+s.Table+` (n, id)`, nil)
	for _, key := range []any{"id", []any{"id", "n"}, []any{"n", "id"}} {
		_, err = plan(row{"key": key, "mode": "upsert"})
		require.NoError(s, err, "%v", key)
	}
}
