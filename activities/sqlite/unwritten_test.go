package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestSQLiteSaysWhatIsKeptOut: rows that a trigger or a constraint keeps out of a table without an error are counted.
func TestSQLiteSaysWhatIsKeptOut(t *testing.T) {
	t.Parallel()
	lite, _ := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE odd (id INTEGER PRIMARY KEY, v TEXT)", nil)
	lite.RunStatement(t, "CREATE TRIGGER keep BEFORE INSERT ON odd WHEN NEW.id % 2 = 0 BEGIN SELECT RAISE(IGNORE); END", nil)
	lite.RunStatement(t, "CREATE TABLE once (id INTEGER PRIMARY KEY, v TEXT UNIQUE ON CONFLICT IGNORE)", nil)
	lite.RunStatement(t, "CREATE TABLE plain (id INTEGER PRIMARY KEY, v TEXT)", nil)
	load := func(table, mode string, rows int) *interpreter.RowCounts {
		list := make([]any, rows)
		for i := range list {
			list[i] = map[string]any{"id": i + 1, "v": "x"}
		}
		write := lite.TableInput(map[string]any{"table": table, "mode": mode, "key": "id"}, list)
		write.OperationKey = fmt.Sprint(table, mode, rows)
		result, err := lite.MakeAttempt(t, write)
		require.NoError(t, err)
		return result.Meta.LeftOut
	}
	for _, rows := range []int{2, 100} {
		for _, mode := range []string{"insert", "upsert"} {
			require.Equal(t, &interpreter.RowCounts{UnwrittenRows: rows / 2}, load("odd", mode, rows), "%s %d", mode, rows)
			lite.RunStatement(t, "DELETE FROM odd", nil)
		}
		require.Equal(t, &interpreter.RowCounts{UnwrittenRows: rows - 1}, load("once", "insert", rows))
		lite.RunStatement(t, "DELETE FROM once", nil)
	}
	require.Nil(t, load("plain", "insert", 3))
	require.Nil(t, load("plain", "insert_or_ignore", 5), "rows that are there are not kept out")
	require.Nil(t, load("plain", "upsert", 6))
}
