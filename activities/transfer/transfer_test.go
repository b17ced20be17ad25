package transfer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
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

// TestRowsOfManyBatches: the maps of rows that were written become other rows, and each row arrives with its own values, as it is and in another shape,
// while a row is refused now and then.
func TestRowsOfManyBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	content := orders(1, 400, "a")
	w.put("orders.csv", append(content, "7,again,\n"...))
	for _, database := range []string{"sqlite", "postgres"} {
		for name, shape := range map[string]*interpreter.RowWork{
			"as it is": nil,
			"fields":   {Exclude: []string{"note"}, Fields: []interpreter.RowField{{Name: "note", Template: "{{ row.id + row.note }}"}}},
			"args":     {Only: true, Fields: []interpreter.RowField{{Name: "id", Template: "{{ int(row.id) }}"}, {Name: "note", Template: "{{ row.id + row.note }}"}}},
			"the row":  {Fields: []interpreter.RowField{{Name: "note", Template: "{{ to_json([row.id, row.note, row.name]) }}"}}},
		} {
			w.shape = shape
			want := parsed(t, content)
			for i := range want {
				switch row := &want[i]; name {
				case "fields":
					row[2] = row[0] + row[2]
				case "args":
					row[1], row[2] = "", row[0]+row[2]
				case "the row":
					text, err := json.Marshal([]string{row[0], row[2], row[1]})
					require.NoError(t, err)
					row[2] = string(text)
				}
			}
			to := with(w.table(database), map[string]any{"rejected": map[string]any{"table": "refused"}})
			result, err := w.move(database+name, database, map[string]any{"from": map[string]any{"tool": "file", "path": "orders.csv"}, "to": to, "batch": 7})
			require.NoError(t, err, name)
			require.Equal(t, want, w.rows(database), database+name)
			require.Equal(t, 1, result.Meta.LeftOut.RejectedRows)
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
