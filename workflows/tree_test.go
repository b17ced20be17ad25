package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"reprise/interpreter"
	"reprise/interpreter/tree"
	"reprise/workflows/protocol"
)

// newClosedTree is a stage whose run may start 100 others, is cancelled after a minute, and has no tree to cancel.
func newClosedTree(t *testing.T, admit func(tree.RunStart) tree.AdmissionAnswer) *stage {
	t.Helper()
	s := newStage(t, fine)
	s.register(tree.AdmitActivity, func(_ context.Context, in tree.RunStart) (tree.AdmissionAnswer, error) {
		return admit(in), nil
	})
	s.register(tree.MayStartActivity, func(context.Context, tree.RunStart) (tree.AdmissionAnswer, error) {
		return tree.AdmissionAnswer{Closed: true}, nil
	})
	s.register(tree.CancelActivity, func(context.Context, tree.CancelRequest) error { return nil })
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
			s := newClosedTree(t, func(tree.RunStart) tree.AdmissionAnswer {
				requests++
				return tree.AdmissionAnswer{Closed: true}
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
	s := newClosedTree(t, func(in tree.RunStart) tree.AdmissionAnswer {
		return tree.AdmissionAnswer{Count: in.Count}
	})
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

// TestPausedStart: a run does not start while a run that waits for it is paused. It keeps
// its admission until that is resumed, and no policy counts what was held.
func TestPausedStart(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{
		"call":       "",
		"parallel":   "    loop: {in: \"{{ 1..3 }}\", iterator: i, mode: parallel, max_concurrency: 5}\n",
		"sequential": "    loop: {in: \"{{ 1..3 }}\", iterator: i}\n",
		"batches":    "    loop: {in: \"{{ 1..3 }}\", iterator: i, mode: parallel, max_concurrency: 10, batch: 3}\n",
		"detached":   "    wait: false\n",
	} {
		for _, most := range []int{0, 100} {
			t.Run(fmt.Sprintf("%s, at most %d", name, most), func(t *testing.T) {
				t.Parallel()
				s, admitted := newStage(t, until(0, nil)), 0
				hold := func(start tree.RunStart) *interpreter.Hold {
					if start.Attempt == nil || s.env.Now().Sub(began) > 2*time.Minute {
						return nil
					}
					require.Equal(t, "outer", start.Attempt.Step)
					return &interpreter.Hold{Version: 1}
				}
				s.register(tree.AdmitActivity, func(_ context.Context, in tree.RunStart) (tree.AdmissionAnswer, error) {
					s.mu.Lock()
					defer s.mu.Unlock()
					admitted += in.Count
					return tree.AdmissionAnswer{Count: in.Count, Hold: hold(in)}, nil
				})
				s.env.OnActivity(tree.MayStartActivity, mock.Anything, mock.Anything).Return(
					func(_ context.Context, in tree.RunStart) (tree.AdmissionAnswer, error) {
						return tree.AdmissionAnswer{Hold: hold(in)}, nil
					})
				s.env.OnActivity(interpreter.CheckActivity, mock.Anything, mock.Anything).
					Return(interpreter.CheckResult{Limits: interpreter.RunLimits{MaxRuns: most}}, nil)
				s.steerAt(time.Minute, protocol.PauseUpdate, protocol.CommandInput{})
				s.steerAt(3*time.Minute, protocol.ResumeUpdate, protocol.CommandInput{})
				result, _ := s.run(`
  - step: outer
    tool: playbook
` + step + `    workflow: [{step: fetch, tool: http, url: http://localhost}]
`)
				require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
				runs := 1
				if strings.Contains(step, "loop") {
					runs = 3
				}
				if most > 0 {
					require.Equal(t, runs, admitted, "each once")
				}
				for _, at := range s.times() {
					require.GreaterOrEqual(t, at, 3*time.Minute)
				}
				if name != "detached" {
					require.Len(t, s.attempts, runs)
				}
			})
		}
	}
}

// steerAt gives the run a command, which it takes.
func (s *stage) steerAt(at time.Duration, update string, command protocol.CommandInput) {
	s.env.RegisterDelayedCallback(func() {
		s.env.UpdateWorkflow(update, update+at.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(s.t, err) },
			OnComplete: func(_ any, err error) { require.NoError(s.t, err) },
		}, command)
	}, at)
}
