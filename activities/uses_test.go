package activities_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestUsesOfConnections: a tool, and the worker of a task queue, that a connection does not name is refused in each attempt, before
// anything is sent.
func TestUsesOfConnections(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	api := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) { requests.Add(1); fmt.Fprint(w, "1") })
	dir := t.TempDir()
	catalogue := func(queue string) *activities.Catalogue {
		c := activities.NewCatalogue(activities.Resources{TaskQueue: queue, Directory: dir, Connections: activities.Connections{
			"web":   `{"bearer": "t0ken", "host": "` + api + `", "uses": {"tools": ["http"], "task_queues": ["nightly"]}}`,
			"files": `{"bearer": "t0ken", "host": "` + api + `", "uses": {"tools": ["file"]}}`,
			"rows":  `{"url": "sqlite:` + filepath.Join(dir, "rows.db") + `", "uses": {"tools": ["sqlite"], "task_queues": ["night*"]}}`,
			"other": `{"url": "sqlite:` + filepath.Join(dir, "rows.db") + `", "uses": {"tools": ["postgres"]}}`,
		}})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	call := func(c *activities.Catalogue, name, auth string) error {
		fields := map[string]any{"url": "/", "method": "POST"}
		if name == "sqlite" {
			fields = map[string]any{"statement": "SELECT 1"}
		}
		in := tooltest.Input(fields)(t)
		if name == "webhook" {
			in = tooltest.Input(map[string]any{"on_start": fields})(t)
			in.Sends = "on_start"
		}
		in.Auth = auth
		_, err := tooltest.Call(t, c, name, name, in)
		return err
	}
	nightly, daily, none := catalogue("nightly"), catalogue("daily"), catalogue("")
	for _, each := range [][2]string{{"http", "web"}, {"webhook", "web"}, {"sqlite", "rows"}} {
		require.NoError(t, call(nightly, each[0], each[1]), each)
		require.NoError(t, call(none, each[0], each[1]), each)
	}
	require.EqualValues(t, 4, requests.Swap(0))
	for _, row := range []struct {
		c          *activities.Catalogue
		tool, auth string
		says       string
	}{
		{nightly, "webhook", "files", `connection "files" may be used by file, and not by http: its uses.tools decides`},
		{nightly, "http", "files", `connection "files" may be used by file, and not by http: its uses.tools decides`},
		{nightly, "sqlite", "other", `connection "other" may be used by postgres, and not by sqlite: its uses.tools decides`},
		{nightly, "postgres", "rows", `connection "rows" may be used by sqlite, and not by postgres`},
		{daily, "http", "web", `connection "web" may be used on task queues nightly, and this worker polls daily: its uses.task_queues decides`},
		{daily, "sqlite", "rows", `connection "rows" may be used on task queues night*, and this worker polls daily`},
	} {
		err := call(row.c, row.tool, row.auth)
		if row.tool == "postgres" {
			in := tooltest.Input(map[string]any{"statement": "SELECT 1"})(t)
			in.Auth = row.auth
			_, err = tooltest.Call(t, row.c, "postgres", "postgres", in)
		}
		require.Error(t, err, row.says)
		object := tooltest.ErrorObject(t, err)
		require.Contains(t, object.Message, row.says)
		require.Equal(t, []any{interpreter.ClassFinal, "connection_denied"}, []any{object.Class, object.Type})
		require.NotContains(t, object.Message, "t0ken")
	}
	require.Zero(t, requests.Load())
	checked := activities.CheckSinks(t.Context(), daily, []interpreter.SinkConnection{{Auth: "rows", Place: "load.sink", At: "shop.yaml:3:5"}})
	require.NotNil(t, checked.Missing)
	require.Equal(t, "connection_denied", checked.Missing.Type)
	require.Contains(t, checked.Missing.Message, `shop.yaml:3:5: sink load.sink: connection "rows" may be used on task queues night*`)
}
