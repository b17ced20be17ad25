package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
)

// TestLedgerOfAnother: a table of the ledger that somebody else has made first is not used, as his triggers would run with the
// rights of the connection.
func TestLedgerOfAnother(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE target (id int)")
	db.Exec(t, "CREATE TABLE reprise_writes (operation_key text PRIMARY KEY, written_at timestamptz NOT NULL DEFAULT now(), fingerprint text, rows_written bigint)")
	db.Exec(t, "ALTER TABLE reprise_writes OWNER TO pg_monitor")
	write := pg.TableInput(map[string]any{"table": "target"}, map[string]any{"id": 1})
	write.OperationKey = "of the write"
	_, err := pg.MakeAttempt(t, write)
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, "ledger_owner", object.Type)
	require.Contains(t, object.Message, `table "reprise_writes" belongs to role "pg_monitor"`)
	require.Empty(t, db.Query(t, "SELECT FROM target"))
	db.Exec(t, "ALTER TABLE reprise_writes OWNER TO CURRENT_USER")
	_, err = pg.MakeAttempt(t, write)
	require.NoError(t, err)
	require.Len(t, db.Query(t, "SELECT id FROM target"), 1)
}
