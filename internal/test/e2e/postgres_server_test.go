package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// TestServerAndDatabaseDie: Temporal keeps its state in PostgreSQL, and both are killed in the middle of a loop. It
// completes once they are back, with each element in its result once.
func TestServerAndDatabaseDie(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_TEMPORAL_STORE") != "postgres" {
		t.Skip("clients that notice late cost half a minute: make postgres runs it")
	}
	const elements = 40
	server, database := testenv.TemporalOnPostgres(t)
	w := newWorld(t)
	w.env, w.queue = server.Env, server.NewTaskQueue()
	reached, asked := make(chan struct{}), sync.Map{}
	half := sync.OnceFunc(func() { close(reached) })
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		asked.Store(in.URL.Path, true)
		if in.URL.Path == fmt.Sprintf("/%d", elements/2) {
			half()
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, `{"path": %q}`, in.URL.Path)
	}))
	t.Cleanup(api.Close)
	w.work()
	run := w.start(book(`
  - step: each
    tool: http
    url: "{{ api }}/{{ item }}"
    loop: {collection: "{{ 0..39 }}", batch: 1}
output: "{{ map(each.results, .path) }}"
`), map[string]any{"api": api.URL})
	testenv.Receive(t, reached, "half of the requests")
	server.Kill()
	database.Kill(t)
	database.Start(t)
	server.Start(t)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	want := make([]any, 0, elements)
	for i := range elements {
		path := fmt.Sprintf("/%d", i)
		want = append(want, path)
		_, found := asked.Load(path)
		require.True(t, found, path)
	}
	require.Equal(t, want, result.Result.Data)
}
