package e2e_test

import (
	"bytes"
	"database/sql"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
)

// TestTransferOutlivesItsWorkers: workers are killed while a file is loaded, more often than an attempt may lose them that makes no
// progress, and the table has each of its rows once, as another reader of CSV finds them.
func TestTransferOutlivesItsWorkers(t *testing.T) {
	t.Parallel()
	const rows, kills = 3000, 5
	var text bytes.Buffer
	writer := csv.NewWriter(&text)
	require.NoError(t, writer.Write([]string{"id", "name"}))
	for id := range rows {
		require.NoError(t, writer.Write([]string{fmt.Sprint(id), fmt.Sprintf("row %d, \"quoted\"\n", id)}))
	}
	writer.Flush()
	var mu sync.Mutex
	fetched := 0
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fetched++
		mu.Unlock()
		http.ServeContent(w, r, "orders.csv", time.Unix(1_700_000_000, 0), bytes.NewReader(text.Bytes()))
	}))
	t.Cleanup(source.Close)
	w := newWorld(t)
	w.recordAs("transfer")
	worker := w.spawn()
	run := w.start(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: load}
workload: {source: ""}
workflow:
  - step: start
    tool: sqlite
    path: rows.db
    statement: CREATE TABLE orders (id INTEGER, name TEXT)
    next: load
  - step: load
    tool: transfer
    from: {tool: http, url: "{{ source }}/orders.csv"}
    to: {tool: sqlite, path: rows.db, table: orders}
    batch: 10
output: "{{ load }}"
`, map[string]any{"source": source.URL})
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db")+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	count := func() (n int) {
		_ = db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n) // 0 while the table is not there
		return n
	}
	shown := func() int64 {
		for _, step := range w.status(run).Steps {
			if step.Step == "load" && step.EndedAt.IsZero() && step.Rows != nil {
				return step.Rows.Written
			}
		}
		return 0
	}
	seen := int64(0)
	for range kills {
		before := count()
		require.Eventually(t, func() bool { return count() > before }, testenv.Within(time.Minute), 5*time.Millisecond)
		seen = max(seen, shown())
		if count() == rows {
			break
		}
		worker.Kill()
		worker = w.spawn()
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, map[string]any{"rows": rows, "bytes": text.Len(), "batches": rows / 10, "rejected": 0}, result.Result.Data)
	records, err := csv.NewReader(bytes.NewReader(text.Bytes())).ReadAll()
	require.NoError(t, err)
	found := w.query("SELECT id, name FROM orders ORDER BY id")
	require.Len(t, found, rows)
	for i, row := range found {
		require.Equal(t, records[i+1], []string{expression.Text(row.(map[string]any)["id"]), row.(map[string]any)["name"].(string)})
	}
	require.Greater(t, fetched, 1)
	require.Positive(t, seen, "the status shows the rows that are written so far")
}

// TestQueriesOutliveTheirWorkers: workers are killed while the rows of a query are moved, and the table has each row that the values of
// its statement select, once.
func TestQueriesOutliveTheirWorkers(t *testing.T) {
	t.Parallel()
	const rows, kills = 2000, 3
	w := newWorld(t)
	worker := w.spawn()
	run := w.start(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: copy}
workload: {name: "o'brien"}
workflow:
  - step: orders
    tool: sqlite
    path: rows.db
    statement: CREATE TABLE orders (id INTEGER, name TEXT)
    next: source
  - step: source
    tool: sqlite
    path: source.db
    statement: CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT)
    next: fill
  - step: fill
    tool: sqlite
    path: source.db
    statement: WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 4000) INSERT INTO source SELECT 9007199254740992 + n, CASE n % 2 WHEN 0 THEN 'o''brien' ELSE 'x' END FROM s
    next: load
  - step: load
    tool: transfer
    from: {tool: sqlite, path: source.db, statement: "SELECT id, upper(name) AS name FROM source WHERE name = {{ name }}", order_by: id}
    to: {tool: sqlite, path: rows.db, table: orders, fields: {name: "{{ row.name + '!' }}"}}
    batch: 10
output: "{{ load }}"
`, nil)
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db")+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	count := func() (n int) {
		_ = db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n) // 0 while the table is not there
		return n
	}
	for range kills {
		before := count()
		require.Eventually(t, func() bool { return count() > before || count() == rows }, testenv.Within(time.Minute), 5*time.Millisecond)
		if count() == rows {
			break
		}
		worker.Kill()
		worker = w.spawn()
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, rows, result.Result.Data.(map[string]any)["rows"])
	found := w.query("SELECT id, name FROM orders ORDER BY id")
	require.Len(t, found, rows)
	for i, row := range found {
		require.Equal(t, map[string]any{"id": 9007199254740992 + 2*(i+1), "name": "O'BRIEN!"}, row)
	}
}
