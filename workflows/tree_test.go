package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// newClosedTree is a stage whose run may start 100 others, is cancelled after a minute, and has no tree to cancel.
func newClosedTree(t *testing.T, admit func(interpreter.Admission) interpreter.Admitted) *stage {
	t.Helper()
	s := newStage(t, fine)
	s.register(interpreter.AdmitActivity, func(_ context.Context, in interpreter.Admission) (interpreter.Admitted, error) {
		return admit(in), nil
	})
	s.register(interpreter.MayStartActivity, func(context.Context, interpreter.Admission) (interpreter.Admitted, error) {
		return interpreter.Admitted{Closed: true}, nil
	})
	s.register(interpreter.CancelTreeActivity, func(context.Context, interpreter.CancelTree) error { return nil })
	s.env.OnActivity(interpreter.CheckActivity, mock.Anything, mock.Anything).
		Return(interpreter.CheckResult{Limits: interpreter.RunLimits{MaxRuns: 100}}, nil)
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Minute)
	return s
}

// TestClosedTree: who is told that a parent run was cancelled starts nothing, requests
// nothing more, and ends as cancelled once its own cancel comes.
func TestClosedTree(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{
		"call":       "",
		"parallel":   "    loop: {in: \"{{ 1..20 }}\", iterator: i, mode: parallel, max_concurrency: 5}\n",
		"sequential": "    loop: {in: \"{{ 1..20 }}\", iterator: i}\n",
		"batches":    "    loop: {in: \"{{ 1..20 }}\", iterator: i, mode: parallel, max_concurrency: 10, batch: 5}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			s := newClosedTree(t, func(interpreter.Admission) interpreter.Admitted {
				requests++
				return interpreter.Admitted{Closed: true}
			})
			result, took := s.run(`
  - step: outer
    tool: playbook
` + step + `    workflow: [{step: fetch, tool: http, url: http://localhost}]
`)
			require.Equal(t, interpreter.Cancelled, result.Status, "%+v", result.Error)
			require.Equal(t, time.Minute, took)
			require.Equal(t, 1, requests)
			require.Empty(t, s.attempts)
			if name != "call" {
				require.Equal(t, interpreter.LoopStats{Total: 20, Cancelled: 20}, result.Steps[0].Loop.Stats)
			}
		})
	}
}

// TestClosedTreeOfAdmittedRuns: runs that were admitted do not start either once a parent
// run was cancelled.
func TestClosedTreeOfAdmittedRuns(t *testing.T) {
	t.Parallel()
	s := newClosedTree(t, func(in interpreter.Admission) interpreter.Admitted { return interpreter.Admitted{Count: in.Count} })
	result, took := s.run(`
  - step: outer
    tool: playbook
    loop: {in: "{{ 1..20 }}", iterator: i, mode: parallel, max_concurrency: 5}
    workflow: [{step: fetch, tool: http, url: http://localhost}]
`)
	require.Equal(t, interpreter.Cancelled, result.Status, "%+v", result.Error)
	require.Equal(t, time.Minute, took)
	require.Empty(t, s.attempts)
	require.Equal(t, interpreter.LoopStats{Total: 20, Cancelled: 20}, result.Steps[0].Loop.Stats)
}
