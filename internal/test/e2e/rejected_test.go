package e2e_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// pagesWithBadRows serves five pages of three rows, two of which no table with a check of n takes. Each page fails once.
func pagesWithBadRows(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	failed := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		mu.Lock()
		first := !failed[r.URL.String()]
		failed[r.URL.String()] = true
		mu.Unlock()
		if first && r.URL.Query().Get("flaky") != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		rows := []any{}
		for i := range 3 {
			rows = append(rows, map[string]any{"of": r.URL.Path, "id": 3*page + i, "n": i})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"rows": rows, "more": page < 5})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestRejectedIsBoundByCall: max of rejected counts over the call, whatever shares an activity, and whoever makes a write.
func TestRejectedIsBoundByCall(t *testing.T) {
	t.Parallel()
	for _, db := range []string{"postgres", "sqlite"} {
		for name, loop := range map[string]string{
			"no loop": "", "batch 1": "loop: {collection: [a, b], batch: 1, thresholds: {completed: 0, partial_success: 0}}",
			"batch 3": "loop: {collection: [a, b, c], batch: 3, mode: parallel, thresholds: {completed: 0, partial_success: 0}}",
		} {
			for kind, of := range map[string]struct{ alone, flaky string }{
				"together": {}, "alone": {alone: "pages_per_activity: 1"}, "each page fails once": {flaky: "yes"},
			} {
				t.Run(fmt.Sprint(db, ", ", name, ", ", kind), func(t *testing.T) {
					t.Parallel()
					w := newWorking(t)
					const table = "CREATE TABLE rows (of text, id bigint, n bigint CHECK (n = 0))"
					sink := "tool: sqlite, path: rows.db"
					count := func(query string) (n int) {
						database, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db"))
						require.NoError(t, err)
						defer func() { _ = database.Close() }()
						require.NoError(t, database.QueryRow(query).Scan(&n))
						return n
					}
					if db == "postgres" {
						database := w.database()
						database.Exec(t, table)
						sink = "tool: postgres, auth: pg"
						count = func(query string) int { return int(database.Query(t, query)[0]["n"].(int64)) }
					} else {
						database, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db"))
						require.NoError(t, err)
						_, err = database.Exec(table)
						require.NoError(t, err)
						require.NoError(t, database.Close())
					}
					element, calls := "x", 1
					if loop != "" {
						element, calls = "{{ item }}", map[string]int{"batch 1": 2, "batch 3": 3}[name]
					}
					result, err := w.run(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ source }}/%s"
    params: {page: 1, flaky: %q}
    %s
    retry:
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2, delay: 20ms}}
      - when: "{{ response.more }}"
        then:
          %s
          next_call: {params: {page: "{{ _retry.page + 1 }}"}}
          per_page: {sink: {%s, table: rows, args: "{{ result.rows }}", rejected: {table: aside, max: 5}}}`,
						element, of.flaky, loop, of.alone, sink)), map[string]any{"source": pagesWithBadRows(t)})
					require.NoError(t, err)
					failure := result.Error
					if loop != "" {
						errors := step(t, result, "fetch").Loop.Errors
						require.Len(t, errors, calls)
						failure = errors[0].Error
					}
					require.NotNil(t, failure)
					require.Equal(t, "rejected", failure.Type)
					require.Contains(t, failure.Message, "more than 5 rows of the call")
					require.Equal(t, 4*calls, count("SELECT count(*) AS n FROM aside"), "the third page has the sixth")
					require.Equal(t, 2*calls, count("SELECT count(*) AS n FROM rows"))
				})
			}
		}
	}
}
