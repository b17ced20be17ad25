package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// asksFirst is a playbook whose first step awaits an answer.
const asksFirst = `
  - {step: ask, tool: approval, message: "go?", next: load}
  - {step: load, tool: http, url: "{{ api }}/echo"}
output: "{{ ask.option }}"
`

// approves is the answer to the first step of asksFirst.
var approves = interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete, Option: "approve"}

// startWithUpdate starts a run with an update, which arrives with its first task.
func (w *world) startWithUpdate(source, update string, arg any) (client.WorkflowRun, error) {
	w.t.Helper()
	w.runs++
	operation := w.env.Client().NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: fmt.Sprintf("%s-%d", w.queue, w.runs), TaskQueue: w.queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, protocol.PlaybookWorkflowName, w.input(source, nil))
	handle, err := w.env.Client().UpdateWithStartWorkflow(w.t.Context(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: operation, UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: update, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	run, startErr := operation.Get(w.t.Context())
	require.NoError(w.t, startErr)
	if err == nil {
		err = testenv.WaitOutcome(w.t, handle, nil)
	}
	return run, err
}

// TestUpdatesWithStart: a run may be started with any update, whatever step comes first.
func TestUpdatesWithStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		update  string
		arg     any
		refused string
		status  interpreter.Status // of the first step afterwards
	}{
		"answer": {update: protocol.AnswerUpdate, arg: approves, status: interpreter.Completed},
		"an answer to nothing": {
			update: protocol.AnswerUpdate, arg: interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "akk"}, Verb: interpreter.AnswerComplete},
			refused: "no attempt awaits this answer; these await one: ask", status: interpreter.Awaiting,
		},
		"pause":  {update: protocol.PauseUpdate, arg: protocol.CommandInput{}, status: interpreter.Paused},
		"resume": {update: protocol.ResumeUpdate, arg: protocol.CommandInput{}, status: interpreter.Awaiting},
		"retry_now": {
			update: protocol.RetryNowUpdate, arg: protocol.CommandInput{}, refused: "nothing waits: no attempt is due", status: interpreter.Awaiting,
		},
		"skip": {
			update: protocol.SkipUpdate, arg: protocol.CommandInput{Step: "ask"},
			refused: "step ask is not running, so it is not waiting; running: nothing", status: interpreter.Awaiting,
		},
		"set": {
			update: protocol.SetUpdate, status: interpreter.Awaiting,
			arg: protocol.CommandInput{Step: "load", Tuning: &interpreter.Tuning{Rate: &interpreter.Rate{Requests: 50, PerSeconds: 1}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			run, err := w.startWithUpdate(book(asksFirst), c.update, c.arg)
			if c.refused == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.refused)
			}
			w.await(run, "ask", c.status)
			if c.status == interpreter.Paused {
				w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
			}
			if c.status != interpreter.Completed {
				w.answers(run.GetID(), approves)
			}
			require.Equal(t, "approve", w.endsAs(run, interpreter.Completed).Result.Data)
		})
	}
}

// TestUpdatesOfARunThatIsRefused: who sends an update to a run whose playbook is refused, or which is
// cancelled before it begins, learns that.
func TestUpdatesOfARunThatIsRefused(t *testing.T) {
	t.Parallel()
	for update, arg := range map[string]any{protocol.AnswerUpdate: approves, protocol.PauseUpdate: protocol.CommandInput{}} {
		t.Run(update, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			run, err := w.startWithUpdate(book("  - {step: ask, tool: aproval}\n"), update, arg)
			require.ErrorContains(t, err, "the run ended before it started: ")
			require.ErrorContains(t, err, "aproval")
			require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "aproval")
		})
	}
}

// TestUpdatesAcrossHistories: updates that come without a pause while a run continues as new have
// an outcome each, and refusals are true.
func TestUpdatesAcrossHistories(t *testing.T) {
	t.Parallel()
	const visits, callers, histories = 200, 3, 2
	w := newWorking(t)
	w.replays = 1
	run := w.start(book(fmt.Sprintf(`
  - step: ask
    tool: approval
    message: "go?"
    vars: {n: "{{ vars.n | default(0) + 1 }}"}
    next:
      - {when: "{{ vars.n < %d }}", step: ask}
      - else: load
  - {step: load, tool: http, url: "{{ api }}/echo"}
`, visits)), nil)
	f := &flood{world: w, run: run, answered: map[int]bool{}}
	var group sync.WaitGroup
	for _, send := range []func() error{
		f.answer,
		f.command(protocol.ResumeUpdate, protocol.CommandInput{}),
		f.command(protocol.RetryNowUpdate, protocol.CommandInput{}),
		f.command(protocol.SetUpdate, protocol.CommandInput{Step: "load", Tuning: &interpreter.Tuning{Rate: &interpreter.Rate{Requests: 50, PerSeconds: 1}}}),
	} {
		for range callers {
			group.Go(func() { f.sends(send) })
		}
	}
	result := w.endsAs(run, interpreter.Completed)
	testenv.Wait(t, group.Wait, "the answers to all updates")
	require.Equal(t, visits+1, len(result.Steps))
	require.Len(t, f.answered, visits, "whoever has answered a visit knows it")
	continued := 0
	for _, history := range w.histories {
		if history.Ending() == "ContinuedAsNew" {
			continued++
		}
	}
	require.GreaterOrEqual(t, continued, histories-1)
}

// flood are updates of a run that come without a pause, until it has ended.
type flood struct {
	*world

	run      client.WorkflowRun
	mu       sync.Mutex
	answered map[int]bool // visits whose answer was accepted
}

func (f *flood) answer() error {
	taken, err := f.answerTo(f.run.GetID(), approves)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.answered[taken.Visit] = true
	}
	return err
}

func (f *flood) command(update string, command protocol.CommandInput) func() error {
	return func() error {
		_, err := f.steer(f.run, update, command)
		return err
	}
}

// refusals are those that may be true of a flood's updates.
var refusals = []string{
	"nothing awaits an answer here", "no attempt awaits this answer", "the attempt is over", "the attempt already has another answer",
	"nothing waits: ", "commands and answers since it last continued as new",
}

// sends sends updates until the run has ended.
func (f *flood) sends(send func() error) {
	for {
		err := send()
		if connect.UpdateEnded(err) {
			if status := f.described(f.run); status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				f.t.Errorf("it says that the run has ended, which runs: %v", err)
			}
			return
		}
		if err != nil && !slices.ContainsFunc(refusals, func(refusal string) bool { return strings.Contains(err.Error(), refusal) }) {
			f.t.Errorf("%T %v", err, err)
			return
		}
	}
}

// described is the status of a run that the server has.
func (w *world) described(run client.WorkflowRun) enumspb.WorkflowExecutionStatus {
	w.t.Helper()
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), run.GetID(), "")
	require.NoError(w.t, err)
	return described.GetWorkflowExecutionInfo().GetStatus()
}
