package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve is an API that a test plays; handle runs under a lock. It gives its
// address.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// expiring has six pages for each of its lists. The cursor of the fourth
// expires the first time, and by then other rows are in the list.
func expiring(t *testing.T) string {
	expired := map[string]bool{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		list, cursor := r.URL.Query().Get("list"), 1
		if text := r.URL.Query().Get("cursor"); text != "" {
			_, err := fmt.Sscan(text, &cursor)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		if cursor == 4 && !expired[list] {
			expired[list] = true
			http.Error(w, `{"code": "cursor_expired"}`, http.StatusGone)
			return
		}
		id := cursor
		if expired[list] {
			id += 2 // two rows were deleted at the front
		}
		fmt.Fprintf(w, `{"more": %v, "next": %d, "rows": [{"id": "%s-%d", "list": "%s"}]}`, cursor < 6, cursor+1, list, id, list)
	})
}

// TestRestart: a call whose cursor expires begins again. Its result has the
// pages of the second round, and the table every row that was ever read, once.
func TestRestart(t *testing.T) {
	t.Parallel()
	const retry = `
    retry:
      - when: "{{ error.status == 410 }}"
        then: {restart: true, delay: 0}
      - when: "{{ response.more }}"
        then:
          next_call: {params: {cursor: "{{ response.next }}"}}
          collect: {path: rows}
          per_page: {sink: {tool: sqlite, path: rows.db, table: items, mode: upsert, key: id}}
    next: read
  - step: read
    tool: sqlite
    path: rows.db
    statement: SELECT list, count(*) AS n FROM items GROUP BY list ORDER BY list
output: {fetch: "{{ fetch }}", table: "{{ read }}", attempts: "{{ steps.fetch.meta.attempts }}"}
`
	rows := func(list string) []any {
		var all []any
		for id := 3; id <= 8; id++ {
			all = append(all, map[string]any{"id": fmt.Sprintf("%s-%d", list, id), "list": list})
		}
		return all
	}
	const create = `
  - step: create
    tool: sqlite
    path: rows.db
    statement: CREATE TABLE items (id TEXT PRIMARY KEY, list TEXT)
    next: fetch
  - step: fetch
    tool: http
    url: "{{ expiring }}/items"
`
	t.Run("a step", func(t *testing.T) {
		t.Parallel()
		w := newWorking(t)
		got := w.completes(book(create+`    params: {list: a}`+retry), map[string]any{"expiring": expiring(t)})
		require.Equal(t, map[string]any{
			"fetch": rows("a"), "attempts": 3 + 1 + 6,
			"table": []any{map[string]any{"list": "a", "n": 8}},
		}, got)
	})
	t.Run("a batch", func(t *testing.T) {
		t.Parallel()
		w := newWorking(t)
		got := w.completes(book(create+`    params: {list: "{{ item }}"}
    loop: {collection: [a, b, c], mode: parallel, batch: 3}`+retry), map[string]any{"expiring": expiring(t)})
		fetched, _ := got.(map[string]any)["fetch"].(map[string]any)
		require.Equal(t, []any{rows("a"), rows("b"), rows("c")}, fetched["results"])
		table, _ := got.(map[string]any)["table"].([]any)
		require.Len(t, table, 3)
		for _, row := range table {
			require.Equal(t, 8, row.(map[string]any)["n"])
		}
	})
}

// TestIgnore: what is not there is an empty answer, and no iteration failed.
func TestIgnore(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/orders/b" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"rows": [%q]}`, r.URL.Path)
	})
	w := newWorking(t)
	result := w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ own }}/orders/{{ item }}"
    loop: {collection: [a, b, c], mode: parallel}
    retry:
      - when: "{{ error.status == 404 }}"
        then: {ignore: true, result: []}
      - when: "{{ response.rows is defined }}"
        then: {result: "{{ response.rows }}"}
`), map[string]any{"own": api})
	require.Empty(t, result.Warnings)
	got, _ := result.Result.Data.(map[string]any)
	require.Equal(t, []any{[]any{"/orders/a"}, []any{}, []any{"/orders/c"}}, got["results"])
	require.Equal(t, map[string]any{"total": 3, "success": 3, "failed": 0, "truncated": 0, "cancelled": 0}, got["stats"])
}

// TestErrorHeaders: a policy, and what comes after the step, see the headers of
// a failed answer; credentials are in no history.
func TestErrorHeaders(t *testing.T) {
	t.Parallel()
	asked := 0
	api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Error-Code", "busy")
		w.Header().Set("Set-Cookie", "session=of-the-server")
		if asked++; asked > 1 {
			w.Header().Set("X-Error-Code", "broken")
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	w := newWorking(t)
	w.secrets = []string{"of-the-server"}
	got := w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ own }}/"
    retry:
      - when: "{{ error.headers['x-error-code'] == 'busy' }}"
        then: {max_attempts: 5, delay: 0}
    next:
      - when: "{{ error.headers['x-error-code'] == 'broken' }}"
        then: [{step: broken, args: {code: "{{ error.headers['x-error-code'] }}"}}]
  - step: broken
    tool: python
    args: {headers: "{{ steps.fetch.error.headers | keys }}"}
    code: |
      def main(code, headers):
          return [code, "set-cookie" in headers, "x-error-code" in headers]
`), map[string]any{"own": api})
	require.Equal(t, []any{"broken", false, true}, got)
	require.Equal(t, 2, asked)
}

// TestLimitOfAnHour: a refusal that says when the limit is reset is waited for,
// without an attempt, and a poll waits as its answer says.
func TestLimitOfAnHour(t *testing.T) {
	t.Parallel()
	var (
		reset, answered time.Time
		paths           []string
		early           bool
	)
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		paths = append(paths, r.URL.Path)
		switch {
		case r.URL.Path == "/repos" && reset.IsZero():
			reset = now.Truncate(time.Second).Add(3 * time.Second)
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/repos":
			early = early || now.Before(reset)
			fmt.Fprint(w, `{"ok": true}`)
		case answered.IsZero():
			answered = now
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"state": "running"}`)
		default:
			early = early || now.Sub(answered) < 3*time.Second
			fmt.Fprint(w, `{"state": "done"}`)
		}
	})
	w := newWorking(t)
	got := w.completes(book(`
  - step: limited
    tool: http
    url: "{{ own }}/repos"
    retry:
      - when: "{{ error.class == 'rate_limited' }}"
        then: {max_attempts: 2, jitter: none}
    next: poll
  - step: poll
    tool: http
    url: "{{ own }}/job"
    retry:
      - when: "{{ response.state == 'running' }}"
        then: {max_attempts: 5}
output: ["{{ limited.ok }}", "{{ poll.state }}"]
`), map[string]any{"own": api})
	require.Equal(t, []any{true, "done"}, got)
	require.Equal(t, []string{"/repos", "/repos", "/job", "/job"}, paths)
	require.False(t, early, "nobody asks before the time that was told")
}
