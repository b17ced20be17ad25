package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/parquetfile"
)

// parquetRows are the rows and the columns of the files of a path's last manifest, as another reader than the worker's finds them.
func (w *world) parquetRows(path string) (rows []map[string]any, columns []string) {
	w.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(w.dir, "lake", path, "_manifest", "*.json"))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, manifests)
	content, err := os.ReadFile(slices.Max(manifests))
	require.NoError(w.t, err)
	var last struct{ Files []struct{ Path string } }
	require.NoError(w.t, json.Unmarshal(content, &last))
	for _, file := range last.Files {
		content, err := os.ReadFile(filepath.Join(w.dir, "lake", path, file.Path))
		require.NoError(w.t, err)
		found, err := parquetfile.Read(content)
		require.NoError(w.t, err)
		columns = nil
		for _, column := range found.Columns {
			columns = append(columns, column.Name+" "+column.Type)
		}
		rows = append(rows, found.Rows...)
	}
	return rows, columns
}

// parquetAPI has pages of orders, an export of users, and counts what reads it. The worker that first asks for the third page gets no answer.
type parquetAPI struct {
	*httptest.Server

	held chan struct{} // closed once the third page is requested
	once sync.Once
	mu   sync.Mutex
	seen map[string]int // the users that were visited
}

func newParquetAPI(t *testing.T) *parquetAPI {
	t.Helper()
	a := &parquetAPI{held: make(chan struct{}), seen: map[string]int{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/orders":
			a.serveOrders(w, r)
		case "/users.csv":
			w.Header().Set("Content-Type", "text/csv")
			_, _ = fmt.Fprint(w, "id,name,balance,joined\n1,Ana,10.50,2026-01-31\n2,Bo,-0.05,2025-12-01\n3,Çem,,2024-02-29\n")
		default:
			a.mu.Lock()
			a.seen[r.URL.Query().Get("user")]++
			a.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, "{}")
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *parquetAPI) serveOrders(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if page == 3 {
		first := false
		a.once.Do(func() { first = true; close(a.held) })
		if first {
			<-r.Context().Done() // its worker is dead
			return
		}
	}
	rows := []map[string]any{}
	for id := 10*page - 9; id <= 10*page; id++ {
		rows = append(rows, map[string]any{
			"id": id, "total": fmt.Sprintf("%d.%02d", id, id%100), "paid": id%2 == 0, "created_at": "2026-03-01T12:00:00+02:00", "lines": []int{id},
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": rows, "next": page + 1, "more": page < 5})
}

// TestLakesOfParquet: pages and an export become Parquet with types while the worker is killed once, and a loop reads what was written: each row is there
// once, with its values.
func TestLakesOfParquet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.connected["lake"] = "file:lake"
	api := newParquetAPI(t)
	worker := w.spawn()
	run := w.start(book(`
  - step: orders
    tool: http
    url: "{{ feed }}/orders"
    params: {page: 1}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 5, initial_delay: 10ms}
      - when: "{{ response.more }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.next }}"}}
          collect: {path: data}
          per_page:
            sink:
              tool: file
              auth: lake
              path: raw/orders
              format: parquet
              compression: zstd
              columns: {id: bigint not null, total: "numeric(12, 2)", created_at: timestamptz}
    next: users
  - step: users
    tool: transfer
    from: {tool: http, url: "{{ feed }}/users.csv", csv: {null: ""}}
    to:
      tool: file
      auth: lake
      path: raw/users
      format: parquet
      mode: overwrite
      columns: {id: bigint, balance: "numeric(12, 2)", joined: date, name: text}
    next: manifest
  - step: manifest
    tool: file
    auth: lake
    path: raw/users/_manifest/00000001.json
    next: visit
  - step: visit
    tool: http
    url: "{{ feed }}/visit"
    params: {user: "{{ user.id }} {{ user.name }} {{ user.balance }} {{ user.joined }}"}
    loop:
      source: {tool: file, auth: lake, path: "raw/users/{{ manifest.files[0].path }}"}
      element: user
output: "{{ visit.stats }}"
`), map[string]any{"feed": api.URL})
	select {
	case <-api.held:
	case <-t.Context().Done():
	}
	worker.Kill()
	w.spawn()
	result := w.endsAs(run, "completed")
	require.Equal(t, map[string]any{"total": 3, "success": 3, "failed": 0, "truncated": 0, "cancelled": 0}, result.Result.Data)
	orders, columns := w.parquetRows("raw/orders")
	slices.Sort(columns)
	require.Equal(t, []string{"created_at timestamptz", "id bigint", "lines text", "paid boolean", "total numeric(12, 2)"}, columns)
	require.Len(t, orders, 50)
	slices.SortFunc(orders, func(a, b map[string]any) int { return a["id"].(int) - b["id"].(int) })
	for i, row := range orders {
		id := i + 1
		require.Equal(t, map[string]any{
			"id": id, "total": fmt.Sprintf("%d.%02d", id, id%100), "paid": id%2 == 0, "created_at": "2026-03-01T10:00:00Z", "lines": fmt.Sprintf("[%d]", id),
		}, row)
	}
	users, columns := w.parquetRows("raw/users")
	slices.Sort(columns)
	require.Equal(t, []string{"balance numeric(12, 2)", "id bigint", "joined date", "name text"}, columns)
	require.Equal(t, []map[string]any{
		{"id": 1, "name": "Ana", "balance": "10.50", "joined": "2026-01-31"},
		{"id": 2, "name": "Bo", "balance": "-0.05", "joined": "2025-12-01"},
		{"id": 3, "name": "Çem", "balance": nil, "joined": "2024-02-29"},
	}, users)
	api.mu.Lock()
	defer api.mu.Unlock()
	require.Equal(t, map[string]int{"1 Ana 10.50 2026-01-31": 1, "2 Bo -0.05 2025-12-01": 1, "3 Çem  2024-02-29": 1}, api.seen)
	require.NotContains(t, strings.Join(result.Warnings, "\n"), "parquet")
}
