package workflows_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// continueBatch runs a batch of five whose history is long once an attempt has failed,
// and the rest of it 20 minutes later, when it is answered otherwise.
func continueBatch(t *testing.T, mode string, answer, later play) (before, after *stage, output protocol.CallsOutput) {
	t.Helper()
	before = longOnceFailed(t, answer)
	after, output = continuedOn(t, before, mode, later)
	return before, after, output
}

// continuedOn runs a batch of five on a stage whose history becomes long, and the rest
// of it 20 minutes later.
func continuedOn(t *testing.T, before *stage, mode string, later play) (after *stage, output protocol.CallsOutput) {
	t.Helper()
	after = newStage(t, later)
	before.runBatch(batchOfFive(mode))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, before.env.GetWorkflowError(), &next)
	require.Equal(t, began, before.env.Now().UTC())
	after.env.SetStartTime(began.Add(20 * time.Minute))
	after.runBatch(nextBatch(t, next))
	require.NoError(t, after.env.GetWorkflowResult(&output))
	return after, output
}

// longOnceFailed is a stage whose history is long once an attempt has failed.
func longOnceFailed(t *testing.T, answer play) *stage {
	t.Helper()
	return longOnce(t, answer, func(_ int, err error) bool { return err != nil })
}

// longOnce is a stage whose history is long once an attempt has ended, of which
// over is told how many there were.
func longOnce(t *testing.T, answer play, over func(attempts int, err error) bool) *stage {
	t.Helper()
	s, attempts := newStage(t, answer), 0
	s.env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, err error) {
		if info.ActivityType.Name != "http" {
			return
		}
		if attempts++; over(attempts, err) {
			s.env.SetCurrentHistoryLength(5000)
		}
	})
	return s
}

func batchOfFive(mode string) protocol.CallsInput {
	input := protocol.CallsInput{MayRelease: mode == "parallel", Task: call.Task{
		Name: "test.yaml", Step: "fetch", Visit: 1, Source: `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [a, b, c, d, e], batch: 5, mode: ` + mode + `}
    retry:
      - {when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}
      - {when: response.pending is defined, then: {max_attempts: 1000, backoff: none}}
`,
	}}
	for index, element := range []string{"a", "b", "c", "d", "e"} {
		input.Calls = append(input.Calls, call.Snapshot{Index: &index, Size: 5, Element: expression.Of(element)})
	}
	return input
}

// indexes are those of iterations that gave their own index.
func indexes(t *testing.T, output protocol.CallsOutput) []int {
	t.Helper()
	var all []int
	for _, iteration := range output.Iterations {
		require.Equal(t, iteration.Index, iteration.Result.Data.Data)
		all = append(all, iteration.Index)
	}
	return all
}

// failsFirst is the element whose first attempt fails.
const failsFirst = 2

func failing(n int, in interpreter.ToolInput) (any, error) {
	if *in.Index == failsFirst {
		return nil, unavailable()
	}
	return fine(n, in)
}

func fine(_ int, in interpreter.ToolInput) (any, error) { return *in.Index, nil }

// TestBatchContinuesAsNew: the element under way waits for what is left,
// those that have ended keep their results, and those after it have their turn.
func TestBatchContinuesAsNew(t *testing.T) {
	t.Parallel()
	before, after, output := continueBatch(t, "sequential", failing, fine)
	require.Empty(t, before.timers)
	require.Len(t, before.attempts, 3)
	require.Equal(t, []time.Duration{40 * time.Minute}, after.timers)
	require.Len(t, after.attempts, 3)
	require.Equal(t, []int{0, 1, 2, 3, 4}, indexes(t, output))
}

// TestBatchThatCannotContinueAsNew: where what it would take along is more than a payload
// may be, the batch stays in its history, and every element comes to its end.
func TestBatchThatCannotContinueAsNew(t *testing.T) {
	t.Parallel()
	s := longOnceFailed(t, func(n int, in interpreter.ToolInput) (any, error) {
		if *in.Index == failsFirst && in.Attempt == 1 {
			return nil, unavailable()
		}
		return strings.Repeat("x", 100_000), nil
	})
	input := batchOfFive("sequential")
	input.Task.Limits.MaxPayload = 200_000
	s.runBatch(input)
	err := s.env.GetWorkflowError()
	require.ErrorContains(t, err, "all 5 iterations failed")
	var output protocol.CallsOutput
	require.NoError(t, details(err, &output))
	require.Len(t, s.attempts, 6)
	require.Len(t, output.Iterations, 5)
	for _, iteration := range output.Iterations {
		require.Equal(t, interpreter.KindPayloadTooLarge, iteration.Result.Error.Kind)
		require.Contains(t, iteration.Result.Error.Message, "the result of iteration")
	}
}

// TestBatchContinuesAsNewWithItsWaits: an element that waits goes along when another one of
// its batch needs another history, and waits there for the rest of its time.
func TestBatchContinuesAsNewWithItsWaits(t *testing.T) {
	t.Parallel()
	failed := 0 // which attempt it was
	before := longOnce(t, func(n int, in interpreter.ToolInput) (any, error) {
		if *in.Index == failsFirst+1 {
			return map[string]any{"pending": true}, nil
		}
		return failing(n, in)
	}, func(attempts int, err error) bool {
		if err != nil {
			failed = attempts
		}
		return failed > 0 && attempts > failed+3 // it waits by then
	})
	after, output := continuedOn(t, before, "parallel", fine)
	require.Equal(t, []time.Duration{time.Hour}, before.timers)
	require.Equal(t, []time.Duration{40 * time.Minute}, after.timers)
	require.Len(t, after.attempts, 2)
	require.Equal(t, []int{0, 1, 2, 3, 4}, indexes(t, output))
}

// TestBatchContinuesAsNewWithItsGrant: the loop no longer lets the batch release its slot, because its own history has no room for
// that; nor does the next history of the batch.
func TestBatchContinuesAsNewWithItsGrant(t *testing.T) {
	t.Parallel()
	for _, mayRelease := range []bool{true, false} {
		before := longOnceFailed(t, failing)
		before.env.RegisterDelayedCallback(func() {
			before.env.SignalWorkflow(protocol.ControlSignal, protocol.Steering{Slot: &protocol.SlotGrant{MayRelease: mayRelease}})
		}, 0)
		before.runBatch(batchOfFive("parallel"))
		var next *workflow.ContinueAsNewError
		require.ErrorAs(t, before.env.GetWorkflowError(), &next)
		require.Equal(t, mayRelease, nextBatch(t, next).MayRelease)
	}
}

// TestAttemptIsDeliveredAgain: what a worker hands back, or is lost with, is the
// same attempt when it comes again.
func TestAttemptIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(nil))
	var keys []string
	s.env.OnActivity("http", mock.Anything, mock.Anything).Return(func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		keys = append(keys, in.AttemptKey)
		if activity.GetInfo(ctx).Attempt < 10 {
			return interpreter.ToolResult{}, errors.New("the worker stops")
		}
		return interpreter.ToolResult{Data: expression.Of("here")}, nil
	})
	result, _ := s.run(`
  - step: fetch
    tool: http
    url: http://x
`)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, "here", result.Result.Data)
	require.Equal(t, 1, result.Steps[0].Attempts)
	require.Len(t, keys, 10)
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
}
