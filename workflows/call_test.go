package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// largePages collects six pages of 60 kB.
const largePages = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://x
    retry:
      - when: response.more
        then: {next_call: {params: {page: "{{ _retry.index }}"}}, collect: {path: rows}, max_attempts: 9}
`

// longAfter is a stage on which largePages are fetched, and the history gets long with
// an attempt.
func longAfter(t *testing.T, attempts int) *stage {
	t.Helper()
	s := newStage(t, func(n int, _ interpreter.ToolInput) (any, error) {
		return map[string]any{"rows": []any{n, strings.Repeat("x", 60_000)}, "more": n < 6}, nil
	})
	s.env.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
		if len(s.attempts) == attempts {
			s.env.SetCurrentHistoryLength(5000)
		}
	})
	return s
}

// TestCallThatCannotContinueAsNew: a call whose history is long goes on in another one. Where
// what it has collected is more than a payload may be, it stays and comes to its
// end, and the run learns that its result is too large too.
func TestCallThatCannotContinueAsNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		most  int
		stays bool
	}{
		"goes on": {1_000_000, false},
		"stays":   {200_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := longAfter(t, 4)
			input := protocol.CallsInput{
				Task:  call.Task{Name: "test.yaml", Step: "fetch", Visit: 1, Source: largePages},
				Calls: []call.Snapshot{{}},
			}
			input.Task.Limits.MaxPayload = test.most
			s.runBatch(input)
			require.True(t, s.env.IsWorkflowCompleted())
			if !test.stays {
				var next *workflow.ContinueAsNewError
				require.ErrorAs(t, s.env.GetWorkflowError(), &next)
				require.Len(t, s.attempts, 4)
				return
			}
			require.Len(t, s.attempts, 6)
			var output protocol.CallsOutput
			require.NoError(t, details(s.env.GetWorkflowError(), &output))
			result := output.Iterations[0].Result
			require.Equal(t, interpreter.KindPayloadTooLarge, result.Error.Kind)
			require.Contains(t, result.Error.Message, "the result of step fetch has")
			require.Equal(t, 6, result.Meta.Attempts)
		})
	}
}

// TestFirstAttemptKnowsTheConnectionsOfSinks: the first attempt of a call has the connections that its sinks name, with where
// that is written, so that one that is missing fails the call before it requests anything. Later attempts have none.
func TestFirstAttemptKnowsTheConnectionsOfSinks(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(2, unavailable()))
	result, _ := s.run(`
  - step: fetch
    tool: http
    url: http://localhost
    retry: [{when: "{{ error }}", then: {max_attempts: 3, delay: 1}}]
    sink: {tool: http, url: http://localhost, auth: warehouse}
`)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, []interpreter.SinkConnection{{Auth: "warehouse", Place: "fetch.sink", At: "test.yaml:9:53"}}, s.attempts[0].in.Sinks)
	require.Greater(t, len(s.attempts), 1)
	require.Empty(t, s.attempts[1].in.Sinks)
}
