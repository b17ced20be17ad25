package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestNestedTimes runs a playbook anew where it has failed, with the exact waits of
// the policies of both.
func TestNestedTimes(t *testing.T) {
	t.Parallel()

	s := newStage(t, until(3, unavailable()))
	result, took := s.run(`
  - step: outer
    tool: playbook
    workload: {url: http://localhost}
    workflow:
      - step: fetch
        tool: http
        url: "{{ url }}/x"
        retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 10m, jitter: none}}]
    retry: [{when: "{{ error.kind == 'playbook' and error.type == 'http' }}", then: {max_attempts: 3, delay: 1h, jitter: none}}]
`)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, []time.Duration{0, 10 * time.Minute, 70 * time.Minute, 80 * time.Minute}, s.times())
	require.Equal(t, 80*time.Minute, took)
	require.Equal(t, map[string]any{"ok": true}, result.Result.Data)
	require.Equal(t, 2, result.Steps[0].Attempts)
	for _, attempt := range s.attempts {
		require.Equal(t, "http://localhost/x", attempt.in.Fields["url"].Data)
		require.Len(t, attempt.in.Parents, 1)
		require.Equal(t, "outer", attempt.in.Parents[0].Step)
	}
	require.Equal(t, s.attempts[0].in.OperationKey, s.attempts[1].in.OperationKey)
}

// TestNestedTimeLimit bounds each run of a playbook, by its step.
func TestNestedTimeLimit(t *testing.T) {
	t.Parallel()

	s := newStage(t, always(unavailable()))
	result, took := s.run(`
  - step: outer
    tool: playbook
    timeout: 30m
    workflow:
      - step: fetch
        tool: http
        url: http://localhost
        retry: [{when: "{{ error is defined }}", then: {max_attempts: 9, delay: 10h, jitter: none}}]
    retry: [{when: "{{ error.kind == 'timeout' }}", then: {max_attempts: 2, delay: 1h, jitter: none}}]
`)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, interpreter.KindTimeout, result.Error.Kind)
	require.True(t, result.Error.Exhausted)
	require.Equal(t, 2*time.Hour, took)
	require.Len(t, s.attempts, 2)
}

// TestNestedAnswers holds what a call of a playbook gives against how that has ended.
func TestNestedAnswers(t *testing.T) {
	t.Parallel()
	const inner = `
    workflow:
      - step: fetch
        tool: http
        url: http://localhost
        retry: [{when: "{{ error is defined }}", then: {max_attempts: 1}}]
`
	for _, ending := range []struct {
		name, step string
		answer     play
		kind       interpreter.Kind
		class      interpreter.Class
		status     int
		message    string
	}{
		{
			"final", inner, always(failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 404})),
			interpreter.KindPlaybook, interpreter.ClassFinal, 404, "the run default-test-workflow-id/outer#1!1 failed: HTTP 503",
		},
		{
			"retryable", inner, always(unavailable()),
			interpreter.KindPlaybook, interpreter.ClassRetryable, 503, "the run default-test-workflow-id/outer#1!1 failed: HTTP 503",
		},
		{
			"wait is no boolean", "    wait: \"{{ 'no' }}\"" + inner, nil,
			interpreter.KindPlaybook, interpreter.ClassFinal, 0, "step outer: wait must be true or false, not string",
		},
		{
			"workload is no map", "    workload: \"{{ [1] }}\"" + inner, nil,
			interpreter.KindPlaybook, interpreter.ClassFinal, 0, "step outer: workload must be a map, not a list",
		},
		{
			"no file", "    path: x.yaml\n", nil,
			interpreter.KindPlaybook, interpreter.ClassFinal, 0,
			"step outer: the run does not have the playbook x.yaml; it did not exist when the run started",
		},
	} {
		t.Run(ending.name, func(t *testing.T) {
			t.Parallel()

			s := newStage(t, ending.answer)
			result, _ := s.run("\n  - step: outer\n    tool: playbook\n" + ending.step)
			require.Equal(t, interpreter.Failed, result.Status)
			require.Equal(t, ending.kind, result.Error.Kind)
			require.Equal(t, ending.class, result.Error.Class)
			require.Equal(t, ending.status, result.Error.Status)
			require.Equal(t, ending.message, result.Error.Message)
		})
	}
}
