package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// stateQueues plays the queues of states to a run: what becomes of each request, and when.
type stateQueues struct {
	s        *stage
	mu       sync.Mutex
	requests []string
	answer   func(n int, enter queue.Enter) (queue.Decision, time.Duration)
}

func newStateQueues(t *testing.T, answer func(n int, enter queue.Enter) (queue.Decision, time.Duration)) *stateQueues {
	t.Helper()
	q := &stateQueues{s: newStage(t, func(n int, _ interpreter.ToolInput) (any, error) {
		return []any{map[string]any{"id": n}}, nil
	}), answer: answer}
	q.s.register(interpreter.StateActivity, func(context.Context, interpreter.StateInput) (interpreter.StateOutput, error) {
		return interpreter.StateOutput{}, nil
	})
	q.s.register(queue.EnterActivity, func(_ context.Context, enter queue.Enter) error {
		q.note(enter.Name.WorkflowID(), enter.Request)
		if enter.Request.Leave {
			return nil
		}
		decision, after := q.answer(len(q.requests), enter)
		decision.RunID, decision.Visit, decision.Queue = enter.Request.RunID, enter.Request.Visit, enter.Name.WorkflowID()
		if decision.State != "" {
			q.s.env.RegisterDelayedCallback(func() { q.s.env.SignalWorkflow(queue.DecisionSignal, decision) }, after)
		}
		return nil
	})
	q.s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", queue.RequestSignal, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			q.note(id, arg.(queue.Request))
			return nil
		})
	return q
}

func (q *stateQueues) note(id string, request queue.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	what := "asks"
	switch {
	case request.Leave:
		what = "leaves"
	case request.OnConflict == playbook.ConflictSkip:
		what = "tries"
	}
	q.requests = append(q.requests, fmt.Sprintf("%s %s %s", request.Visit, what, id))
}

const stateOfOrders = `
  - step: orders
    tool: http
    url: http://localhost
    params: {since: "{{ incremental.value }}"}
    incremental: {cursor_path: id, initial_value: 0%s}
`

// TestStateOutOfReach: a step whose state cannot be claimed, as what keeps it is locked, waits and says why,
// in its progress and in the status of the run, until it is claimed.
func TestStateOutOfReach(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, granted)
	var deliveries int
	var shown protocol.StepRecord
	q.s.register(interpreter.StateActivity, func(_ context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
		deliveries++
		if in.Claim == nil || deliveries > 4 {
			return interpreter.StateOutput{}, nil
		}
		if deliveries > 1 {
			shown = q.s.firstStep()
		}
		return interpreter.StateOutput{}, errLocked()
	})
	published := q.s.publishes()
	result, _ := q.s.run(fmt.Sprintf(stateOfOrders, ""))
	require.Equal(t, interpreter.Completed, result.Status)
	require.Equal(t, interpreter.RetryPending, shown.Status)
	require.Equal(t, interpreter.ReasonKeeper, shown.Reason)
	require.Equal(t, "the state of a step is out of reach: the file is locked", shown.Waiting)
	require.Equal(t, "the file is locked", shown.Cause)
	require.Contains(t, (*published)[0], "retry_pending")
	require.Contains(t, (*published)[len(*published)-1], "completed")
}

// errLocked is the error of a delivery that does not reach a state.
func errLocked() error {
	object := interpreter.ErrorObject{
		Kind: interpreter.KindWorkerLost, Class: interpreter.ClassRetryable, Message: "the state of a step is out of reach: the file is locked",
		Cause: "the file is locked",
	}
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind), temporal.ApplicationErrorOptions{
		Details: []any{object}, NextRetryDelay: time.Hour,
	})
}

// TestMovesOutOfReach: a run whose states cannot be moved at its end waits, in lists and in its details, until
// they are.
func TestMovesOutOfReach(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, granted)
	moves := 0
	var details string
	var moving *interpreter.Wait
	q.s.register(interpreter.StateActivity, func(_ context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
		if in.Claim != nil {
			return interpreter.StateOutput{}, nil
		}
		if moves++; moves > 3 {
			return interpreter.StateOutput{}, nil
		}
		if moves > 1 {
			details, moving = q.s.details(""), q.s.progress().Moving
		}
		return interpreter.StateOutput{}, errLocked()
	})
	published := q.s.publishes()
	result, _ := q.s.run(fmt.Sprintf(stateOfOrders, ""))
	require.Equal(t, interpreter.Completed, result.Status)
	require.Empty(t, result.Warnings)
	require.Equal(t, 4, moves)
	require.Equal(t, &interpreter.Wait{
		Reason: interpreter.ReasonKeeper, Summary: "the state of a step is out of reach: the file is locked", Cause: "the file is locked",
	}, moving)
	require.Nil(t, q.s.progress().Moving)
	require.Contains(t, details, "waits: `the state of a step is out of reach: the file is locked`")
	require.Contains(t, (*published)[0], "retry_pending")
	require.Contains(t, (*published)[len(*published)-1], "completed")
}

// TestCancelOfMovesOutOfReach: a run that is cancelled, or reaches its timeout, while its states cannot be moved is not
// completed, and has the moves of which it does not know undone.
func TestCancelOfMovesOutOfReach(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		head   string
		cancel time.Duration
		status interpreter.Status
	}{
		"cancel":  {"", time.Minute, interpreter.Cancelled},
		"timeout": {"timeout: 1m\nworkflow:", 0, interpreter.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newStateQueues(t, granted)
			q.s.register(interpreter.StateActivity, func(_ context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
				if in.Claim == nil {
					return interpreter.StateOutput{}, errLocked()
				}
				return interpreter.StateOutput{}, nil
			})
			undone := q.undone()
			if row.cancel > 0 {
				q.s.env.RegisterDelayedCallback(q.s.env.CancelWorkflow, row.cancel)
			}
			published := q.s.publishes()
			result, took := q.s.run(row.head + fmt.Sprintf(stateOfOrders, ""))
			require.Equal(t, row.status, result.Status)
			require.Equal(t, time.Minute, took)
			require.Nil(t, result.Result.Data, "rows that nobody is to have")
			require.Empty(t, result.Warnings)
			require.Contains(t, (*published)[len(*published)-1], string(row.status))
			require.Equal(t, []string{"reprise-state/test%2Forders: test/orders 1"}, *undone)
		})
	}
}

// TestCancelBehindTheFirstMove: once a state has moved no other run reads its rows, so that the run is completed. A cancel
// ends its wait for the others.
func TestCancelBehindTheFirstMove(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, granted)
	q.s.register(interpreter.StateActivity, func(_ context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
		if in.Claim == nil && in.Moves[0].Writes[0].Name == "test/bills" {
			return interpreter.StateOutput{}, errLocked()
		}
		return interpreter.StateOutput{}, nil
	})
	undone := q.undone()
	q.s.env.RegisterDelayedCallback(q.s.env.CancelWorkflow, time.Minute)
	orders := fmt.Sprintf(stateOfOrders, "")
	result, took := q.s.run(orders + "    next: bills\n" + strings.ReplaceAll(strings.TrimPrefix(orders, "\n"), "orders", "bills"))
	require.Equal(t, interpreter.Completed, result.Status)
	require.Equal(t, time.Minute, took)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], "step bills: its state was not moved, so the next run reads the same rows again")
	require.Empty(t, *undone)
}

// TestStateOutOfReachIsSettled: people end the wait for a state, of a step, of an iteration and of a run at its end:
// retry-now tries again at once, skip gives the state up.
func TestStateOutOfReachIsSettled(t *testing.T) {
	t.Parallel()
	const loop = `
  - step: orders
    tool: http
    url: "http://localhost/{{ shop }}"
    params: {since: "{{ incremental.value }}"}
    incremental: {cursor_path: id, initial_value: 0}
    loop: {collection: [a], element: shop}
`
	one := 0
	for name, row := range map[string]struct {
		steps   string
		claims  bool // which is what is out of reach, or the move
		update  string
		command protocol.CommandInput
		status  interpreter.Status
		failure string // or warning
		tries   int
	}{
		"retry-now":                  {"", true, protocol.RetryNowUpdate, protocol.CommandInput{}, interpreter.Completed, "", 3},
		"retry-now of the step":      {"", true, protocol.RetryNowUpdate, protocol.CommandInput{Step: "orders"}, interpreter.Completed, "", 3},
		"retry-now of an iteration":  {loop, true, protocol.RetryNowUpdate, protocol.CommandInput{Step: "orders", Index: &one}, interpreter.Completed, "", 3},
		"retry-now of a move":        {"", false, protocol.RetryNowUpdate, protocol.CommandInput{}, interpreter.Completed, "", 3},
		"retry-now of a step's move": {"", false, protocol.RetryNowUpdate, protocol.CommandInput{Step: "orders"}, interpreter.Completed, "", 3},
		"skip": {
			"", true, protocol.SkipUpdate,
			protocol.CommandInput{Step: "orders", By: "ada"},
			interpreter.Failed,
			"skipped by ada (the state of a step is out of reach: the file is locked)", 2,
		},
		"skip of a move": {
			"", false, protocol.SkipUpdate,
			protocol.CommandInput{Step: "orders", By: "ada"},
			interpreter.Completed,
			"the next run reads the same rows again: skipped by ada (the state of a step is out of reach: the file is locked)", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, tries := newStateQueues(t, granted), 0
			q.s.register(interpreter.StateActivity, func(_ context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
				if (in.Claim != nil) != row.claims {
					return interpreter.StateOutput{}, nil
				}
				if tries++; tries < 3 {
					return interpreter.StateOutput{}, errLocked()
				}
				return interpreter.StateOutput{}, nil
			})
			refused := errors.New("no answer")
			q.s.env.RegisterDelayedCallback(func() {
				q.s.env.UpdateWorkflow(row.update, "now", &testsuite.TestUpdateCallback{
					OnAccept: func() {}, OnReject: func(err error) { refused = err }, OnComplete: func(_ any, err error) { refused = err },
				}, row.command)
			}, 30*time.Second)
			steps := row.steps
			if steps == "" {
				steps = fmt.Sprintf(stateOfOrders, "")
			}
			result, took := q.s.run(steps)
			require.NoError(t, refused)
			require.Equal(t, row.status, result.Status, "%+v", result.Error)
			require.Equal(t, 30*time.Second, took)
			require.Equal(t, row.tries, tries)
			told := strings.Join(result.Warnings, "")
			if result.Error != nil {
				told = result.Error.Message
			}
			require.Contains(t, told, row.failure)
			require.Equal(t, row.failure == "", told == "")
		})
	}
}

// undone are the writes that keepers of states are signalled to undo.
func (q *stateQueues) undone() *[]string {
	var undone []string
	q.s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", incremental.UndoSignal, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			for _, write := range arg.([]incremental.StateWrite) {
				undone = append(undone, fmt.Sprintf("%s: %s %d", id, write.Name, write.Number))
			}
			return nil
		})
	return &undone
}

// firstStep is the first step in the progress of the run.
func (s *stage) firstStep() protocol.StepRecord { return s.progress().Steps[0] }

func (s *stage) progress() protocol.Progress {
	value, err := s.env.QueryWorkflow(protocol.ProgressQuery)
	require.NoError(s.t, err)
	var progress protocol.Progress
	require.NoError(s.t, value.Get(&progress))
	return progress
}

func granted(int, queue.Enter) (queue.Decision, time.Duration) {
	return queue.Decision{State: queue.Granted}, 0
}

// TestStateSlot: a visit asks for the state of its step before it begins, and releases it at its
// end whatever comes of it.
func TestStateSlot(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		words, key string
		status     interpreter.Status
	}{
		"default":  {"", "test%2Forders", interpreter.Completed},
		"named":    {", state: \"shop {{ workload.x }}\"", "shop%20", interpreter.Failed}, // which is nil
		"constant": {", state: shop", "shop", interpreter.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newStateQueues(t, granted)
			result, _ := q.s.run(fmt.Sprintf(stateOfOrders, row.words))
			require.Equal(t, row.status, result.Status, "%+v", result.Error)
			if row.status == interpreter.Failed {
				require.Empty(t, q.requests)
				require.Contains(t, result.Error.Message, "every part of a key needs a value")
				return
			}
			id := "reprise-concurrency-state/" + row.key
			require.Equal(t, []string{"orders#1 asks " + id, "orders#1 leaves " + id}, q.requests)
		})
	}
}

// TestStateSlotWaits: a visit that has to wait says for whom, and begins with its slot.
func TestStateSlotWaits(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, func(n int, enter queue.Enter) (queue.Decision, time.Duration) {
		if n == 1 {
			require.Equal(t, 1, enter.Request.Limit)
			return queue.Decision{State: queue.Queued, By: "other"}, time.Second
		}
		require.Equal(t, queue.Queued, enter.Request.Known, "it asks again, as the queue may have been terminated")
		return queue.Decision{State: queue.Granted}, time.Minute
	})
	var waits interpreter.StepRecord
	q.s.env.RegisterDelayedCallback(func() {
		var progress protocol.Progress
		answer, err := q.s.env.QueryWorkflow(protocol.ProgressQuery)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&progress))
		waits = progress.Steps[0]
	}, time.Minute)
	result, took := q.s.run(fmt.Sprintf(stateOfOrders, ""))
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, interpreter.Pending, waits.Status)
	require.Equal(t, interpreter.ReasonState, waits.Reason)
	require.Equal(t, "waits for the state test/orders, which run other holds", waits.Waiting)
	require.Equal(t, 3*time.Minute, took)
	require.Len(t, q.requests, 3)
	require.Len(t, q.s.attempts, 1)
}

// TestStateSlotIsRefused: with on_conflict fail the visit fails, and a route may go on.
func TestStateSlotIsRefused(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, func(int, queue.Enter) (queue.Decision, time.Duration) {
		return queue.Decision{State: queue.Skipped, By: "other"}, 0
	})
	result, _ := q.s.run(fmt.Sprintf(stateOfOrders, ", on_conflict: fail") + "    next: [{when: \"{{ error.type == 'conflict' }}\", then: [{step: end}]}]\n  - step: end\n")
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	failure := result.Steps[0].Error
	require.Equal(t, interpreter.KindIncremental, failure.Kind)
	require.Equal(t, incremental.TypeConflict, failure.Type)
	require.Equal(t, `step orders: the run other holds the state "test/orders" (on_conflict: fail)`, failure.Message)
	require.Equal(t, []string{"orders#1 tries reprise-concurrency-state/test%2Forders"}, q.requests)
	require.Empty(t, q.s.attempts)
}

// TestStateSlotOfACancelledRun: who is cancelled while it waits leaves the queue.
func TestStateSlotOfACancelledRun(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, func(int, queue.Enter) (queue.Decision, time.Duration) {
		return queue.Decision{State: queue.Queued, By: "other"}, 0
	})
	q.s.env.RegisterDelayedCallback(q.s.env.CancelWorkflow, 30*time.Second)
	result, took := q.s.run(fmt.Sprintf(stateOfOrders, ""))
	require.Equal(t, interpreter.Cancelled, result.Status, "%+v", result.Error)
	require.Equal(t, 30*time.Second, took)
	id := "reprise-concurrency-state/test%2Forders"
	require.Equal(t, []string{"orders#1 asks " + id, "orders#1 leaves " + id}, q.requests)
	require.Equal(t, interpreter.Cancelled, result.Steps[0].Status)
}

// TestStateSlotIsSettled: retry-now has a visit that waits ask for its state again at once, and skip
// fails it, with a route as after any failure.
func TestStateSlotIsSettled(t *testing.T) {
	t.Parallel()
	id := "reprise-concurrency-state/test%2Forders"
	for name, row := range map[string]struct {
		update   string
		command  protocol.CommandInput
		requests []string
		message  string
		took     time.Duration
	}{
		"retry-now": {
			protocol.RetryNowUpdate, protocol.CommandInput{}, []string{"orders#1 asks " + id, "orders#1 asks " + id, "orders#1 leaves " + id}, "", 30 * time.Second,
		},
		"retry-now of the step": {
			protocol.RetryNowUpdate,
			protocol.CommandInput{Step: "orders"},
			[]string{"orders#1 asks " + id, "orders#1 asks " + id, "orders#1 leaves " + id},
			"",
			30 * time.Second,
		},
		"skip": {
			protocol.SkipUpdate,
			protocol.CommandInput{Step: "orders", By: "ada", Reason: "no"},
			[]string{"orders#1 asks " + id, "orders#1 leaves " + id},
			"step orders: skipped by ada: no (waits for the state test/orders, which run other holds)", 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newStateQueues(t, func(n int, _ queue.Enter) (queue.Decision, time.Duration) {
				if n == 1 {
					return queue.Decision{State: queue.Queued, By: "other"}, time.Second
				}
				return queue.Decision{State: queue.Granted}, 0
			})
			q.s.steerAt(30*time.Second, row.update, row.command)
			result, took := q.s.run(fmt.Sprintf(stateOfOrders, "") + "    next: [{when: \"{{ error is defined }}\", then: [{step: end}]}]\n  - step: end\n")
			require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
			require.Equal(t, row.requests, q.requests)
			require.Equal(t, row.took, took)
			if row.message == "" {
				require.Nil(t, result.Steps[0].Error)
				require.Len(t, q.s.attempts, 1)
				return
			}
			require.Equal(t, interpreter.KindExplicit, result.Steps[0].Error.Kind)
			require.Equal(t, row.message, result.Steps[0].Error.Message)
			require.Empty(t, q.s.attempts)
		})
	}
}

// TestStateSlotThatComesLate: a slot for a visit that has ended is returned, and does not count
// for the next one.
func TestStateSlotThatComesLate(t *testing.T) {
	t.Parallel()
	run := ""
	q := newStateQueues(t, func(_ int, enter queue.Enter) (queue.Decision, time.Duration) {
		run = enter.Request.RunID
		return queue.Decision{State: queue.Granted}, 0
	})
	q.s.env.RegisterDelayedCallback(func() {
		q.s.env.SignalWorkflow(queue.DecisionSignal, queue.Decision{
			RunID: run, Visit: "orders#1", Queue: "reprise-concurrency-state/test%2Forders", State: queue.Granted,
		})
	}, 30*time.Second)
	q.s.run(fmt.Sprintf(stateOfOrders, "") + `    next: wait
  - step: wait
    tool: http
    url: http://localhost
    retry: [{when: "{{ _retry.count < 2 }}", then: {max_attempts: 3, delay: 30s}}]
`)
	id := "reprise-concurrency-state/test%2Forders"
	require.Equal(t, []string{"orders#1 asks " + id, "orders#1 leaves " + id, "orders#1 leaves " + id}, q.requests)
}

// TestStateSlotOfALoop: all iterations of a visit have one slot, whatever their states are.
func TestStateSlotOfALoop(t *testing.T) {
	t.Parallel()
	q := newStateQueues(t, granted)
	result, _ := q.s.run(`
  - step: orders
    tool: http
    url: http://localhost
    loop: {in: "{{ ['a', 'b'] }}", iterator: tenant, sink: {tool: http, url: "http://localhost"}}
    params: {since: "{{ incremental.value }}"}
    incremental: {cursor_path: id, initial_value: 0, state: "{{ 1 + 1 }} of {{ tenant }}"}
`)
	require.NotEqual(t, interpreter.Failed, result.Status, "%+v", result.Error)
	id := queue.Name{Key: "2 of {{ tenant }}", State: true}.WorkflowID()
	require.Equal(t, []string{"orders#1 asks " + id, "orders#1 leaves " + id}, q.requests)
}
