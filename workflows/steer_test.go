package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// says gives a run a command in each of so many minutes, 250 times each, from a minute on. It
// counts those that the run takes; why is the last refusal.
func (s *stage) says(from, minutes int, update string, command protocol.CommandInput, taken *int, why *string) {
	for minute := range minutes {
		s.env.RegisterDelayedCallback(func() {
			for i := range 250 {
				s.env.UpdateWorkflow(update, fmt.Sprintf("%s %d %d", update, minute, i), &testsuite.TestUpdateCallback{
					OnAccept: func() { *taken++ }, OnReject: func(err error) { *why = err.Error() }, OnComplete: func(any, error) {},
				}, command)
			}
		}, time.Duration(from+minute)*time.Minute)
	}
}

// TestCommandsWithoutEnd: whatever number of commands comes while a step goes on, the run
// stays far from the 2,000 updates that a history takes. It refuses those of steps first and
// continues as new when the step has ended.
func TestCommandsWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(1, unavailable()))
	var pauses, urgent int
	var refused, refusedAll string
	s.says(1, 6, protocol.PauseUpdate, protocol.CommandInput{Step: "after"}, &pauses, &refused)
	s.says(7, 4, protocol.ResumeUpdate, protocol.CommandInput{}, &urgent, &refusedAll)
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: `apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://x
    loop: {in: [1], iterator: n}
    retry: [{when: error is defined, then: {max_attempts: 2, delay: 15m, jitter: none}}]
    next: after
  - {step: after, tool: http, url: http://x}
`})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.env.GetWorkflowError(), &next)
	require.Equal(t, 1000, pauses)
	require.Equal(t, 500, urgent)
	require.Equal(t, "the run has accepted 1000 commands and answers since it last continued as new, which it does when fetch has ended; "+
		"until then, the whole run can still be paused, resumed and cancelled", refused)
	require.Equal(t, "the run has accepted 1500 commands and answers since it last continued as new, which it does when fetch has ended; "+
		"until then, it can still be cancelled", refusedAll)
}

// TestResumeWhileChildrenWaitForATask: a resume reaches the children that wait for a workflow task with room for
// their input, too: they begin with the control of the moment at which they were to be started.
func TestResumeWhileChildrenWaitForATask(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(n int, _ interpreter.ToolInput) (any, error) {
		if n == 1 {
			return nil, unavailable()
		}
		return strings.Repeat("x", 900_000), nil
	})
	s.steerAt(time.Minute, protocol.PauseUpdate, protocol.CommandInput{Step: "a"})
	s.steerAt(2*time.Minute, protocol.PauseUpdate, protocol.CommandInput{Step: "b"})
	waits := 0
	s.env.SetOnTimerScheduledListener(func(_ string, wait time.Duration) {
		if wait != time.Millisecond { // with which a child waits for the next task
			return
		}
		if waits++; waits == 1 {
			s.steerAt(0, protocol.ResumeUpdate, protocol.CommandInput{Step: "a"})
			s.steerAt(time.Microsecond, protocol.ResumeUpdate, protocol.CommandInput{Step: "b"})
		}
	})
	result, took := s.run(`
  - step: fetch
    tool: http
    url: http://x
    retry: [{when: error is defined, then: {max_attempts: 2, delay: 15m, jitter: none}}]
    next: [a, b]
  - {step: a, tool: http, url: http://x, loop: {in: "{{ [fetch] }}", iterator: n}}
  - {step: b, tool: http, url: http://x, loop: {in: "{{ [fetch] }}", iterator: n}}
`)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Less(t, took, time.Hour)
	require.NotZero(t, waits, "no child has waited")
}
