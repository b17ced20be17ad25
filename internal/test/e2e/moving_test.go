package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
)

// movingPages reads the ids 1 to 12, three a page, each page from the last id of
// the one before.
const movingPages = `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/moving/orders"
    params: {limit: 3}
    retry:
      - when: "{{ response.more }}"
        then:
          max_attempts: 100
          next_call: {params: {after: "{{ response.next }}"}}
          collect: {path: rows}
          per_iteration:
            sink: {SINK}
`

// movingSink is one that pages are written to, and how what it holds is read.
type movingSink struct {
	name, yaml string
	rows       func(w *world, db *testenv.Database) []any
}

const createOrders = "CREATE TABLE orders (collection text, id bigint PRIMARY KEY, version bigint)"

// createSQLite makes the table orders in orders.db.
const createSQLite = `
  - step: create
    tool: sqlite
    path: orders.db
    statement: "` + createOrders + `"
    next: fetch
`

var movingSinks = []movingSink{
	{"postgres insert", "tool: postgres, auth: pg, table: orders", inPostgres},
	{"postgres upsert", "tool: postgres, auth: pg, table: orders, mode: upsert, key: id", inPostgres},
	{"sqlite insert", "tool: sqlite, path: orders.db, table: orders", inSQLite},
	{"sqlite upsert", "tool: sqlite, path: orders.db, table: orders, mode: upsert, key: id", inSQLite},
	{"file", "tool: file, path: orders.jsonl", inFile},
	{"http", `tool: http, url: "{{ api }}/api/v1/writes?other_body=keep"`, inAPI},
}

func inPostgres(w *world, db *testenv.Database) []any {
	return w.rows(db, "SELECT * FROM orders ORDER BY id")
}

// inSQLite asks the worker itself.
func inSQLite(w *world, _ *testenv.Database) []any {
	w.t.Helper()
	return w.completes(book(`
  - {step: read, tool: sqlite, path: orders.db, statement: SELECT * FROM orders ORDER BY id}
`), nil).([]any)
}

func inFile(w *world, _ *testenv.Database) []any {
	w.t.Helper()
	var rows []any
	for line := range strings.Lines(w.file("orders.jsonl")) {
		var row any
		require.NoError(w.t, json.Unmarshal([]byte(line), &row), line)
		rows = append(rows, row)
	}
	canonical, err := expression.Canonical(rows)
	require.NoError(w.t, err)
	return canonical.([]any)
}

func inAPI(w *world, _ *testenv.Database) []any {
	w.t.Helper()
	var rows []any
	for _, write := range w.api.Writes("") {
		require.Empty(w.t, write.Others, "key %s came with another body", write.Key)
	}
	for _, body := range w.bodies() {
		rows = append(rows, body.([]any)...)
	}
	return rows
}

// TestPageSinkOfASourceThatMoves: page 2 was read and written, then a row of it
// goes away, and the worker is killed while page 3 is asked for. Whatever is read
// again, what the sink holds is what the result holds, and both are what the API
// has answered.
func TestPageSinkOfASourceThatMoves(t *testing.T) {
	t.Parallel()
	for _, sink := range movingSinks {
		t.Run(sink.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			db.Exec(t, createOrders)
			steps := movingPages
			if strings.HasPrefix(sink.name, "sqlite") {
				steps = createSQLite + strings.TrimLeft(steps, "\n")
			}
			worker := w.spawn()
			third := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Query().Get("after") == "6" })
			run := w.start(book(strings.ReplaceAll(steps, "SINK", sink.yaml)+`
output: "{{ fetch }}"
`), nil)
			require.Eventually(t, func() bool { return third.HeldRequests() > 0 }, patience, tick, "page 3 was not asked for")
			w.remove("orders", 5)
			worker.Kill()
			third.Release()
			w.spawn()
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)

			rows, ok := result.Result.Data.([]any)
			require.True(t, ok, "%T", result.Result.Data)
			require.Equal(t, short(rows), short(sink.rows(w, db)), "rows of the result, and those that the sink holds;\nthe API answered %s",
				answered(w.api.MovingAnswers("", "orders")))
			require.GreaterOrEqual(t, len(rows), 11, "ids 1 to 12, of which 5 went away: %v", rows)
		})
	}
}

// TestKilledInAPageSink: the worker dies while the sink of a page waits for its
// table, after the server was told how far the call has come. The rows are written
// all the same, whether pages share an activity, or calls do.
func TestKilledInAPageSink(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"pages": "", "batch": `loop: {collection: [orders, others], mode: parallel, batch: 2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			db.Exec(t, "CREATE TABLE orders (collection text, id bigint, version bigint)")
			steps := strings.NewReplacer("SINK", "tool: postgres, auth: pg, table: orders", "    retry:", "    "+loop+"\n    retry:",
				"moving/orders", "moving/{{ item }}").Replace(movingPages)
			worker := w.spawn()
			third := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Query().Get("after") == "6" })
			run := w.start(book(steps), map[string]any{"item": "orders"})
			require.Eventually(t, func() bool { return third.HeldRequests() > 0 }, patience, tick, "page 3 was not asked for")
			unlock := db.LockTable(t, "orders")
			third.Release()
			require.Eventually(t, func() bool { return db.CountWaiting(t, "orders") > 0 }, patience, tick, "page 3 is not written")
			w.awaitProgress(run, time.Now())
			worker.Kill()
			db.EndWaiting(t, "orders")
			unlock()
			w.spawn()
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			want := []any{}
			for _, collection := range []string{"orders", "others"} {
				for id := 1; id <= 12 && (collection == "orders" || loop != ""); id++ {
					want = append(want, map[string]any{"collection": collection, "id": id, "version": id})
				}
			}
			require.Equal(t, want, w.rows(db, "SELECT * FROM orders ORDER BY collection, id"))
		})
	}
}

// short is rows for people: the id of each and its version.
func short(rows []any) string {
	var text strings.Builder
	for _, row := range rows {
		fields := row.(map[string]any)
		fmt.Fprintf(&text, " %v.v%v", fields["id"], fields["version"])
	}
	return text.String()
}

// answered says what each read of a collection was answered.
func answered(answers []demoapi.MovingAnswer) string {
	var text strings.Builder
	for _, answer := range answers {
		fmt.Fprintf(&text, "%s:", answer.Query)
		for _, row := range answer.Rows {
			fmt.Fprintf(&text, " %d.v%d", row.ID, row.Version)
		}
		text.WriteString("\n")
	}
	return text.String()
}
