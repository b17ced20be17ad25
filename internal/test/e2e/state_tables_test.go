package e2e_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// twoTables writes pages to one table and the whole result to another one of the same database.
const twoTables = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: two_tables}
workload: {api: ""}
workflow:
  - step: start
    tool: sqlite
    auth: sqlite:rows.db
    statement: CREATE TABLE IF NOT EXISTS raw (id INTEGER, version INTEGER, updated_at TEXT)
    next: create
  - step: create
    tool: sqlite
    auth: sqlite:rows.db
    statement: CREATE TABLE IF NOT EXISTS sales (id INTEGER, version INTEGER, updated_at TEXT)
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/sales"
    params: {updated_since: "{{ incremental.value }}", limit: 5, offset: 0}
    incremental: {cursor_path: updated_at, initial_value: "2026-01-01T00:00:00Z", key: id}
    retry:
      - when: "{{ response.has_more }}"
        then:
          next_call: {params: {offset: "{{ 5 * _retry.page }}"}}
          collect: {path: sales}
          per_iteration: {sink: {tool: sqlite, auth: "sqlite:rows.db", table: raw}}
    sink: {tool: sqlite, auth: "sqlite:rows.db", table: sales}
`

// TestStateOfTwoTables: a row that one table has is not known of another.
func TestStateOfTwoTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for range 2 {
		result, err := w.outcome(w.start(twoTables, map[string]any{"api": w.api.URL()}))
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
		require.Equal(t, []any{map[string]any{"raw": 12, "sales": 12}},
			w.query("SELECT (SELECT count(*) FROM raw) AS raw, (SELECT count(*) FROM sales) AS sales"))
	}
}

// TestLockedStateIsAWait: a step whose state is kept in a file that another process has locked waits to retry and
// says for what, and continues once the lock is released.
func TestLockedStateIsAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spawn()
	w.query("CREATE TABLE sales (id INTEGER, version INTEGER, updated_at TEXT)")
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db")+"?_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()
	lock, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	run := w.start(w.kept(book(`  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/sales"
    params: {updated_since: "{{ incremental.value }}"}
    incremental: {cursor_path: updated_at, initial_value: "2026-01-01T00:00:00Z", key: id}
    retry: [{when: "{{ response.has_more }}", then: {next_call: {params: {offset: "{{ _retry.page }}"}}, collect: {path: sales}}}]
    sink: {tool: sqlite, auth: "sqlite:rows.db", table: sales}
`)), nil)
	step := w.await(run, "fetch", interpreter.RetryPending)
	require.Equal(t, interpreter.ReasonKeeper, step.Reason)
	require.Contains(t, step.Waiting, "the state of a step is out of reach")
	require.Contains(t, step.Waiting, "locked")
	require.NoError(t, lock.Rollback())
	w.endsAs(run, interpreter.Completed)
}
