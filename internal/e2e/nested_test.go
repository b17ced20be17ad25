package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// eachPatient runs two steps for each element of a loop.
const eachPatient = `
  - step: each
    tool: playbook
    loop:
      in: "{{ workload.ids }}"
      iterator: id
      mode: parallel
      max_concurrency: 10
    workload:
      id: "{{ id }}"
      bad: "{{ workload.bad }}"
    workflow:
      - step: double
        tool: python
        args: {id: "{{ id }}"}
        code: |
          def main(id):
              return {"twice": 2 * id}
        next: judge
      - step: judge
        tool: python
        args: {id: "{{ id }}", twice: "{{ double.twice }}", bad: "{{ bad }}"}
        code: |
          def main(id, twice, bad):
              if id == bad:
                  raise ValueError("element %d is bad" % id)
              return twice + 1
`

// TestNestedInLoop runs two steps for each of 30 elements, one of which fails in its
// second step.
func TestNestedInLoop(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	ids := make([]any, 30)
	for i := range ids {
		ids[i] = i
	}
	result, err := w.run(book(eachPatient), map[string]any{"ids": ids, "bad": 7})
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status)

	each := result.Steps[0]
	require.Equal(t, 29, each.Loop.Stats.Success)
	require.Equal(t, 1, each.Loop.Stats.Failed)
	failure := each.Loop.Errors[0]
	require.Equal(t, 7, failure.Index)
	require.Equal(t, interpreter.KindPlaybook, failure.Error.Kind)
	require.Contains(t, failure.Error.Message, "/each#1/7!1 failed: ")
	require.Contains(t, failure.Error.Message, "element 7 is bad")

	results := result.Result.Data.(map[string]any)["results"].([]any)
	require.EqualValues(t, 59, results[29])
	require.Nil(t, results[7])
}
