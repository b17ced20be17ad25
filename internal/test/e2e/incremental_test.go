package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/workflows/protocol"
)

// changing answers rows from a number on, two a page.
type changing struct {
	url string

	mu      sync.Mutex
	rows    []map[string]any
	since   []string               // what was asked for
	request func(page string) bool // called with each; false answers 503
}

func newChanging(t *testing.T, rows ...map[string]any) *changing {
	t.Helper()
	c := &changing{rows: rows}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		query := r.URL.Query()
		if c.request != nil && !c.request(query.Get("page")) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if query.Get("page") == "" {
			c.since = append(c.since, query.Get("since"))
		}
		var found []map[string]any
		for _, row := range c.rows {
			before := query.Get("before")
			if row["at"].(string) >= query.Get("since") && (before == "" || row["at"].(string) < before) {
				found = append(found, row)
			}
		}
		at := 0
		_, _ = fmt.Sscan(query.Get("page"), &at)
		end := min(at+2, len(found))
		answer := map[string]any{"rows": found[min(at, end):end]}
		if end < len(found) {
			answer["next"] = end
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *changing) add(rows ...map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, rows...)
}

// kept is a playbook whose states are those of the test.
func (w *world) kept(source string) string {
	return strings.Replace(source, "{name: test}", "{name: "+w.queue+"}", 1)
}

func change(id int, at string) map[string]any { return map[string]any{"id": id, "at": at} }

// incrementalPages loads them. WORDS stands within incremental.
const incrementalPages = `
  - step: fetch
    tool: http
    url: "{{ api }}/orders"
    params: {since: "{{ incremental.value }}"}
    incremental: {cursor_path: at, initial_value: "2026-01-01", type: time, WORDS}
    retry:
      - when: "{{ response.next }}"
        then:
          next_call: {params: {page: "{{ response.next }}"}}
          collect: {path: rows}
          PAGES
    RESULT
`

// pagesInto and resultInto are the playbook with a sink for pages or for the result.
func pagesInto(sink, words string) string {
	return book(strings.NewReplacer("WORDS", words, "PAGES", "per_iteration: {sink: {"+sink+"}}", "RESULT", "").Replace(incrementalPages))
}

func resultInto(sink, words string) string {
	return book(strings.NewReplacer("WORDS", words, "PAGES", "", "RESULT", "sink: {"+sink+"}").Replace(incrementalPages))
}

const createDatedOrders = "CREATE TABLE orders (id bigint, at text CHECK (at <> 'refused'))"

// newStateWorld has a worker and an empty table.
func newStateWorld(t *testing.T) (*world, *testenv.Database) {
	t.Helper()
	w := newWorld(t)
	db := w.database()
	w.work()
	db.Exec(t, createDatedOrders)
	return w, db
}

// orderIDs are those of the table, in the order in which they were written.
func orderIDs(w *world, db *testenv.Database) string {
	var all []string
	for _, row := range db.Query(w.t, "SELECT id::text AS id FROM orders ORDER BY ctid") {
		all = append(all, row["id"].(string))
	}
	return strings.Join(all, " ")
}

// TestRowsComeOnce: rows that share the time of the watermark are neither lost nor doubled,
// one of the year 9999 keeps nothing back, and a run that fails loses nothing.
func TestRowsComeOnce(t *testing.T) {
	t.Parallel()
	const sink = "tool: postgres, auth: pg, table: orders, key: id"
	for name, source := range map[string]string{
		"asc": pagesInto(sink, "row_order: asc"), "none": pagesInto(sink, "row_order: none"), "result": resultInto(sink, "row_order: none"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, db := newStateWorld(t)
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-03"))
			workload := map[string]any{"api": api.url}
			first := w.endsAs(w.start(w.kept(source), workload), interpreter.Completed)
			require.Equal(t, "1 2 3", orderIDs(w, db))
			require.Empty(t, first.Warnings)
			api.add(change(4, "2026-01-03"), change(5, "9999-01-01"))
			if name == "asc" {
				w.recordAs("incremental")
			}
			second := w.endsAs(w.start(w.kept(source), workload), interpreter.Completed)
			require.Equal(t, "1 2 3 4 5", orderIDs(w, db))
			require.Contains(t, strings.Join(second.Warnings, "\n"), "1 row dated after the start of the call")
			api.mu.Lock()
			api.rows = api.rows[:4]
			api.mu.Unlock()
			api.add(change(6, "2026-01-04"), change(7, "2026-01-05"), change(8, "2026-01-06"))
			api.request = func(page string) bool { return page != "4" }
			w.endsAs(w.start(w.kept(source), workload), interpreter.Failed)
			api.request = nil
			w.endsAs(w.start(w.kept(source), workload), interpreter.Completed)
			require.Equal(t, "1 2 3 4 5 6 7 8", orderIDs(w, db))
			require.Equal(t, []string{"2026-01-01", "2026-01-03", "2026-01-03"}, api.since[:3])
		})
	}
}

// TestLagIsWidened: a run with a larger lag, or another key, than the run before inserts no row twice.
func TestLagIsWidened(t *testing.T) {
	t.Parallel()
	const sink = "tool: postgres, auth: pg, table: orders"
	w, db := newStateWorld(t)
	api := newChanging(t, change(1, "2026-01-02T00:00:00Z"), change(2, "2026-01-02T12:00:00Z"), change(3, "2026-01-03T00:00:00Z"))
	workload := map[string]any{"api": api.url}
	run := func(words string, ends interpreter.Status) protocol.Result {
		t.Helper()
		return w.endsAs(w.start(w.kept(pagesInto(sink, words)), workload), ends)
	}
	require.Empty(t, run("key: id", interpreter.Completed).Warnings)
	api.add(change(4, "2026-01-03T06:00:00Z"))
	widened := run("key: id, lag: 36h", interpreter.Completed)
	require.Equal(t, "1 2 3 4", orderIDs(w, db))
	require.Contains(t, strings.Join(widened.Warnings, "\n"), "this run reads from 2026-01-03T00:00:00Z and not from 2026-01-01T12:00:00Z")
	api.add(change(5, "2026-01-05T06:00:00Z"), change(6, "2026-01-03T05:00:00Z"))
	require.NotEmpty(t, run("key: id, lag: 36h", interpreter.Completed).Warnings)
	require.Empty(t, run("key: id, lag: 36h", interpreter.Completed).Warnings, "the watermark has moved by more than the lag")
	require.Equal(t, []string{"2026-01-01", "2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-03T18:00:00Z"}, api.since)
	require.Contains(t, run("key: [id, at], lag: 36h", interpreter.Failed).Error.Message, "identifies rows by key id, and the step by key id, at")
	require.ElementsMatch(t, strings.Fields("1 2 3 4 5 6"), strings.Fields(orderIDs(w, db)))
}

// TestSlices: a call reads slice by slice, each with its pages; one that fails has read the slices before, and the next run
// continues behind them. Rows that a source writes into a slice twice arrive once.
func TestSlices(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"row_order: none", "row_order: asc"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			w, db := newStateWorld(t)
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-04"),
				change(4, "2026-01-21"), change(5, "2026-01-22"), change(6, "2026-01-23"), change(7, "2026-01-31"))
			source := strings.NewReplacer(
				`{since: "{{ incremental.value }}"}`, `{since: "{{ incremental.from }}", before: "{{ incremental.to }}"}`, "type: time", "type: date",
			).Replace(pagesInto("tool: postgres, auth: pg, table: orders, key: id", `step: 10d, until: "2026-02-05", `+words))
			slices := 0
			api.request = func(page string) bool {
				if page == "" {
					slices++
				}
				return slices < 4
			}
			failed := w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url}), interpreter.Failed)
			require.Equal(t, "1 2 3 4 5 6", orderIDs(w, db))
			require.Equal(t, "2026-01-23", failed.Steps[0].Incremental.Watermark.Data)
			require.Equal(t, []string{"2026-01-01", "2026-01-11", "2026-01-21"}, api.since)
			api.request = nil
			api.add(change(8, "2026-01-31"), change(9, "2026-02-05"))
			if words == "row_order: asc" {
				w.recordAs("slices")
			}
			w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url}), interpreter.Completed)
			require.Equal(t, "1 2 3 4 5 6 7 8", orderIDs(w, db))
			require.Equal(t, []string{"2026-01-23", "2026-02-02"}, api.since[3:])
		})
	}
}

// TestSlicesOutliveTheirWorkers: workers are killed while they read the first or a later page of a slice, with rows of the slices
// before already written. Each row is written once, no slice is left out, and the watermark passes no row that is not there.
func TestSlicesOutliveTheirWorkers(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"row_order: none", "row_order: asc"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			db.Exec(t, createDatedOrders)
			api := newChanging(t)
			var all, moves []string
			for day := 1; day <= 30; day++ { // five rows in each slice of five days, so three pages
				api.add(change(day, fmt.Sprintf("2026-01-%02d", day)))
				all = append(all, fmt.Sprint(day))
			}
			requests, reached, killed := 0, make(chan struct{}), make(chan struct{})
			kills := []int{2, 4, 8, 12} // requests: a later page, and the first of the second, third and fourth slice
			api.request = func(string) bool {
				if requests++; slices.Contains(kills, requests) {
					reached <- struct{}{}
					<-killed
				}
				return true
			}
			source := strings.NewReplacer(
				`{since: "{{ incremental.value }}"}`, `{since: "{{ incremental.from }}", before: "{{ incremental.to }}"}`, "type: time", "type: date",
			).Replace(pagesInto("tool: postgres, auth: pg, table: orders, key: id", `step: 5d, until: "2026-01-31", `+words))
			worker := w.spawn()
			run := w.start(w.kept(source), map[string]any{"api": api.url})
			for range kills {
				select {
				case <-reached:
				case <-time.After(testenv.Within(2 * time.Minute)):
					require.Fail(t, "the next request did not come")
				}
				worker.Kill()
				for _, state := range db.Query(t, "SELECT trim(watermark, '\"') AS day, (SELECT count(*) FROM orders WHERE at <= trim(watermark, '\"'))::text AS n FROM reprise_state") {
					if day, moved := state["day"].(string); moved {
						require.Equal(t, strings.TrimLeft(day[len("2026-01-"):], "0"), state["n"], "as many rows as days up to the watermark")
						moves = append(moves, day)
					}
				}
				killed <- struct{}{}
				worker = w.spawn()
			}
			require.NotEmpty(t, moves)
			require.IsIncreasing(t, slices.Compact(moves))
			ended := w.endsAs(run, interpreter.Completed)
			require.Equal(t, strings.Join(all, " "), orderIDs(w, db))
			require.Equal(t, "2026-01-30", ended.Steps[0].Incremental.Watermark.Data)
			require.Equal(t, []string{"2026-01-01", "2026-01-06", "2026-01-11", "2026-01-16", "2026-01-21", "2026-01-26"}, slices.Compact(api.since))
		})
	}
}

// TestCursorsInAFormat: the source is asked in the form in which its rows have their cursors, also by a state that was kept in
// another one; a cursor that does not fit ends the call, with its row.
func TestCursorsInAFormat(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	api := newChanging(t, change(1, "20260102"), change(2, "20260103"), change(3, "20260103"))
	run := func(words string, ends interpreter.Status) protocol.Result {
		t.Helper()
		return w.endsAs(w.start(w.kept(resultInto("tool: postgres, auth: pg, table: orders", words)), map[string]any{"api": api.url}), ends)
	}
	require.Empty(t, run(`key: id, format: "%Y%m%d"`, interpreter.Completed).Warnings)
	api.add(change(4, "20260104"))
	run(`key: id, format: "%Y%m%d", lag: 12h`, interpreter.Completed)
	require.Equal(t, "1 2 3 4", orderIDs(w, db))
	api.add(change(5, "20260105T"))
	failure := run(`key: id, format: "%Y%m%d"`, interpreter.Failed).Error
	require.Equal(t, incremental.TypeCursor, failure.Type)
	require.Contains(t, failure.Message, `row 2: at: "20260105T" does not fit the format, such as 20240131`)
	run(`key: id, format: "%Y-%m-%dT%H:%M:%SZ"`, interpreter.Failed)
	require.Equal(t, []string{"20260101", "20260103", "20260104", "2026-01-04T00:00:00Z"}, api.since)
}

// TestWatermarkBehindTheSink: a sink that fails leaves the watermark where it was.
func TestWatermarkBehindTheSink(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	source := resultInto(`tool: postgres, auth: pg, table: orders, `+
		`args: "{{ map(result, {id: #.id, at: refused ? 'refused' : #.at}) }}"`, "row_order: none")
	source = strings.Replace(source, "workflow:", "workload: {api: '', refused: false}\nworkflow:", 1)
	api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"))
	w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url, "refused": true}), interpreter.Failed)
	require.Empty(t, orderIDs(w, db))
	w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url}), interpreter.Completed)
	require.Equal(t, "1 2", orderIDs(w, db))
	require.Equal(t, []string{"2026-01-01", "2026-01-01"}, api.since)
}

// TestStateIsAFence: a call that holds its state no longer writes nothing, in upsert too.
func TestStateIsAFence(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"insert", "upsert"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			w.work()
			db.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY, at text)")
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-04"))
			api.request = func(page string) bool {
				if page != "" {
					db.Exec(t, "UPDATE reprise_state SET holder = 'another', run = 'of another'")
				}
				return true
			}
			source := pagesInto("tool: postgres, auth: pg, table: orders, key: id, mode: "+mode, "row_order: asc")
			result := w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url}), interpreter.Failed)
			require.Equal(t, "1 2", orderIDs(w, db))
			require.Equal(t, interpreter.KindIncremental, result.Error.Kind)
			require.Equal(t, incremental.TypeMoved, result.Error.Type)
			require.Contains(t, result.Error.Message, "of another")
		})
	}
}

// TestStateBehindPages: where Temporal keeps a state that moves with each page, one activity writes the
// page, moves the watermark and fetches the next page; a file, which has a ledger, gets all of them from one.
func TestStateBehindPages(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	var rows []map[string]any
	for day := 2; day < 10; day++ {
		rows = append(rows, change(day, fmt.Sprintf("2026-01-%02d", day)))
	}
	for sink, want := range map[string]string{
		"tool: file, path: kept.jsonl":                            "http drive file.write state",
		"tool: http, method: POST, url: '{{ api }}/in?page=sink'": "http drive drive drive http.write state",
	} {
		t.Run(want, func(t *testing.T) {
			api, group := newChanging(t, rows...), fmt.Sprint(w.queue, len(want))
			var marks []string
			api.request = func(page string) bool {
				if page != "" && page != "sink" {
					marks = append(marks, w.watermark(group+"/fetch", ""))
				}
				return true
			}
			source := strings.Replace(pagesInto(sink, "row_order: asc"), "workflow:", "state: "+group+"\nworkflow:", 1)
			w.endsAs(w.start(source, map[string]any{"api": api.url}), interpreter.Completed)
			require.Equal(t, []string{"2026-01-03", "2026-01-05", "2026-01-07"}, marks)
			require.Equal(t, "2026-01-09", w.watermark(group+"/fetch", ""))
			var activities []string
			for _, event := range w.histories[0].History.GetEvents() {
				if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
					activities = append(activities, scheduled.GetActivityType().GetName())
				}
			}
			require.Equal(t, "concurrency_enter state "+want, strings.Join(activities, " "))
		})
	}
	written, err := os.ReadFile(filepath.Join(w.dir, "kept.jsonl"))
	require.NoError(t, err)
	require.Equal(t, len(rows), strings.Count(string(written), "\n"))
}

// TestStateOfNoSink: what is written nowhere moves its state when the run has ended well.
func TestStateOfNoSink(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	source := book(strings.NewReplacer("WORDS", "row_order: none", "PAGES", "", "RESULT", "next: later").Replace(incrementalPages) +
		"  - step: later\n    tool: http\n    url: \"{{ api }}/later?page={{ workload.page }}\"\n")
	source = strings.Replace(source, "workflow:", "workload: {api: '', page: ''}\nworkflow:", 1)
	api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"))
	api.request = func(page string) bool { return page != "fails" }
	w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url, "page": "fails"}), interpreter.Failed)
	w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url, "page": "0"}), interpreter.Completed)
	w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url, "page": "0"}), interpreter.Completed)
	require.Equal(t, []string{"2026-01-01", "2026-01-01", "2026-01-03"}, api.since[:3])
}

// TestStatesOfALoopOfNoSink: the iterations of a loop that are written nowhere move their states when
// the run has ended well, with a child each, in a batch and in shards, and by groups of their own.
func TestStatesOfALoopOfNoSink(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	for name, row := range map[string]struct {
		loop, words string
		padding     int // bytes that each child is given
	}{
		"each":   {"batch: 1", "row_order: none", 0},
		"batch":  {"batch: 3", "state: '{{ of }}/{{ shop }}'", 0},
		"shards": {"batch: 1", "row_order: none", 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			source := strings.NewReplacer(
				"/orders", "/{{ len(padding) }}/{{ shop }}", "WORDS", row.words, "PAGES", "",
				"RESULT", "loop: {collection: [a, b, c, d, e], element: shop, mode: parallel, max_concurrency: 2, "+row.loop+"}\n    next: later",
			).Replace(incrementalPages) + "  - step: later\n    tool: http\n    url: \"{{ api }}/later?page={{ later_page }}\"\n"
			source = strings.Replace(book(source), "workflow:", "state: '"+w.queue+name+"'\nworkload: {api: '', later_page: '', of: '', padding: ''}\nworkflow:", 1)
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"))
			api.request = func(page string) bool { return page != "fails" }
			run := func(page string, want interpreter.Status) string {
				api.since = nil
				result := w.endsAs(w.start(source, map[string]any{
					"api": api.url, "later_page": page, "of": w.queue + name, "padding": strings.Repeat("x", row.padding),
				}), want)
				require.Empty(t, result.Warnings)
				require.GreaterOrEqual(t, len(api.since), 5)
				require.Equal(t, row.padding > 0, slices.ContainsFunc(w.histories, func(h testenv.RunHistory) bool { return strings.Contains(h.WorkflowID, "/shard-") }))
				return strings.Join(api.since[:5], " ")
			}
			first := strings.TrimSpace(strings.Repeat("2026-01-01 ", 5))
			require.Equal(t, first, run("fails", interpreter.Failed))
			require.Equal(t, first, run("0", interpreter.Completed))
			require.Equal(t, strings.ReplaceAll(first, "01-01", "01-03"), run("0", interpreter.Completed))
		})
	}
}

// TestTenantsHaveOneState: a statement that names the tenant beside incremental.value reads from another source for another
// tenant, which does not begin where the first one has ended.
func TestTenantsHaveOneState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	w.work()
	db.Exec(t, createDatedOrders+"; CREATE TABLE source (tenant text, id bigint, at text); "+
		"INSERT INTO source VALUES ('a', 1, '2026-01-05'), ('b', 2, '2026-01-02')")
	source := strings.Replace(book(`
  - step: fetch
    tool: postgres
    auth: pg
    statement: "SELECT id, at FROM source WHERE tenant = {{ tenant }} AND at >= {{ incremental.value }} ORDER BY at"
    incremental: {cursor_path: at, initial_value: "2026-01-01", type: time STATE}
    sink: {tool: postgres, auth: pg, table: orders, key: id}
`), "workflow:", "workload: {tenant: ''}\nworkflow:", 1)
	one := w.kept(strings.Replace(source, "STATE", "", 1))
	w.endsAs(w.start(one, map[string]any{"tenant": "a"}), interpreter.Completed)
	w.endsAs(w.start(one, map[string]any{"tenant": "a"}), interpreter.Completed)
	refused := w.endsAs(w.start(one, map[string]any{"tenant": "b"}), interpreter.Failed)
	require.Equal(t, incremental.TypeOfAnother, refused.Error.Type)
	require.Equal(t, "1", orderIDs(w, db))
	named := w.kept(strings.Replace(source, "STATE", `, state: "`+w.queue+`/{{ tenant }}"`, 1))
	w.endsAs(w.start(named, map[string]any{"tenant": "b"}), interpreter.Completed)
	require.Equal(t, "1 2", orderIDs(w, db))
}

// TestSinkOfAnotherTable: a sink whose table was changed continues nothing in the other one, which has rows of its own, until it
// is read in full.
func TestSinkOfAnotherTable(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	db.Exec(t, "ALTER TABLE orders ADD PRIMARY KEY (id); CREATE TABLE archive (id bigint PRIMARY KEY, at text); INSERT INTO archive VALUES (9, '2025-01-01')")
	api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-04"))
	run := func(table string, ends interpreter.Status, full ...string) protocol.Result {
		t.Helper()
		source := resultInto("tool: postgres, auth: pg, mode: upsert, key: id, table: "+table, "row_order: none")
		input := w.input(w.kept(source), map[string]any{"api": api.url})
		input.FullRefresh = full
		return w.endsAs(w.startWith(input, time.Time{}), ends)
	}
	run("orders", interpreter.Completed)
	run("public.orders", interpreter.Completed)
	refused := run("archive", interpreter.Failed)
	require.Equal(t, interpreter.KindIncremental, refused.Error.Kind)
	require.Equal(t, incremental.TypeOfAnother, refused.Error.Type)
	require.Contains(t, refused.Error.Message, "belongs to table public.orders, and the sink writes to public.archive")
	require.Equal(t, []string{"2026-01-01", "2026-01-04"}, api.since, "no request was sent")
	run("archive", interpreter.Completed, "fetch")
	require.Len(t, db.Query(t, "SELECT id FROM archive"), 4)
	run("archive", interpreter.Completed)
	require.Equal(t, []string{"2026-01-01", "2026-01-04", "2026-01-01", "2026-01-04"}, api.since)
}

// TestAnotherSinkOfAnotherTable: each sink of a step has the rows up to the watermark in its table, not only the last one: none
// begins in the midst of another table, or inserts again what its table has by another name. The state is kept in the database of
// the last sink, or by Temporal.
func TestAnotherSinkOfAnotherTable(t *testing.T) {
	t.Parallel()
	for keeper, last := range map[string]string{
		"postgres": "tool: postgres, auth: pg, mode: upsert, key: id, table: archive", "temporal": "tool: file, path: kept.jsonl",
	} {
		t.Run(keeper, func(t *testing.T) {
			t.Parallel()
			w, db := newStateWorld(t)
			db.Exec(t, "ALTER TABLE orders ADD PRIMARY KEY (id); CREATE TABLE others (LIKE orders INCLUDING ALL); CREATE TABLE archive (LIKE orders INCLUDING ALL)")
			api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"))
			run := func(pages string, ends interpreter.Status, full ...string) protocol.Result {
				t.Helper()
				source := book(strings.NewReplacer("WORDS", "row_order: none", "PAGES", pages, "RESULT", "sink: {"+last+"}").Replace(incrementalPages))
				input := w.input(w.kept(source), map[string]any{"api": api.url})
				input.FullRefresh = full
				return w.endsAs(w.startWith(input, time.Time{}), ends)
			}
			into := func(table string) string {
				return "per_iteration: {sink: {tool: postgres, auth: pg, mode: upsert, key: id, table: " + table + "}}"
			}
			run(into("orders"), interpreter.Completed)
			run(into("orders"), interpreter.Completed)
			sent := len(api.since)
			refused := run(into("others"), interpreter.Failed)
			require.Equal(t, interpreter.KindIncremental, refused.Error.Kind)
			require.Equal(t, incremental.TypeOfAnother, refused.Error.Type)
			require.Contains(t, refused.Error.Message, "table others of postgres pg")
			require.Equal(t, incremental.TypeOfAnother, run(into("public.orders"), interpreter.Failed).Error.Type, "rows would not be recognized")
			require.Len(t, api.since, sent, "no request was sent")
			run("", interpreter.Completed)
			api.add(change(3, "2026-01-04"))
			require.Equal(t, incremental.TypeOfAnother, run(into("others"), interpreter.Failed).Error.Type)
			run(into("others"), interpreter.Completed, "fetch")
			require.Len(t, db.Query(t, "SELECT id FROM others"), 3)
			run(into("others"), interpreter.Completed)
			require.Equal(t, "2026-01-04", api.since[len(api.since)-1])
		})
	}
}

// TestSinkSpelledDifferently: rows that come again are known in the same table by another spelling of its name.
func TestSinkSpelledDifferently(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	api := newChanging(t, change(1, "2026-01-02"), change(2, "2026-01-03"), change(3, "2026-01-03"))
	for i, table := range []string{"orders", "public.orders", "orders", "public.orders"} {
		source := pagesInto("tool: postgres, auth: pg, key: id, table: "+table, "row_order: asc")
		w.endsAs(w.start(w.kept(source), map[string]any{"api": api.url}), interpreter.Completed)
		api.add(change(4+i, "2026-01-03"))
	}
	require.Equal(t, "1 2 3 4 5 6", orderIDs(w, db))
}

// TestStatusOfPagesInOrder: the status of a run shows how far its watermark has moved while it reads, and which worker has its
// pages where another session keeps the state from it.
func TestStatusOfPagesInOrder(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	var rows []map[string]any
	for day := 2; day < 10; day++ {
		rows = append(rows, change(day, fmt.Sprintf("2026-01-%02d", day)))
	}
	api := newChanging(t, rows...)
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	api.request = func(page string) bool {
		if page == "4" {
			_, err := conn.Exec(t.Context(), "BEGIN; UPDATE reprise_state SET name = name")
			return err == nil
		}
		return true
	}
	run := w.start(w.kept(pagesInto("tool: postgres, auth: pg, table: orders, key: id", "row_order: asc")), map[string]any{"api": api.url})
	status := w.looker().until(run.GetID(), func(status *runs.Status) bool {
		return len(status.Activities) == 1 && status.Activities[0].Step == "fetch" && !status.At.Before(status.Activities[0].Progress.Add(2*time.Second))
	})
	require.Equal(t, "2026-01-05", status.Visits("fetch")[0].Incremental.Watermark.Data)
	require.Equal(t, 6, status.Visits("fetch")[0].Incremental.Rows, "the page that waits was read")
	require.Equal(t, "drive", status.Activities[0].Type)
	require.True(t, status.Activities[0].Running)
	require.NotEmpty(t, status.Activities[0].Worker)
	require.EqualValues(t, 1, status.Activities[0].Deliveries)
	_, err = conn.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	w.endsAs(run, interpreter.Completed)
	require.Equal(t, "2 3 4 5 6 7 8 9", orderIDs(w, db))
}

// TestStatusOfCallsThatWait: the status of a run shows how far a call has read that waits, also one in a workflow of its own, and those
// of a loop's iterations.
func TestStatusOfCallsThatWait(t *testing.T) {
	t.Parallel()
	failing := func(words string) string {
		pages := pagesInto("tool: postgres, auth: pg, table: orders, key: id", "row_order: asc")
		return strings.Replace(pages, "    retry:\n", words+"    retry:\n      - {when: \"{{ error is defined }}\", then: {max_attempts: 5, delay: 30m}}\n", 1)
	}
	for name, row := range map[string]struct {
		words, state string
		rows         int // that are read before the call waits
	}{
		"step": {"", "/fetch", 4}, "loop": {"    loop: {collection: [a], element: shop}\n", "/fetch/a", 4}, "long": {"", "/fetch", 180},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newStateWorld(t)
			api := newChanging(t)
			for i := range row.rows + 1 {
				api.add(change(i, time.Date(2026, 1, 2, 0, 0, i, 0, time.UTC).Format(time.RFC3339)))
			}
			api.request = func(page string) bool { return page != fmt.Sprint(row.rows) }
			source := failing(row.words)
			if name == "long" {
				source = strings.Replace(source, "next_call:", "pages_per_activity: 1\n          next_call:", 1)
			}
			run := w.start(w.kept(source), map[string]any{"api": api.url})
			l := w.looker()
			status := l.until(run.GetID(), func(status *runs.Status) bool {
				steps := status.Visits("fetch")
				return len(steps) == 1 && (steps[0].Status == interpreter.RetryPending || len(steps[0].Waits) == 1)
			})
			step := status.Visits("fetch")[0]
			read := step.Incremental
			if row.words != "" {
				l.AddIterations(t.Context(), status, step)
				require.Len(t, step.Iterations, 1)
				read = step.Iterations[0].Incremental
			}
			require.NotNil(t, read)
			require.Equal(t, w.queue+row.state, read.State)
			require.Equal(t, time.Date(2026, 1, 2, 0, 0, row.rows-1, 0, time.UTC).Format(time.RFC3339), read.Watermark.Data)
			require.Equal(t, row.rows, read.Rows)
			var shown strings.Builder
			render.PrintStatus(&shown, status, terminal.Paper{Width: 200})
			require.Contains(t, shown.String(), fmt.Sprintf("read %d rows from 2026-01-01", row.rows))
			if name == "long" {
				_, err := w.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID()+"/fetch#1", "")
				require.NoError(t, err, "the call has a workflow of its own")
			}
			w.cancel(run)
		})
	}
}

// TestTokenThatStays: rows come again with a token that the source gives once more, and are not written again.
func TestTokenThatStays(t *testing.T) {
	t.Parallel()
	w, db := newStateWorld(t)
	answers := []string{
		`{"token": "a", "rows": [{"id": 1}]}`, `{"token": "a", "rows": [{"id": 2}]}`, `{"token": "a", "rows": [{"id": 2}, {"id": 3}]}`,
		`{"token": "", "rows": [{"id": 2}]}`, `{"rows": [{"id": 3}, {"id": 4}]}`, `{"token": "b", "rows": [{"id": 4}, {"id": 5}]}`,
	}
	var given []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answers[len(given)])
		given = append(given, r.URL.Query().Get("token"))
	}))
	t.Cleanup(server.Close)
	source := w.kept(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/orders"
    params: {token: "{{ incremental.value }}"}
    incremental: {token: "{{ response.token }}"}
    sink: {tool: postgres, auth: pg, table: orders}
    retry: [{when: "{{ response.next }}", then: {next_call: {params: {page: 1}}, collect: {path: rows}}}]
`))
	for range answers {
		w.endsAs(w.start(source, map[string]any{"api": server.URL}), interpreter.Completed)
	}
	require.Equal(t, []string{"", "a", "a", "a", "a", "a"}, given)
	require.Equal(t, "1 2 3 4 5", orderIDs(w, db))
}
