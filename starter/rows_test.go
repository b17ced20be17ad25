package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/stats"
	"reprise/internal/test/samples"
	"reprise/interpreter"
)

// bookOfRows reads orders by their watermark, writes them to two tables by a child run for each, and deletes some.
const bookOfRows = `
  - {step: make0, tool: sqlite, path: rows.db, statement: "CREATE TABLE log (op text)", next: make1}
  - {step: make1, tool: sqlite, path: rows.db, statement: "CREATE TABLE orders (id integer PRIMARY KEY, n integer)", next: make2}
  - {step: make2, tool: sqlite, path: rows.db, statement: "CREATE TRIGGER i AFTER INSERT ON orders BEGIN INSERT INTO log VALUES ('insert'); END", next: make3}
  - {step: make3, tool: sqlite, path: rows.db, statement: "CREATE TRIGGER u AFTER UPDATE ON orders BEGIN INSERT INTO log VALUES ('update'); END", next: make4}
  - {step: make4, tool: sqlite, path: rows.db, statement: "CREATE TRIGGER d AFTER DELETE ON orders BEGIN INSERT INTO log VALUES ('delete'); END", next: orders}
  - step: orders
    tool: http
    url: API/orders
    incremental: {cursor_path: id, initial_value: 0, state: STATE}
    sink: {tool: sqlite, path: rows.db, table: orders, mode: upsert, key: id}
    next: each
  - step: each
    tool: playbook
    loop: {collection: [1, 2, 3], element: k, mode: parallel}
    workload: {k: "{{ k }}"}
    workflow:
      - step: items
        tool: http
        url: "API/items"
        sink: {tool: sqlite, path: rows.db, table: items, schema_contract: evolve}
    next: trim
  - step: trim
    tool: sqlite
    path: rows.db
    statement: DELETE FROM orders WHERE id < 3
    next: counted
  - step: counted
    tool: sqlite
    path: rows.db
    statement: |
      SELECT (SELECT count(*) FROM log WHERE op = 'insert') + (SELECT count(*) FROM log WHERE op = 'update') AS written,
        (SELECT count(*) FROM log WHERE op = 'delete') AS deleted, (SELECT max(id) FROM orders) AS newest, (SELECT count(*) FROM items) AS items
output: "{{ counted[0] }}"
`

// TestRowsOfStatsAndReportAreThoseOfTheTables: figures and report of a run say what the database has counted by itself, the rows of
// child runs once.
func TestRowsOfStatsAndReportAreThoseOfTheTables(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/items" {
			_, _ = fmt.Fprint(w, `[{"n": 1}, {"n": 2}]`)
			return
		}
		_, _ = fmt.Fprint(w, `[{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 3}, {"id": 4, "n": 4}]`)
	}))
	t.Cleanup(api.Close)
	id := d.start(strings.NewReplacer("API", api.URL, "STATE", "rows-"+d.queue).Replace(bookOfRows))
	result := d.ends(id)
	require.Equal(t, interpreter.Completed, result.Status, "%v", result.Error)
	counted := result.Result.Data.(map[string]any)
	number := func(name string) int64 {
		n, err := json.Number(fmt.Sprint(counted[name])).Int64()
		require.NoError(t, err)
		return n
	}
	require.Equal(t, []int64{4, 2, 4, 6}, []int64{number("written"), number("deleted"), number("newest"), number("items")})
	var sums stats.Stats
	require.NoError(t, json.Unmarshal([]byte(d.does("stats", id, "--output", "json")), &sums))
	want := interpreter.RowTotals{Read: 4 + 6 + 1, Written: number("written") + number("items"), Deleted: number("deleted")}
	same := func(got *interpreter.Rows) {
		t.Helper()
		totals := got.Totals()
		require.Equal(t, want, interpreter.RowTotals{Read: totals.Read, Written: totals.Written, Deleted: totals.Deleted})
	}
	same(sums.Rows)
	same(sums.Runs[0].Rows)
	same(result.Rows)
	byTable := map[string]int64{}
	for _, table := range sums.Rows.Tables {
		byTable[table.Table] += table.Written
	}
	require.Equal(t, map[string]int64{"orders": number("written"), "items": number("items"), "rows.db": 0}, byTable)
	for _, of := range sums.Steps {
		if of.Step == "each" || of.Step == "items" {
			require.Equal(t, []any{number("items"), of.Step == "items"}, []any{of.Rows.Totals().Written, of.InChildRuns}, of.Step)
		}
	}
	require.Len(t, sums.Watermarks, 1)
	require.Equal(t, []string{"0", fmt.Sprint(number("newest"))}, []string{fmt.Sprint(sums.Watermarks[0].Before.Data), fmt.Sprint(sums.Watermarks[0].After.Data)})
	text := d.does("stats", id)
	require.Contains(t, text, "orders: watermark from 0 to 4\n")
	page := samples.VisibleText(t, d.does("report", id, "-o", "-"))
	for _, line := range []string{"11\nrows read\n", "10\nrows written\n", "2\nrows deleted\n", "orders: watermark from 0 to 4\n", "Rows by step of child runs\n"} {
		require.Contains(t, page, line)
	}
}
