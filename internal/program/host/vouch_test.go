package host_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const withPython = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: code}
workflow:
  - step: each
    tool: python
    loop: {in: '{{ [1, 2] }}', iterator: n}
    args: {n: '{{ n }}'}
    code: &code |
      def main(n):
          return n
    next: end_of
  - step: end_of
    tool: python
    args: {n: 3}
    code: *code
`

const code = "def main(n):\n    return n\n"

// TestCodeThatNobodyVouchesFor: a worker with a guard runs the code of a run
// that its starter has begun, in children too, and no other.
func TestCodeThatNobodyVouchesFor(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	startWorker(t, env.Client(), queue, activities.Resources{
		AllowPython: true, CheckPython: host.NewGuard(env.Client(), "the key").CheckCode,
	})

	const at = "-2026-03-29T01:00:00Z" // as a schedule ends the IDs of its runs
	scheduled := func(id string) map[string]any {
		return host.VouchSchedule("the key", strings.TrimSuffix(id, at), []string{code})
	}
	for name, row := range map[string]struct {
		memo func(id string) map[string]any
		runs bool
	}{
		"a schedule's" + at:       {scheduled, true},
		"beside a schedule":       {scheduled, false},
		"a schedule's" + at + "x": {func(id string) map[string]any { return scheduled(strings.TrimSuffix(id, "x")) }, false},
		"another schedule's" + at: {func(string) map[string]any { return scheduled("other" + at) }, false},
		"no schedule's" + at: {func(id string) map[string]any {
			ours := host.VouchMemo("the key", strings.TrimSuffix(id, at), []string{code})[host.CodeMemo].(host.Code)
			ours.Base = strings.TrimSuffix(id, at)
			return map[string]any{host.CodeMemo: ours}
		}, false},
		"ours":        {func(id string) map[string]any { return host.VouchMemo("the key", id, []string{code}) }, true},
		"nobody's":    {func(string) map[string]any { return nil }, false},
		"another key": {func(id string) map[string]any { return host.VouchMemo("a key", id, []string{code}) }, false},
		"copied":      {func(string) map[string]any { return host.VouchMemo("the key", "other", []string{code}) }, false},
		"other code":  {func(id string) map[string]any { return host.VouchMemo("the key", id, []string{"def main(): pass"}) }, false},
		"nonsense":    {func(string) map[string]any { return map[string]any{host.CodeMemo: 7} }, false},
		"hash added": {func(id string) map[string]any {
			sealed := host.VouchMemo("the key", id, []string{"x"})[host.CodeMemo].(host.Code)
			ours := host.VouchMemo("the key", id, []string{code})[host.CodeMemo].(host.Code)
			return map[string]any{host.CodeMemo: host.Code{Hashes: ours.Hashes, Seal: sealed.Seal}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := queue + "-" + name
			run, err := env.Client().ExecuteWorkflow(t.Context(),
				client.StartWorkflowOptions{ID: id, TaskQueue: queue, Memo: row.memo(id)},
				protocol.PlaybookWorkflowName,
				protocol.Input{Name: "code.yaml", Source: withPython, Workload: expression.Of(map[string]any{})})
			require.NoError(t, err)
			result, err := ending.WaitForResult(t.Context(), run)
			if row.runs {
				require.NoError(t, err)
				require.EqualValues(t, "completed", result.Status)
				return
			}
			require.NotEqualValues(t, "completed", result.Status)
			require.NotNil(t, result.Error)
			require.Contains(t, result.Error.Message, "this local worker runs Python only of runs that were begun by its own starter")
		})
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	require.Equal(t, host.SealTexts("k", "a", "b"), host.SealTexts("k", "a", "b"))
	for _, other := range []string{host.SealTexts("k", "ab"), host.SealTexts("k", "a", "b", ""), host.SealTexts("k", "b", "a"), host.SealTexts("j", "a", "b")} {
		require.NotEqual(t, host.SealTexts("k", "a", "b"), other)
	}
}
