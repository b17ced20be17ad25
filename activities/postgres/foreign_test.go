package postgres_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestForeignTablesAreRefused: another server commits the rows of a foreign table by itself, so a write of any mode to one,
// or to a table with such a partition, is refused before it writes; other tables with partitions are not.
func TestForeignTablesAreRefused(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	at, err := url.Parse(db.URL)
	require.NoError(t, err)
	password, _ := at.User.Password()
	db.Exec(t, `CREATE EXTENSION postgres_fdw; CREATE EXTENSION file_fdw;
		CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '`+at.Hostname()+`', port '`+at.Port()+`', dbname '`+db.Name+`');
		CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '`+at.User.Username()+`', password '`+password+`');
		CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
		CREATE TABLE behind (id int PRIMARY KEY, n int);
		CREATE FOREIGN TABLE far (id int, n int) SERVER here OPTIONS (table_name 'behind');
		CREATE FOREIGN TABLE in_file (id int, n int) SERVER files OPTIONS (filename '/dev/null');
		CREATE TABLE mixed (id int, n int) PARTITION BY RANGE (id);
		CREATE TABLE mixed_near PARTITION OF mixed FOR VALUES FROM (0) TO (10);
		CREATE FOREIGN TABLE mixed_far PARTITION OF mixed FOR VALUES FROM (10) TO (20) SERVER here OPTIONS (table_name 'behind');
		CREATE TABLE near (id int, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
		CREATE TABLE near_a PARTITION OF near FOR VALUES FROM (0) TO (10)`)
	db.Exec(t, "INSERT INTO far VALUES (1, 1)")
	rows := []any{map[string]any{"id": 2, "n": 2}}
	for _, mode := range []map[string]any{
		{"mode": "insert"},
		{"mode": "insert_or_ignore"},
		{"mode": "upsert", "key": []any{"id"}},
		{"mode": "upsert", "key": []any{"id"}, "delete_missing": true},
		{"mode": "replace"},
	} {
		planned := func(table string) interpreter.ToolInput {
			mode["table"] = table
			in := stagedInput(pg, table, mode, "", rows...)
			in.Tool = "postgres"
			return in
		}
		write := func(table string) error {
			mode["table"] = table
			in := stagedInput(pg, table, mode, "", rows...)
			if mode["mode"] != "replace" && mode["delete_missing"] == nil {
				in.Staging = nil
			}
			_, err := pg.MakeAttempt(t, in)
			return err
		}
		for _, table := range []string{"far", "in_file", "mixed"} {
			failure := tooltest.ErrorObject(t, write(table))
			require.Equal(t, interpreter.ClassFinal, failure.Class, "%s: %v", table, mode)
			require.Contains(t, failure.Message, "a foreign table", "%s: %v", table, mode)
			_, err := activities.PlanTable(t.Context(), pg.Catalogue, planned(table))
			require.ErrorContains(t, err, "a foreign table", "starter plan says so: %s: %v", table, mode)
		}
		require.NoError(t, write("near"), "%v", mode)
	}
	require.Equal(t, []map[string]any{{"id": "1"}}, db.Query(t, "SELECT id::text AS id FROM behind"), "the foreign table works, and nothing was written")
}
