package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestSQLitePrivate: the database of a local server, and what else programs keep for themselves, is out of reach, by whatever name.
// A new file is this user's alone.
func TestSQLitePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Directory: dir, Private: []string{filepath.Join(dir, "state/temporal.db")}, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for _, name := range []string{".reprise/temporal.db", ".reprise/temporal.db.key", "state/temporal.db"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Symlink(".reprise/temporal.db", filepath.Join(dir, "soft.db")))
	require.NoError(t, os.Symlink(".reprise", filepath.Join(dir, "folder")))
	require.NoError(t, os.Link(filepath.Join(dir, "state/temporal.db"), filepath.Join(dir, "hard.db")))
	for _, path := range []string{
		".reprise/temporal.db", ".reprise/./temporal.db", ".reprise/temporal.db-wal", "soft.db", "folder/temporal.db", "hard.db", "state/temporal.db",
		"state/../state/temporal.db", "rows.csv.reprise", ".reprise/temporal.db.key", filepath.Join(dir, ".reprise/temporal.db"),
	} {
		for _, field := range []string{"path", "auth"} {
			fields, auth := map[string]any{"statement": "SELECT 1"}, "sqlite:"+path
			if field == "path" {
				fields["path"], auth = path, ""
			}
			in := tooltest.CompleteInput(interpreter.ToolInput{Step: "a", Fields: tooltest.Fields(fields), Auth: auth}, "sqlite")
			_, err := tooltest.Call(t, c, "sqlite", "sqlite", in)
			require.ErrorContains(t, err, "one of the worker's own files", "%s %s", field, path)
		}
	}
	_, err := tooltest.Call(t, c, "sqlite", "sqlite", tooltest.CompleteInput(interpreter.ToolInput{Step: "a", Fields: tooltest.Fields(map[string]any{"path": ".reprise/made/rows.db", "statement": "CREATE TABLE a (b)"})}, "sqlite"))
	require.NoError(t, err)
	for name, mode := range map[string]os.FileMode{".reprise/made": 0o700, ".reprise/made/rows.db": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}
