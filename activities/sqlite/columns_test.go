package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// TestSQLiteKnowsTheColumnsThatThereAre has others change a table between writes: the columns that one write
// has read are not those of the next.
func TestSQLiteKnowsTheColumnsThatThereAre(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	catalogue := activities.NewCatalogue(activities.Resources{Directory: directory})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	lite := tooltest.SQL{Catalogue: catalogue, Name: "sqlite", Auth: "sqlite:columns.db"}
	lite.RunStatement(t, "CREATE TABLE r (id INTEGER PRIMARY KEY, word TEXT)", nil)
	other, err := sql.Open("sqlite", filepath.Join(directory, "columns.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	writes := 0
	write := func(rows ...any) error {
		in := lite.TableInput(map[string]any{"table": "r", "schema_contract": "evolve"}, rows)
		writes++
		in.OperationKey = strconv.Itoa(writes)
		_, err := lite.MakeAttempt(t, in)
		return err
	}

	require.NoError(t, write(map[string]any{"id": 1, "word": "a"}))
	require.NoError(t, write(map[string]any{"id": 2, "word": "b"}), "with columns that are known")
	_, err = other.ExecContext(t.Context(), "ALTER TABLE r ADD COLUMN extra TEXT")
	require.NoError(t, err)
	require.NoError(t, write(map[string]any{"id": 3, "extra": "c"}), "a known table would get the column again")

	// The write adds a column, and is rolled back for its last row. Then another program adds it, which makes
	// the same version of the schema.
	require.Error(t, write(map[string]any{"id": 4, "more": 1}, map[string]any{"id": 1, "more": 2}))
	_, err = other.ExecContext(t.Context(), "ALTER TABLE r ADD COLUMN other INTEGER")
	require.NoError(t, err)
	require.NoError(t, write(map[string]any{"id": 4, "more": 1}))

	require.Equal(t, []any{
		map[string]any{"id": 3, "word": nil, "extra": "c", "other": nil, "more": nil},
		map[string]any{"id": 4, "word": nil, "extra": nil, "other": nil, "more": 1},
	}, lite.RunStatement(t, "SELECT * FROM r WHERE id > 2 ORDER BY id", nil))
}
