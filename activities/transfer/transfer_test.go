package transfer_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryRowArrivesOnce: whichever write a worker dies at, before it or behind it, another one continues, and the table has what
// another reader of CSV finds in the source.
func TestEveryRowArrivesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	content := orders(1, 25, "a")
	want := parsed(t, content)
	w.put("orders.csv.gz", zipped(content[:100], content[100:]))
	for _, database := range []string{"sqlite", "postgres"} {
		for mode, words := range map[string]map[string]any{
			"insert": {}, "insert_or_ignore": {"mode": "insert_or_ignore"}, "upsert": {"mode": "upsert", "key": "id"},
			"replace": {"mode": "replace"}, "replace by key": {"mode": "replace", "key": "id"},
			"delete_missing": {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1},
		} {
			for at := range 6 {
				for _, before := range []bool{true, false} {
					to := with(w.table(database), words)
					if words["mode"] == "replace" || words["delete_missing"] != nil {
						w.query(database, "INSERT INTO orders (id, name) VALUES (3, 'old'), (99, 'old')")
					}
					fields := map[string]any{"from": map[string]any{"tool": "file", "path": "orders.csv.gz"}, "to": to, "batch": 10}
					key := fmt.Sprint(database, mode, at, before)
					if _, err := w.attempt(key, &mortal{Ledger: w.sql[database], at: at, before: before}, database, fields); at > 0 && err != nil {
						require.ErrorIs(t, err, errDied, key)
					} else {
						require.NoError(t, err, key)
					}
					result, err := w.move(key, database, fields)
					require.NoError(t, err, key)
					require.Equal(t, map[string]any{"rows": 25, "bytes": len(zipped(content[:100], content[100:])), "batches": 3, "rejected": 0}, result.Data.Data, key)
					require.Equal(t, want, w.rows(database), key)
					require.EqualValues(t, 25, result.Meta.Rows.Read, key)
				}
			}
		}
	}
}

// TestAnswersAreGivenAgain: a transfer that is done says so without its source.
func TestAnswersAreGivenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.csv", orders(1, 3, "a"))
	fields := map[string]any{"from": map[string]any{"tool": "file", "path": "a.csv"}, "to": w.table("sqlite")}
	first, err := w.move("k", "sqlite", fields)
	require.NoError(t, err)
	fields["from"] = map[string]any{"tool": "file", "path": "missing.csv"}
	again, err := w.move("k", "sqlite", fields)
	require.NoError(t, err)
	require.Equal(t, first.Data, again.Data)
	require.Equal(t, first.Meta.Rows.Written, again.Meta.Rows.Written)
}

// TestChildrenArriveOnce: the lists of rows are in a table of their own once, whichever write a worker dies at.
func TestChildrenArriveOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var content bytes.Buffer
	for id := range 7 {
		fmt.Fprintf(&content, `{"id": %d, "lines": [{"line": 1}, {"line": 2}]}`+"\n", id)
	}
	w.put("orders.jsonl", content.Bytes())
	children := map[string]any{"lines": map[string]any{"table": "lines", "key": []any{"order_id", "line"}, "with": map[string]any{"order_id": "id"}}}
	for mode, words := range map[string]map[string]any{"insert": {}, "upsert": {"mode": "upsert", "key": "id"}} {
		for at := range 5 {
			for _, before := range []bool{true, false} {
				to := with(with(w.table("sqlite"), words), map[string]any{"children": children})
				w.query("sqlite", "DROP TABLE IF EXISTS lines")
				w.query("sqlite", "CREATE TABLE lines (order_id integer, line integer, PRIMARY KEY (order_id, line))")
				fields := map[string]any{"from": map[string]any{"tool": "file", "path": "orders.jsonl"}, "to": to, "batch": 3}
				key := fmt.Sprint(mode, at, before)
				_, _ = w.attempt(key, &mortal{Ledger: w.sql["sqlite"], at: at, before: before}, "sqlite", fields)
				_, err := w.move(key, "sqlite", fields)
				require.NoError(t, err, key)
				require.Len(t, w.rows("sqlite"), 7, key)
				require.Equal(t, []any{map[string]any{"n": 14}}, w.query("sqlite", "SELECT count(*) AS n FROM lines JOIN orders ON id = order_id"), key)
			}
		}
	}
}
