package e2e_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
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
	release := w.lock("rows.db")
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
	require.Contains(t, step.Waiting, "the state "+w.queue+"/fetch is out of reach")
	require.Contains(t, step.Waiting, "locked")
	release()
	w.endsAs(run, interpreter.Completed)
}

// lock locks a SQLite file of the worker, as another process would, until release is called.
func (w *world) lock(file string) (release func()) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, file)+"?_txlock=immediate")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = db.Close() })
	lock, err := db.BeginTx(w.t.Context(), nil)
	require.NoError(w.t, err)
	return func() { require.NoError(w.t, lock.Rollback()) }
}

// shopOrders fetches the orders of each shop into the file in which their states are. LOOP stands within loop.
var shopOrders = strings.NewReplacer("/orders", "/{{ shop }}", "WORDS", "row_order: none", "PAGES", "",
	"RESULT", `loop: {collection: [a, b, c], element: shop, LOOP, sink: {tool: sqlite, auth: "sqlite:rows.db", table: orders}}`,
).Replace(incrementalPages)

// TestLockedStatesOfALoop: iterations whose states are in a file that another process has locked wait to retry and say for
// what, in the status of the run too. Each claims once the lock is released, and writes its rows once.
func TestLockedStatesOfALoop(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		loop    string
		waiting int // iterations that wait at a time
	}{
		"sequential": {"mode: sequential", 1},
		"each":       {"mode: parallel, max_concurrency: 2, batch: 1", 2},
		"batch":      {"mode: parallel, max_concurrency: 3, batch: 3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.spawn()
			w.query("CREATE TABLE orders (id INTEGER, at TEXT)")
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-04"))
			source := w.kept(book(strings.Replace(shopOrders, "LOOP", row.loop, 1)))
			release := w.lock("rows.db")
			run := w.start(source, map[string]any{"api": api.url})
			w.awaitUnclaimed(run, row.waiting, "database is locked")
			release()
			w.endsAs(run, interpreter.Completed)
			require.Len(t, api.since, 3, "each iteration has claimed and read once")
			require.Equal(t, []any{map[string]any{"n": 9}}, w.query("SELECT count(*) AS n FROM orders"))
			w.endsAs(w.start(source, map[string]any{"api": api.url}), interpreter.Completed)
			require.Equal(t, slices.Repeat([]string{"2026-01-04"}, 3), api.since[3:], "each state has moved")
			require.Equal(t, []any{map[string]any{"n": 9}}, w.query("SELECT count(*) AS n FROM orders"))
		})
	}
}

// TestCancelOfUnclaimedStates: a run whose iterations wait for a locked file, or for a database that is down, ends as
// soon as it is cancelled, and has read nothing.
func TestCancelOfUnclaimedStates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ sink, says string }{
		{"tool: sqlite, auth: \"sqlite:rows.db\"", "database is locked"},
		{"tool: postgres, auth: away", "connection refused"},
	} {
		t.Run(row.says, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.connected["away"] = "postgres://reader@127.0.0.1:1/clinic"
			w.spawn()
			w.query("CREATE TABLE orders (id INTEGER, at TEXT)")
			defer w.lock("rows.db")()
			api := newChanging(t, change(1, "2026-01-02"))
			source := strings.NewReplacer("LOOP", "mode: parallel, max_concurrency: 2", `tool: sqlite, auth: "sqlite:rows.db"`, row.sink).Replace(shopOrders)
			run := w.start(w.kept(book(source)), map[string]any{"api": api.url})
			w.awaitUnclaimed(run, 2, row.says)
			w.cancel(run)
			require.Empty(t, api.since)
		})
	}
}

// awaitUnclaimed waits until so many iterations of the step wait for their states and say why, and the run with them.
func (w *world) awaitUnclaimed(run client.WorkflowRun, n int, why string) {
	w.t.Helper()
	looker := w.looker()
	looker.until(run.GetID(), func(status *runs.Status) bool {
		waiting := 0
		for _, step := range status.Visits("fetch") {
			looker.AddIterations(w.t.Context(), status, step)
			for _, iteration := range step.Iterations {
				if iteration.Status == interpreter.RetryPending {
					require.Equal(w.t, runs.HeldByState, iteration.HeldBy)
					require.Contains(w.t, iteration.Waiting, "is out of reach")
					require.Contains(w.t, iteration.Waiting, why)
					waiting++
				}
			}
		}
		if waiting < n || status.Status != interpreter.RetryPending {
			return false
		}
		var shown strings.Builder
		render.PrintStatus(&shown, status, terminal.Paper{Width: 80})
		require.Contains(w.t, shown.String(), "for a state that is out of reach: ")
		require.NotContains(w.t, shown.String(), "person")
		require.Contains(w.t, strings.Join(render.HelpCommands(status), "\n"), "starter retry-now "+run.GetID()+" fetch")
		return true
	})
}
