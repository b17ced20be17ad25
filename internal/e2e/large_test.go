package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"reprise/internal/testenv"
)

// Bounds of every history of a run (docs/language.md, section loop).
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
)

// numbers is a loop whose iterations fail where n is a multiple of fail.
const numbers = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: numbers}
workflow:
  - step: tally
    tool: file
    path: "{{ n %% %d == 0 ? 'missing.txt' : 'there.txt' }}"
    format: text
    loop:
      collection: "{{ %s }}"
      element: n
      mode: %s
      max_concurrency: 40
      batch: %d
      thresholds: {completed: 0, partial_success: 0}
    sink:
      tool: file
      path: stats.jsonl
      args: "{{ result.stats }}"
`

func TestLoopsOfManySizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mode     string
		n, batch, fail int
		parts          bool
	}{
		{"empty", "parallel", 0, 1, 7, false},
		{"one", "sequential", 1, 1, 2, false},
		{"one leaf", "parallel", 41, 1, 2, false},
		{"all fail", "sequential", 7, 1, 1, false},
		{"parts", "parallel", 806, 2, 100, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.work()
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "there.txt"), []byte("x"), 0o600))
			collection := fmt.Sprintf("1..%d", c.n)
			if c.n == 0 {
				collection = "[]"
			}
			run := w.start(fmt.Sprintf(numbers, c.fail, collection, c.mode, c.batch), nil)
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.Equal(t, "completed", result.Status, "%+v", result.Error)
			failed := c.n / c.fail
			require.JSONEq(t, fmt.Sprintf(`{"total":%d,"success":%d,"failed":%d,"truncated":0,"cancelled":0}`,
				c.n, c.n-failed, failed), w.file("stats.jsonl"), "the step's sink has the aggregate, once")
			w.requireBounded(run.GetID(), run.GetRunID(), c.parts)
		})
	}
}

// requireBounded checks the size of every history of a run, and whether the
// loop ran in parts.
func (w *world) requireBounded(workflowID, runID string, parts bool) {
	w.t.Helper()
	seen := false
	for _, history := range testenv.Histories(w.t, w.env.Client(), workflowID, runID) {
		bytes := 0
		for _, event := range history.History.Events {
			bytes += event.Size()
			require.NotEqual(w.t, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.EventType, history.WorkflowID)
		}
		require.LessOrEqual(w.t, len(history.History.Events), maxEvents, history.WorkflowID)
		require.LessOrEqual(w.t, bytes, maxBytes, history.WorkflowID)
		seen = seen || strings.Contains(history.WorkflowID, "/part-")
	}
	require.Equal(w.t, parts, seen, "the loop ran in parts")
}

// TestLoopThatKeepsStatsOnly: counts and errors stay, results do not.
func TestLoopThatKeepsStatsOnly(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ item == 2 ? 404 : 200 }}"
    loop: {collection: [1, 2, 3], mode: parallel, results: stats, thresholds: {completed: 0.5}}
output:
  results: "{{ fetch.results }}"
  stats: "{{ fetch.stats }}"
  failed: "{{ map(fetch.errors, .element) }}"
`), nil)
	require.Equal(t, map[string]any{
		"results": []any{}, "failed": []any{2},
		"stats": map[string]any{"total": 3, "success": 2, "failed": 1, "truncated": 0, "cancelled": 0},
	}, result)
}
