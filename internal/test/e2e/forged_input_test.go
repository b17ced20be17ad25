package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// refusal says that a workflow was not run because of its input.
const refusal = "the input of the workflow was refused: "

// looped is a playbook with a loop, and a step behind it.
var looped = book(`
  - step: each
    tool: http
    url: "{{ api }}/echo"
    loop: {collection: [a, b, c], batch: 2}
    next: [{step: once}]
  - step: once
    tool: http
    url: "{{ api }}/echo"
workload: {api: http://127.0.0.1:1}
`)

// forgedState is where a run says that it goes on.
func forgedState(edit func(*protocol.RunState)) *protocol.RunState {
	state := &protocol.RunState{RunPath: protocol.RunPath{Routing: interpreter.Routing{
		Visits: map[string]int{"each": 1}, Waiting: []interpreter.Arrival{{Step: "once"}},
	}}}
	edit(state)
	return state
}

func forgedTask(step string) protocol.Task {
	return protocol.Task{Name: "test.yaml", Source: looped, Step: step, Visit: 1}
}

// TestTheValidationCannotBeAvoided: a client that starts a workflow with what only
// workers write is told so, whatever it writes; no workflow task fails.
func TestTheValidationCannotBeAvoided(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	index := 7
	for name, forged := range map[string]struct {
		workflow string
		input    any
		want     string
		cron     bool
	}{
		"a state": {
			workflow: protocol.PlaybookWorkflowName, want: refusal + "it contains the state of a run",
			input: protocol.Input{Name: "test.yaml", Source: looped, State: forgedState(func(*protocol.RunState) {})},
		},
		"a state with a step that is not there": {
			workflow: protocol.PlaybookWorkflowName, want: refusal + "it contains the state of a run",
			input: protocol.Input{Name: "test.yaml", Source: looped, State: forgedState(func(s *protocol.RunState) {
				s.Routing.Waiting[0].Step = "nowhere"
			})},
		},
		"a loop": {
			workflow: protocol.LoopWorkflowName, want: refusal + "it is part of a run",
			input: protocol.LoopInput{Task: forgedTask("each"), Chosen: &protocol.Subset{Indexes: []int{0}, Size: 1}},
		},
		"a batch": {
			workflow: protocol.CallsWorkflowName, want: refusal + "it is part of a run",
			input: protocol.CallsInput{Task: forgedTask("each"), Calls: []call.Snapshot{{Index: &index}}},
		},
		"places that are not those of the elements": {
			workflow: protocol.PlaybookWorkflowName, want: refusal + `step "each": 1 indexes for 2 elements`,
			input: protocol.Input{Name: "test.yaml", Source: looped, Reprocess: &protocol.Reprocess{Loops: []protocol.ReprocessLoop{{
				Step: "each", Visit: 1, Subset: protocol.Subset{Indexes: []int{0}, Size: 3},
				Elements: []expression.Value{expression.Of("a"), expression.Of("b")},
			}}}},
		},
		"a loop that is not there": {
			workflow: protocol.PlaybookWorkflowName, want: `has no step "once" with a loop whose iterations could run again`,
			input: protocol.Input{Name: "test.yaml", Source: looped, Reprocess: &protocol.Reprocess{
				Loops: []protocol.ReprocessLoop{{Step: "once", Visit: 1}},
			}},
		},
		"no input of ours": {
			workflow: protocol.PlaybookWorkflowName, want: "unable to decode",
			input: map[string]any{"source": looped, "state": 5},
		},
		"a number": {workflow: protocol.PlaybookWorkflowName, want: "unable to decode", input: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: w.queue}, forged.workflow, forged.input)
			require.NoError(t, err)
			require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), forged.want)
			w.noTaskFailed(t, run)
		})
	}
}

// noTaskFailed: nothing of a run was tried again because the worker could not go
// on with it, and it replays.
func (w *world) noTaskFailed(t *testing.T, run client.WorkflowRun) {
	t.Helper()
	histories := testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID())
	for _, history := range histories {
		for _, event := range history.History.Events {
			require.Nil(t, event.GetWorkflowTaskFailedEventAttributes(), "%v", event)
		}
	}
	require.NoError(t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1))
}

// TestScheduleDoesNotAvoidTheValidation: the second run of a schedule follows another
// one, as a run does that goes on.
func TestScheduleDoesNotAvoidTheValidation(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	c := w.env.Client()
	id := "scheduled-" + w.queue
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue, CronSchedule: "@every 1s"},
		protocol.PlaybookWorkflowName,
		protocol.Input{Name: "test.yaml", Source: looped, State: forgedState(func(s *protocol.RunState) { s.Run.WorkflowID = id })})
	require.NoError(t, err)
	first := run.GetRunID()
	second := ""
	require.Eventually(t, func() bool {
		described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		second = described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		return err == nil && second != first
	}, patience, tick)
	require.Error(t, c.GetWorkflow(t.Context(), id, second).GetWithOptions(t.Context(), nil,
		client.WorkflowRunGetOptions{DisableFollowingRuns: true}))
	require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "the test is over"))
	refused := 0
	for _, history := range testenv.Histories(t, c, id, first) {
		last := history.History.Events[len(history.History.Events)-1]
		if failed := last.GetWorkflowExecutionFailedEventAttributes(); failed != nil {
			require.Contains(t, failed.Failure.Message, refusal)
			refused++
		}
		for _, event := range history.History.Events {
			require.Nil(t, event.GetActivityTaskScheduledEventAttributes())
			require.Nil(t, event.GetStartChildWorkflowExecutionInitiatedEventAttributes())
		}
	}
	require.GreaterOrEqual(t, refused, 2)
}

// TestLongWorkflowIDs: whatever ID a run has that Temporal takes, its children
// have IDs that it takes too, each one of its own.
func TestLongWorkflowIDs(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	for _, length := range []int{protocol.MaxWorkflowID - 8, protocol.MaxWorkflowID} {
		id := w.queue + "-"
		id += strings.Repeat("x", length-len(id))
		run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue},
			protocol.PlaybookWorkflowName, protocol.Input{
				Name: "test.yaml", Source: looped, Workload: expression.Of(map[string]any{"api": w.api.URL()}),
			})
		require.NoError(t, err)
		result, err := w.outcome(run)
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status)
		require.Len(t, w.histories, 4, "the run, its loop and two batches")
	}
}

// TestLongTypesOfErrors: code chooses the names of its exceptions, which stand in
// results, and beside the wait before another attempt.
func TestLongTypesOfErrors(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: raise
    tool: python
    code: |
      def main():
          raise type("É" * 100_000, (Exception,), {})("no")
    retry: [{when: error is defined, then: {max_attempts: 2, delay: 0.1}}]
`), nil)
	require.Equal(t, 2, result.Steps[0].Attempts)
	require.Equal(t, interpreter.KindTool, result.Error.Kind)
	require.LessOrEqual(t, len(result.Error.Type), interpreter.MaxErrorType)
	require.True(t, strings.HasPrefix(result.Error.Type, strings.Repeat("É", 50)), result.Error.Type)
}
