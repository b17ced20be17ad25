package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

func failedLoop(n, message, collected int) *interpreter.LoopResult {
	result := interpreter.NewLoopResult(n)
	for i := range n {
		result.Add(i, i, interpreter.IterationResult{Index: i, Result: interpreter.CallResult{
			Status: interpreter.StatusError,
			Error: &interpreter.ErrorObject{
				Kind: interpreter.KindTool, Message: strings.Repeat("m", message),
				Collected: expression.Of(strings.Repeat("c", collected)),
			},
		}})
	}
	return result
}

// withHeaders gives each error of a loop headers of so many bytes.
func withHeaders(result *interpreter.LoopResult, bytes int) *interpreter.LoopResult {
	for _, failure := range result.Errors {
		failure.Error.Headers = map[string]string{"x": strings.Repeat("h", bytes)}
	}
	return result
}

// inWorkflow calls f in a workflow, with no limits but those of the language.
func inWorkflow(t *testing.T, f func(workflow.Context)) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	// A busy machine is no deadlock.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		f(withOutbox(ctx, interpreter.RunLimits{}))
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
}

// TestFitLoop: whatever a loop gives crosses the boundary, and the stats are
// never touched.
func TestFitLoop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result *interpreter.LoopResult
		errors int // kept; -1 for some
		budget bool
	}{
		"small":              {failedLoop(10, 100, 100), 10, false},
		"much collected":     {failedLoop(100, 100, 50_000), 100, false},
		"many headers":       {withHeaders(failedLoop(2_000, 100, 0), 1_000), 2_000, false},
		"very many failures": {failedLoop(20_000, 300, 0), -1, true},
		"long messages":      {failedLoop(2_000, 4_000, 4_000), -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stats := test.result.Stats
			inWorkflow(t, func(ctx workflow.Context) { fitLoop(ctx, test.result, "fetch") })
			require.LessOrEqual(t, encodedSize(test.result), interpreter.MaxInlinePayload)
			require.Equal(t, stats, test.result.Stats)
			require.Equal(t, test.budget, test.result.Budget != nil)
			if test.errors >= 0 {
				require.Len(t, test.result.Errors, test.errors)
				return
			}
			require.NotEmpty(t, test.result.Errors)
			require.Contains(t, test.result.Warnings[len(test.result.Warnings)-1], "errors")
			require.Equal(t, interpreter.KindPayloadTooLarge, test.result.Budget.Kind)
		})
	}
}

func TestBoundIterations(t *testing.T) {
	t.Parallel()
	output := &IterationOutput{Iterations: make([]interpreter.IterationResult, 50)}
	for i := range output.Iterations {
		output.Iterations[i] = interpreter.IterationResult{Index: i, Result: interpreter.CallResult{
			Status: interpreter.StatusError,
			Data:   expression.Of(strings.Repeat("d", 40_000)),
			Error: &interpreter.ErrorObject{
				Kind: interpreter.KindSink, Message: "no", Collected: expression.Of(strings.Repeat("c", 90_000)),
			},
		}}
	}
	bound(output, &playbook.Step{Loop: &playbook.Loop{}}, interpreter.MaxInlinePayload)
	require.LessOrEqual(t, encodedSize(output), interpreter.MaxInlinePayload)
	for _, iteration := range output.Iterations {
		require.Equal(t, interpreter.KindSink, iteration.Result.Error.Kind, "the error is still the first one")
	}
}
