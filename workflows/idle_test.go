package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestCycles: a cycle whose steps attempt nothing fails the run, and one that attempts
// something goes round as often as it likes.
func TestCycles(t *testing.T) {
	t.Parallel()
	t.Run("without attempts", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, until(0, nil))
		result, _ := s.run(`
  - step: a
    vars: {n: "{{ vars.n | default(0) + 1 }}"}
    next: b
  - step: b
    next: a
`)
		require.Equal(t, interpreter.Failed, result.Status)
		require.Equal(t, interpreter.KindRepeat, result.Error.Kind)
		require.Contains(t, result.Error.Message, "the cycle would never end")
	})
	t.Run("more than the operator allows", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, until(0, nil))
		s.env.OnActivity(interpreter.CheckActivity, mock.Anything, mock.Anything).
			Return(interpreter.CheckResult{Limits: interpreter.RunLimits{MaxVisits: 7}}, nil)
		result, _ := s.run(`
  - step: fetch
    tool: http
    url: http://x
    next: fetch
`)
		require.Equal(t, interpreter.Failed, result.Status)
		require.Equal(t, interpreter.KindRepeat, result.Error.Kind)
		require.Contains(t, result.Error.Message, "step fetch: routes have led to it 7 times, the most that REPRISE_VISITS_LIMIT allows")
		require.Len(t, s.attempts, 7)
	})
	t.Run("with attempts", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, until(0, nil))
		result, _ := s.run(`
  - step: count
    vars: {n: "{{ vars.n | default(0) + 1 }}"}
    next: fetch
  - step: fetch
    tool: http
    url: http://x
    next: [{when: vars.n < 1100, step: count}]
`)
		require.Equal(t, interpreter.Completed, result.Status, result.Error)
		require.Len(t, s.attempts, 1100)
	})
}

// TestMuchData: what a run sends in all its workflow tasks is not bounded, what one of them
// sends is.
func TestMuchData(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(0, nil))
	result, took := s.run(`
  - step: count
    vars: {n: "{{ vars.n | default(0) + 1 }}"}
    next: send
  - step: send
    tool: http
    method: POST
    url: http://x
    body: {text: ` + strings.Repeat("x", 100_000) + `}
    next: [{when: vars.n < 40, step: count}]
`)
	require.Equal(t, interpreter.Completed, result.Status, result.Error)
	require.Len(t, s.attempts, 40)
	require.Less(t, took.Seconds(), 1.0)
}
