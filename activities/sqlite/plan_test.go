package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestPlanLeavesTheFileAlone: neither a file nor its folder is made, and one that is there keeps its bytes and
// how it keeps its log, be it open or not.
func TestPlanLeavesTheFileAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	catalogue := activities.NewCatalogue(activities.Resources{Directory: folder})
	t.Cleanup(func() { _ = catalogue.Close() })
	plan := func(path string) interpreter.TablePlan {
		in := tooltest.CompleteInput(interpreter.ToolInput{
			Fields: tooltest.Fields(map[string]any{"table": "t", "schema_contract": "evolve", "path": path}),
			Result: tooltest.Value([]any{map[string]any{"id": 1}}), Place: "sink",
		}, "sqlite")
		plan, err := activities.PlanTable(t.Context(), catalogue, in)
		require.NoError(t, err)
		return plan
	}
	missing := plan("new/rows.db")
	require.True(t, missing.NewFile)
	require.Equal(t, []interpreter.DDL{{Kind: interpreter.CreateTable, Statement: `CREATE TABLE IF NOT EXISTS "t" ("id" bigint)`}}, missing.DDL)
	require.Empty(t, content(t, folder))
	for _, mode := range []string{"delete", "wal"} {
		name := mode + ".db"
		db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, name)+"?_pragma=journal_mode("+mode+")")
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "CREATE TABLE t (name text)")
		require.NoError(t, err)
		open := content(t, folder)
		found := plan(name)
		require.Equal(t, []interpreter.DDL{{Kind: interpreter.AddColumn, Statement: `ALTER TABLE "t" ADD COLUMN "id" bigint`}}, found.DDL)
		require.Equal(t, open, content(t, folder), "while it is open")
		require.NoError(t, db.Close())
		closed := content(t, folder)
		require.Equal(t, found, plan(name))
		require.Equal(t, closed, content(t, folder))
	}
}

// content are the digests of the files in a folder, but for the index of a log, which is memory.
func content(t *testing.T, folder string) map[string][32]byte {
	t.Helper()
	found := map[string][32]byte{}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		require.NoError(t, err)
		if filepath.Ext(entry.Name()) == ".db-shm" {
			data = nil
		}
		found[entry.Name()] = sha256.Sum256(data)
	}
	return found
}
