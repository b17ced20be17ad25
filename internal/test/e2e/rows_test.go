package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// loadEverything loads pages, a loop, an image of a table and what a child playbook reads.
const loadEverything = `
  - step: orders
    tool: http
    url: "{{ shop }}/orders"
    retry:
      - when: "{{ response.more }}"
        then:
          next_call: {params: {page: "{{ _retry.page + 1 }}"}}
          collect: {path: rows}
          per_iteration: {sink: {tool: postgres, auth: pg, table: public.orders, mode: upsert, key: id, rejected: {table: aside}}}
    next: items
  - step: items
    tool: http
    url: "{{ shop }}/items/{{ item }}"
    loop:
      collection: "{{ 1..6 }}"
      mode: parallel
      batch: 2
      sink: {tool: sqlite, path: items.db, table: items, schema_contract: evolve}
    next: customers
  - step: customers
    tool: http
    url: "{{ shop }}/customers"
    sink: {tool: postgres, auth: pg, table: customers, mode: upsert, key: id, delete_missing: true, max_delete: 0.5}
    next: below
  - step: below
    tool: playbook
    workload: {shop: "{{ shop }}"}
    workflow:
      - step: lines
        tool: http
        url: "{{ shop }}/lines"
        sink: {tool: postgres, auth: pg, table: lines}
        next: trim
      - step: trim
        tool: postgres
        auth: pg
        statement: DELETE FROM lines WHERE id > 5
    next: tell
  - step: tell
    tool: sqlite
    path: items.db
    statement: SELECT n FROM items
    sink: {tool: http, method: POST, url: "{{ shop }}/tell"}
output: ok
`

// loadedShop answers what loadEverything reads, page by page where something is held.
type loadedShop struct {
	*httptest.Server
	held chan chan struct{} // the first request for page 3
}

func newLoadedShop(t *testing.T) *loadedShop {
	t.Helper()
	s := &loadedShop{held: make(chan chan struct{}, 1)}
	rows := func(from, n int) (rows []any) {
		for id := from; id < from+n; id++ {
			rows = append(rows, map[string]any{"id": id, "n": 10 * id})
		}
		return rows
	}
	mux := http.NewServeMux()
	var once sync.Once
	reply := func(path string, body func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body(r))
		})
	}
	reply("/orders", func(r *http.Request) any {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page = max(page, 1)
		if page == 3 {
			once.Do(func() {
				release := make(chan struct{})
				s.held <- release
				<-release
			})
		}
		return map[string]any{"rows": rows(5*page-4, 5), "more": page < 4}
	})
	reply("/items/{n}", func(r *http.Request) any {
		n, _ := strconv.Atoi(r.PathValue("n"))
		return rows(100*n, n)
	})
	reply("/customers", func(*http.Request) any { return rows(4, 6) })
	reply("/lines", func(*http.Request) any { return rows(1, 7) })
	reply("/tell", func(*http.Request) any { return map[string]any{} })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestRowsAreWhatTheTablesSay: the figures of steps and of the run are those that the database has counted by itself, also where a worker
// is killed between a write and its answer.
func TestRowsAreWhatTheTablesSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db, shop := w.database(), newLoadedShop(t)
	db.Exec(t, `
CREATE TABLE log (at text, op text);
CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (TG_TABLE_NAME, lower(TG_OP)); RETURN NULL; END';
CREATE TABLE orders (id bigint PRIMARY KEY, n integer CHECK (n NOT IN (30, 200)));
CREATE TABLE customers (id bigint PRIMARY KEY, n integer);
CREATE TABLE lines (id bigint, n integer);
INSERT INTO orders SELECT id, 0 FROM generate_series(1, 4) AS id;
INSERT INTO customers SELECT id, 0 FROM generate_series(1, 8) AS id`)
	for _, table := range []string{"orders", "customers", "lines"} {
		db.Exec(t, "CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON "+table+" FOR EACH ROW EXECUTE FUNCTION log()")
	}
	worker := w.spawn()
	run := w.start(book(loadEverything), map[string]any{"shop": shop.URL})
	third := testenv.Receive(t, shop.held, "the request for page 3")
	unlock := db.LockTable(t, "orders")
	close(third)
	require.Eventually(t, func() bool { return db.CountWaiting(t, "orders") > 0 }, patience, tick, "page 3 is not written")
	worker.Kill()
	unlock() // the next worker continues behind page 2, or page 3, from what the ledger has of it
	w.spawn()
	result := w.endsAs(run, interpreter.Completed)

	logged := func(table, op string) int64 {
		return db.Query(t, "SELECT count(*) AS n FROM log WHERE at = $1 AND op = $2", table, op)[0]["n"].(int64)
	}
	count := func(query string) int64 { return db.Query(t, "SELECT count(*) AS n FROM "+query)[0]["n"].(int64) }
	require.EqualValues(t, 19, count("orders"), "row 3, which was there, could not be changed, and row 20 not be added")
	require.Equal(t, int64(3), logged("customers", "delete"))
	require.Equal(t, count("lines"), int64(5))
	items := w.rowsOfFile("SELECT n FROM items")
	require.Len(t, items, 21)
	// What another worker has written and not reported is found in the ledger, which knows its rows and not which of them were new. The
	// database may also have noticed the death of the worker before it wrote the five rows.
	ofTheLedger := logged("orders", "insert") - step(t, result, "orders").Rows.Inserted
	require.Contains(t, []int64{0, 5}, ofTheLedger)
	orders := interpreter.TableRows{Table: "public.orders", Connection: "pg", RowTotals: interpreter.RowTotals{
		Written: logged("orders", "insert") + logged("orders", "update"), Inserted: logged("orders", "insert") - ofTheLedger, Updated: logged("orders", "update"), Rejected: count("aside"),
	}}
	customers := interpreter.TableRows{Table: "customers", Connection: "pg", RowTotals: interpreter.RowTotals{
		Written: logged("customers", "insert") + logged("customers", "update"), Inserted: logged("customers", "insert"), Updated: logged("customers", "update"), Deleted: logged("customers", "delete"),
	}}
	lines := interpreter.TableRows{Table: "lines", Connection: "pg", RowTotals: interpreter.RowTotals{Written: logged("lines", "insert"), Inserted: logged("lines", "insert")}}
	trimmed := interpreter.TableRows{Table: "postgres", Connection: "pg", RowTotals: interpreter.RowTotals{Deleted: logged("lines", "delete")}}
	stored := interpreter.TableRows{Table: "items", Connection: "items.db", RowTotals: interpreter.RowTotals{Written: int64(len(items)), Inserted: int64(len(items))}}
	told := interpreter.TableRows{Table: "http", Connection: strings.TrimPrefix(shop.URL, "http://"), RowTotals: interpreter.RowTotals{Written: int64(len(items))}}
	read := func(n int64, tables ...interpreter.TableRows) *interpreter.Rows {
		rows := &interpreter.Rows{RowTotals: interpreter.RowTotals{Read: n}}
		for _, table := range tables {
			rows = rows.Plus(table.ToRows())
		}
		return rows
	}
	want := map[string]*interpreter.Rows{
		"orders": read(20, orders), "items": read(21, stored), "customers": read(6, customers), "below": read(7, lines, trimmed), "tell": read(21, told),
	}
	all := read(0)
	for name, rows := range want {
		require.Equal(t, shownRows(rows), shownRows(step(t, result, name).Rows), name)
		all = all.Plus(rows)
	}
	require.Equal(t, shownRows(all), shownRows(result.Rows))
	require.Equal(t, all.Totals(), w.memoOfRows(run.GetID()))
}

// shownRows is the figures for people to compare.
func shownRows(rows *interpreter.Rows) string {
	text, _ := json.MarshalIndent(rows, "", "  ")
	return string(text)
}

// rowsOfFile are those of a query of items.db.
func (w *world) rowsOfFile(query string) []any {
	w.t.Helper()
	rows, ok := w.completes(book(fmt.Sprintf("\n  - {step: look, tool: sqlite, path: items.db, statement: %q}\n", query)), nil).([]any)
	require.True(w.t, ok)
	return rows
}

// memoOfRows is what the server lists of the rows of a run.
func (w *world) memoOfRows(id string) (totals interpreter.RowTotals) {
	w.t.Helper()
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), id, "")
	require.NoError(w.t, err)
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayload(described.GetWorkflowExecutionInfo().GetMemo().GetFields()[protocol.RowsMemo], &totals))
	return totals
}

// TestRowsOfCancelledIterations: what the pages of an iteration wrote before it was cancelled is in the figures, whether
// its failure budget or a person cancelled it.
func TestRowsOfCancelledIterations(t *testing.T) {
	t.Parallel()
	const pages = 3
	for name, test := range map[string]struct {
		batch  string
		status interpreter.Status
	}{
		"the budget of children":      {"1", interpreter.Failed},
		"the budget of a batch":       {"5", interpreter.Failed},
		"a person, of the whole loop": {"auto", interpreter.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			held, release := make(chan struct{}, 2), make(chan struct{})
			api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				out.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/3":
					<-release
					out.WriteHeader(http.StatusBadRequest)
				case page > pages:
					held <- struct{}{}
					<-r.Context().Done()
				}
				_ = json.NewEncoder(out).Encode(map[string]any{"page": page, "rows": []any{map[string]any{"id": r.URL.Path + "-" + strconv.Itoa(page)}}})
			}))
			t.Cleanup(api.Close)
			w.work()
			run := w.start(strings.Replace(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/{{ item }}"
    params: {page: 1}
    loop: {collection: [1, 2, 3], mode: parallel, failure_budget: {rate: 0.1, min_samples: 1}, batch: BATCH}
    retry:
      - when: "{{ response.page > 0 }}"
        then:
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          collect: {path: rows}
          per_page: {sink: {tool: sqlite, path: items.db, table: t, schema_contract: evolve}}
`), "BATCH", test.batch, 1), map[string]any{"api": api.URL})
			for range cap(held) {
				testenv.Receive(t, held, "the request for the page after the last")
			}
			var result protocol.Result
			if test.status == interpreter.Cancelled {
				result = w.cancel(run)
				close(release)
			} else {
				close(release)
				result = w.endsAs(run, test.status)
			}
			require.Len(t, w.rowsOfFile("SELECT id FROM t"), 2*pages)
			rows := step(t, result, "fetch").Rows
			require.NotNil(t, rows)
			require.EqualValues(t, 2*pages, rows.Written)
			require.Equal(t, rows.Totals(), w.memoOfRows(run.GetID()))
		})
	}
}
