package transfer_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

func TestTransferConforms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Directory: dir})
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.csv"), []byte("id,name\n1,a\n2,b\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("id,name\n1\n"), 0o600))
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	t.Cleanup(func() {
		close(release)
		slow.Close()
	})
	to := map[string]any{"tool": "sqlite", "path": "a.db", "table": "orders", "mode": "upsert", "key": "id", "schema_contract": "evolve"}
	moves := func(from map[string]any) func(*testing.T) interpreter.ToolInput {
		return func(t *testing.T) interpreter.ToolInput {
			in := tooltest.Input(map[string]any{"from": from, "to": to})(t)
			in.OperationKey = t.Name()
			return in
		}
	}
	good := moves(map[string]any{"tool": "file", "path": "a.csv"})
	tooltest.Run(t, tooltest.Suite{
		Catalogue: c, Tool: "transfer", Good: good, Large: good, Moves: true,
		Slow: moves(map[string]any{"tool": "http", "url": slow.URL}),
		Failures: []tooltest.FailureCase{
			{
				Name: "a missing file", Input: moves(map[string]any{"tool": "file", "path": "none.csv"}),
				Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "not_found",
			},
			{
				Name: "a short line", Input: moves(map[string]any{"tool": "file", "path": "bad.csv"}),
				Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "invalid_csv", Says: "line 2",
			},
		},
	})
}
