package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edgesAPI answers pages of edges, of which every third node is closed.
func edgesAPI(t *testing.T, pages, size int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		since, _ := strconv.Atoi(r.URL.Query().Get("since"))
		var edges []string
		for n := (page - 1) * size; n < page*size; n++ {
			if n > since {
				status := []string{"open", "open", "closed"}[n%3]
				edges = append(edges, fmt.Sprintf(`{"cursor": "c%d", "node": {"id": %d, "status": %q}}`, n, n, status))
			}
		}
		_, _ = fmt.Fprintf(w, `{"data": {"orders": {"edges": [%s]}}, "page": %d, "more": %t}`, strings.Join(edges, ","), page, page < pages)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestRowsOfPages: a page contributes its rows to results, sinks and the state between runs, and the same ones whether pages are
// fetched together or each in an activity of its own, or by the iterations of a loop.
func TestRowsOfPages(t *testing.T) {
	t.Parallel()
	const pages, size = 6, 5
	var open []any // ids of what is not closed
	for n := 1; n < pages*size; n++ {
		if n%3 != 2 {
			open = append(open, n)
		}
	}
	const source = `
  - step: orders
    tool: http
    url: "{{ api }}"
    params: {page: 1, since: "{{ incremental.value }}"}%s
    rows: data.orders.edges[*].node
    where: row.status == 'open'
    incremental: {cursor_path: id, initial_value: 0, row_order: asc}
    retry:
      - when: response.more
        then:%s
          next_call: {params: {page: "{{ _retry.page + 1 }}"}}
          collect: {}
          per_iteration: {sink: {tool: sqlite, path: rows.db, table: orders, key: id, schema_contract: evolve}}
    next: look
  - step: look
    tool: sqlite
    path: rows.db
    statement: SELECT id FROM orders ORDER BY id
output: "{{ {read: map(%s, .id), written: map(look, .id)} }}"
`
	for name, row := range map[string]struct{ loop, alone, rows string }{
		"together":  {rows: "orders"},
		"alone":     {alone: "\n          pages_per_activity: 1", rows: "orders"},
		"iteration": {loop: "\n    loop: {collection: [a], element: shop}", rows: "orders.results[0]"},
		"named":     {alone: "\n          max_delay: 1", rows: "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			text := w.kept(book(fmt.Sprintf(source, row.loop, row.alone, row.rows)))
			if name == "named" { // what is collected is named, so that each page comes back to the workflow
				text = strings.Replace(text, "when: response.more", "when: response.more and len(pages) < 1000", 1)
			}
			api := map[string]any{"api": edgesAPI(t, pages, size)}
			first, _ := w.completes(text, api).(map[string]any)
			require.Equal(t, open, first["read"])
			require.Equal(t, open, first["written"])
			again, _ := w.completes(text, api).(map[string]any) // from the largest id that was kept, which comes no more
			require.Empty(t, again["read"])
			require.Equal(t, open, again["written"])
		})
	}
}

// TestRowsAreCollected: a step whose policies have no collect writes and gives the rows of all its pages, also of those that another
// policy asks for, however they are fetched.
func TestRowsAreCollected(t *testing.T) {
	t.Parallel()
	const pages, size = 6, 5
	all := make([]any, pages*size-1)
	for i := range all {
		all[i] = i + 1
	}
	const source = `
  - step: orders
    tool: http
    url: "{{ api }}"
    params: {page: 1}%[1]s
    retry:
      - when: response.more and response.page %% 2 == 1
        then: {next_call: {params: {page: "{{ _retry.page + 1 }}"}}%[2]s}
      - when: response.more%[4]s
        then: {next_call: {params: {page: "{{ _retry.page + 1 }}"}}%[2]s}
    sink: {tool: sqlite, path: rows.db, table: orders, key: id, mode: replace, schema_contract: evolve, args: "{{ %[3]s }}"}
    next: look
  - step: look
    tool: sqlite
    path: rows.db
    statement: SELECT id FROM orders ORDER BY id
output: "{{ map(look, .id) }}"
`
	const rows = "\n    rows: data.orders.edges[*].node"
	for name, row := range map[string]struct{ how, page, more, result string }{
		"rows":      {how: rows, result: "result"},
		"alone":     {how: rows, page: ", pages_per_activity: 1", result: "result"},
		"named":     {how: rows + "\n    collect: {into: found}", more: " and len(found) < 1000", result: "result"},
		"collect":   {how: "\n    collect: {path: data.orders.edges}", result: "map(result, .node)"},
		"iteration": {how: rows + "\n    loop: {collection: [a], element: shop}", result: "result.results[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf(source, row.how, row.page, row.result, row.more)
			w := newWorking(t)
			require.Equal(t, all, w.completes(book(text), map[string]any{"api": edgesAPI(t, pages, size)}))
		})
	}
}

// TestRowsWithoutPages: a call that has one page gives its rows, to a sink in a call hosted by an iteration too.
func TestRowsWithoutPages(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := map[string]any{"api": edgesAPI(t, 1, 5)}
	const source = `
  - step: one
    tool: http
    url: "{{ api }}?page=1"
    rows: data.orders.edges[*].node
    where: row.status == 'open'
    sink: {tool: sqlite, path: rows.db, table: one, schema_contract: evolve}
    next: each
  - step: each
    tool: http
    url: "{{ api }}?page=1&since={{ since }}"
    loop: {collection: [0, 3], element: since, mode: parallel, sink: {tool: sqlite, path: rows.db, table: each, schema_contract: evolve}}
    rows: data.orders.edges[*].node
    where: row.status == 'open' and row.id > since
    next: look
  - step: look
    tool: sqlite
    path: rows.db
    statement: SELECT id, (SELECT count(*) FROM each WHERE each.id = one.id) AS n FROM one ORDER BY id
output: "{{ [one, each.results, map(look, [#.id, #.n])] }}"
`
	row := func(id int) any { return map[string]any{"id": id, "status": "open"} }
	require.Equal(t, []any{
		[]any{row(1), row(3), row(4)},
		[]any{[]any{row(1), row(3), row(4)}, []any{row(4)}},
		[]any{[]any{1, 1}, []any{3, 1}, []any{4, 2}},
	}, w.completes(book(source), api))
}

// TestRowsThatAreMissing: a page without the path fails the call, and nothing of it is written.
func TestRowsThatAreMissing(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result, err := w.run(book(`
  - step: orders
    tool: http
    url: "{{ api }}?page=1"
    rows: data.orders.nodes
    sink: {tool: sqlite, path: rows.db, table: orders, schema_contract: evolve}
`), map[string]any{"api": edgesAPI(t, 1, 5)})
	require.NoError(t, err)
	require.EqualValues(t, "failed", result.Status)
	require.Contains(t, result.Error.Message, `rows: page.data.orders has no "nodes" (it has "edges"); use a path that every page has`)
}

// TestOnlyPageOfAnAPIThatGivesFewerRows: an API that gives at most 100 rows per page ends paging by size at the first page, which a warning says.
func TestOnlyPageOfAnAPIThatGivesFewerRows(t *testing.T) {
	t.Parallel()
	const most = 100
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "[%s]", strings.TrimSuffix(strings.Repeat(`{"id": 1},`, most), ","))
	}))
	t.Cleanup(server.Close)
	const source = `
  - step: orders
    tool: http
    url: "{{ api }}"
    params: {page: 1, limit: 1000}
    retry:
      - when: "{{ len(response) == 1000 }}"
        then: {next_call: {params: {page: "{{ _retry.page + 1 }}"}}, collect: {}}
output: "{{ len(orders) }}"
`
	result, err := newWorking(t).run(book(source), map[string]any{"api": server.URL})
	require.NoError(t, err)
	require.Equal(t, most, result.Result.Data)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], "if the API returns at most 100 rows per page, rows are missing")
}
