package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestSQLiteDeletesNoOtherRows: a table that is declared to delete rows that are in the way of new ones keeps them, and the write fails.
func TestSQLiteDeletesNoOtherRows(t *testing.T) {
	t.Parallel()
	lite, _ := liteTool(t)
	for i, columns := range []string{
		"id INTEGER PRIMARY KEY, mail TEXT UNIQUE ON CONFLICT REPLACE, n INTEGER",
		"id INTEGER PRIMARY KEY ON CONFLICT REPLACE, mail TEXT, n INTEGER, UNIQUE (mail, n) ON  conflict replace",
	} {
		table := fmt.Sprint("own", i)
		lite.RunStatement(t, "CREATE TABLE "+table+" ("+columns+")", nil)
		load := func(mode string, rows ...any) interpreter.ToolInput {
			write := lite.TableInput(map[string]any{"table": table, "mode": mode, "key": "id"}, rows)
			write.OperationKey = fmt.Sprint(table, mode, rows)
			return write
		}
		_, err := lite.MakeAttempt(t, load("upsert", map[string]any{"id": 1, "mail": "a", "n": 1}, map[string]any{"id": 2, "mail": "b", "n": 1}))
		require.NoError(t, err)
		for _, mode := range []string{"insert", "upsert"} {
			failure := lite.FailingCall(t, load(mode, map[string]any{"id": 4, "mail": "c", "n": 2}, map[string]any{"id": 3, "mail": "a", "n": 1}))
			require.Contains(t, failure.Message, "row 2", mode)
			require.Contains(t, failure.Message, "the table says ON CONFLICT REPLACE, which would delete the existing row", mode)
		}
		_, err = lite.MakeAttempt(t, load("upsert", map[string]any{"id": 1, "mail": "a", "n": 1}, map[string]any{"id": 5, "mail": "d", "n": 5}))
		require.NoError(t, err, "a row may take its own place")
		_, err = lite.MakeAttempt(t, load("insert_or_ignore", map[string]any{"id": 1, "mail": "z", "n": 9}))
		require.NoError(t, err)
		require.Equal(t, []any{map[string]any{"all": "1 a 1,2 b 1,5 d 5"}},
			lite.RunStatement(t, "SELECT group_concat(id || ' ' || mail || ' ' || n) AS \"all\" FROM (SELECT * FROM "+table+" ORDER BY id)", nil))
	}
}

// TestSQLiteStoresTextsInColumnsOfDates: a column whose declared type makes numbers of texts refuses those, and keeps others.
func TestSQLiteStoresTextsInColumnsOfDates(t *testing.T) {
	t.Parallel()
	lite, _ := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE dated (id INTEGER PRIMARY KEY, d DATE, at DATETIME, s STRING, amount MONEY, n NUMBER(10))", nil)
	load := func(row map[string]any) interpreter.ToolInput {
		row["id"] = 1
		return lite.TableInput(map[string]any{"table": "dated", "mode": "upsert", "key": "id"}, []any{row})
	}
	for _, column := range []string{"d", "at", "s"} {
		for _, text := range []string{"20240101", "1e5", "007", "1.50", "-3", " 12 "} {
			failure := lite.FailingCall(t, load(map[string]any{column: text}))
			require.Contains(t, failure.Message, fmt.Sprintf("row 1, column %q: %q is text that SQLite would turn into a number", column, text))
		}
	}
	_, err := lite.MakeAttempt(t, load(map[string]any{"d": "2024-01-01", "at": 1704067200, "s": "a7", "amount": "12.50", "n": "42"}))
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"types": "text integer text real integer"}},
		lite.RunStatement(t, "SELECT typeof(d) || ' ' || typeof(at) || ' ' || typeof(s) || ' ' || typeof(amount) || ' ' || typeof(n) AS types FROM dated", nil))
}

// TestSQLiteReportsUnwrittenRows: rows that a trigger or a constraint keeps out of a table without an error are counted.
func TestSQLiteReportsUnwrittenRows(t *testing.T) {
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
