package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/workflows/protocol"
)

// listedSinks are two sinks in a list, which say in their rows where they are.
const listedSinks = `
SPACE- {tool: http, url: "{{ api }}/api/v1/writes", args: {to: first PLACE, rows: "{{ len(result) }}"}}
SPACE- {tool: http, url: "{{ api }}/api/v1/writes", args: {to: second PLACE, rows: "{{ len(result) }}"}}
`

func sinkList(place string, indent int) string {
	return strings.TrimRight(strings.NewReplacer("PLACE", place, "SPACE", strings.Repeat(" ", indent)).Replace(listedSinks), "\n")
}

// TestListsOfSinks: wherever a sink may be, a list of them may be. They are written in order, each once and with a key of its own.
func TestListsOfSinks(t *testing.T) {
	t.Parallel()
	both := func(place string, rows int) []any {
		return []any{
			map[string]any{"to": "first " + place, "rows": rows}, map[string]any{"to": "second " + place, "rows": rows},
		}
	}
	paged := func(then string) string {
		return `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 20}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}` + then
	}
	for name, test := range map[string]struct {
		steps string
		want  []any
	}{
		"a page":   {paged("\n          per_page:\n            sink:" + sinkList("page", 14)), append(both("page", 20), both("page", 15)...)},
		"a policy": {paged("\n          sink:" + sinkList("policy", 12)), both("policy", 35)},
		"a step":   {paged("\n    sink:" + sinkList("step", 6)), both("step", 35)},
		"everywhere": {
			paged("\n          per_page:\n            sink:" + sinkList("page", 14) + "\n          sink:" + sinkList("policy", 12) + "\n    sink:" + sinkList("step", 6)),
			append(append(append(both("page", 20), both("page", 15)...), both("policy", 35)...), both("step", 35)...),
		},
		"an iteration and its loop": {`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop:
      collection: [a, b]
      sink:` + strings.ReplaceAll(sinkList("loop", 8), "len(result)", "item") + `
    sink:` + strings.ReplaceAll(sinkList("step", 6), "len(result)", "result.stats.total"), []any{
			map[string]any{"to": "first loop", "rows": "a"},
			map[string]any{"to": "second loop", "rows": "a"},
			map[string]any{"to": "first loop", "rows": "b"},
			map[string]any{"to": "second loop", "rows": "b"},
			map[string]any{"to": "first step", "rows": 2},
			map[string]any{"to": "second step", "rows": 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			w.completes(book(test.steps), nil)
			require.Equal(t, w.expected(test.want), w.bodies())
			keys := map[string]bool{}
			for _, write := range w.api.Writes("") {
				keys[write.Key] = true
			}
			require.Len(t, keys, len(test.want), "each write has a key of its own")
		})
	}
}

// TestASinkOfAListThatFails: it ends the rest of them, and fails the call.
func TestASinkOfAListThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ steps, place string }{
		"a step": {`
    sink:
      - {tool: http, url: "{{ api }}/api/v1/writes", args: {n: 1}}
      - {tool: http, url: "{{ api }}/status/409", args: {n: 2}}
      - {tool: http, url: "{{ api }}/api/v1/writes", args: {n: 3}}
`, "fetch.sink.2"},
		"a step with a loop": {`
    loop: {collection: [a]}
    sink:
      - {tool: http, url: "{{ api }}/api/v1/writes", args: {n: 1}}
      - {tool: http, url: "{{ api }}/status/409", args: {n: 2}}
      - {tool: http, url: "{{ api }}/api/v1/writes", args: {n: 3}}
`, "fetch.sink.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book("\n  - step: fetch\n    tool: http\n    url: \"{{ api }}/echo\""+test.steps), nil)
			require.Equal(t, w.expected([]any{map[string]any{"n": 1}}), w.bodies())
			require.Contains(t, result.Error.Message, "sink "+test.place+":")
		})
	}
}

// completesAfterAKill runs a playbook to its end. Its worker is killed while the third request with the method is held up, and the
// source loses a row before another worker continues.
func (w *world) completesAfterAKill(source, method string, removed int) protocol.Result {
	w.t.Helper()
	worker := w.spawn()
	requests := 0
	third := w.api.HoldRequests(func(r *http.Request) bool {
		if r.Method != method {
			return false
		}
		requests++
		return requests == 3
	})
	run := w.start(source, nil)
	require.Eventually(w.t, func() bool { return third.HeldRequests() > 0 }, patience, tick, "no third %s", method)
	w.remove("orders", removed)
	worker.Kill()
	third.Release()
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(w.t, err)
	require.EqualValues(w.t, "completed", result.Status, "%+v", result.Error)
	return result
}

// TestKilledBetweenTwoSinksOfAPage: the first sink of a list has page 3 when the worker dies and the source moves. Both
// hold what the result holds in the end, each row once.
func TestKilledBetweenTwoSinksOfAPage(t *testing.T) {
	t.Parallel()
	for _, first := range movingSinks[:5] {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			db.Exec(t, createOrders)
			steps := strings.Replace(movingPages, "sink: {SINK}", "sink:\n              - {"+first.yaml+"}\n              - {"+movingSinks[5].yaml+"}", 1)
			if strings.HasPrefix(first.name, "sqlite") {
				steps = createSQLite + strings.TrimLeft(steps, "\n")
			}
			result := w.completesAfterAKill(book(steps+"\noutput: \"{{ fetch }}\"\n"), http.MethodPost, 8)
			rows := result.Result.Data.([]any)
			require.Equal(t, short(rows), short(first.rows(w, db)), "the first sink")
			require.Equal(t, short(rows), short(inAPI(w, db)), "the second sink")
			require.GreaterOrEqual(t, len(rows), 11)
		})
	}
}

// remove takes a row out of a collection of the API.
func (w *world) remove(collection string, id int) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodDelete, w.api.URL()+"/api/v1/moving/"+collection+"/"+strconv.Itoa(id), nil)
	require.NoError(w.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	require.NoError(w.t, response.Body.Close())
}

// TestListsOfSinksHaveTheirState: the watermark moves with the last table of a list, once both have the rows.
func TestListsOfSinksHaveTheirState(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	db := w.database()
	db.Exec(t, createOrders)
	db.Exec(t, strings.Replace(createOrders, "orders", "copies", 1))
	steps := strings.NewReplacer(`sink: {SINK}`, `sink:
              - {tool: postgres, auth: pg, table: orders, mode: upsert, key: id}
              - {tool: postgres, auth: pg, table: copies, mode: upsert, key: id}`, "    retry:", "    incremental: {cursor_path: version, initial_value: 0, type: integer}\n    retry:").Replace(movingPages)
	steps = w.kept(book(steps))
	db.Exec(t, "ALTER TABLE copies ADD CHECK (id < 10)")
	w.ends("failed", steps, nil)
	require.Len(t, w.rows(db, "SELECT * FROM orders"), 12)
	require.Len(t, w.rows(db, "SELECT * FROM copies"), 9)
	db.Exec(t, "ALTER TABLE copies DROP CONSTRAINT copies_id_check")
	w.completes(steps, nil)
	require.Equal(t, w.rows(db, "SELECT * FROM orders ORDER BY id"), w.rows(db, "SELECT * FROM copies ORDER BY id"))
	require.Len(t, w.rows(db, "SELECT * FROM copies"), 12)
}
