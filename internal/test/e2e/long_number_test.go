package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// A number of a million digits does not get as far as a decision, whatever reads it:
// a comparison with it would take longer than a workflow task may, each time it is tried.
func TestNumberOfAMillionDigits(t *testing.T) {
	t.Parallel()

	digits := strings.Repeat("9", 1_000_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		if r.URL.Path == "/text" {
			fmt.Fprintf(w, `{"total": %q}`, digits)
		} else {
			fmt.Fprintf(w, `{"total": %s}`, digits)
		}
	}))
	t.Cleanup(server.Close)

	const refused = "the number 9999999999999999999999999999999999999999… has 1000000 digits: a number may have at most 1000"

	for name, test := range map[string]struct{ tool, total, kind, says string }{
		"http": {"tool: http\n    url: " + server.URL, "response.total", "http", refused},
		"file": {"tool: file\n    path: total.json", "response.total", "tool", refused},
		"python": {`tool: python
    code: |
      def main():
          return {"total": 10 ** 1000000 - 1}`, "response.total", "tool", "digits"},
		"a text that int reads": {"tool: http\n    url: " + server.URL + "/text", "int(response.total)", "expression", "1000000 digits"},
		"a text":                {"tool: http\n    url: " + server.URL + "/text", "response.total", "expression", "cannot compare number with string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorking(t)
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "total.json"), []byte(`{"total": `+digits+`}`), 0o600))

			result := w.ends("failed", book(`
  - step: fetch
    `+test.tool+`
    retry:
      - when: "{{ error is defined and error.class == 'retryable' }}"
        then: {max_attempts: 3}
      - when: "{{ error is not defined and any([1, 2], # > `+test.total+`) }}"
        then: {max_attempts: 3, next_call: {}, allow_repeat: true, collect: {}}
`), nil)
			require.EqualValues(t, test.kind, result.Error.Kind)
			require.Equal(t, interpreter.ClassFinal, result.Error.Class)
			require.Contains(t, result.Error.Message, test.says)
			requireNoTaskFailed(t, w.histories)
		})
	}
}

// A client may write the number into the workload itself.
func TestWorkloadOfAMillionDigits(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "digits-" + w.queue, TaskQueue: w.queue},
		protocol.PlaybookWorkflowName, map[string]any{
			"name": "test.yaml", "source": book("  - step: go\n    tool: http\n    url: \"{{ api }}/{{ any([1], # > total) }}\"\n"),
			"workload": map[string]any{"api": w.api.URL(), "total": json.RawMessage(strings.Repeat("9", 1_000_000))},
		})
	require.NoError(t, err)

	_, err = w.outcome(run)
	require.ErrorContains(t, err, "has 1000000 digits: a number may have at most 1000")
	requireNoTaskFailed(t, w.histories)
}

// requireNoTaskFailed looks for decisions that took too long, or that no worker could
// take. A decision that takes too long does so each time: one that was made on its second
// attempt was held up by the machine.
func requireNoTaskFailed(t *testing.T, histories []testenv.RunHistory) {
	t.Helper()

	for _, history := range histories {
		for _, event := range history.History.GetEvents() {
			require.Nil(t, event.GetWorkflowTaskFailedEventAttributes(), "%s: %v", history, event)
			require.LessOrEqual(t, event.GetWorkflowTaskScheduledEventAttributes().GetAttempt(), int32(2), "%s: %v", history, event)
		}
	}
}
