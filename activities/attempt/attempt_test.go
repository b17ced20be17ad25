package attempt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// toolFunc is a tool made of a function.
type toolFunc func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error)

func (toolFunc) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{Name: "probe", Summary: "A tool of a test."}
}

func (f toolFunc) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return f(ctx, in)
}

func probe(t *testing.T, f toolFunc) *activities.Catalogue {
	t.Helper()

	c := activities.DefaultCatalogue()
	require.NoError(t, c.RegisterTool(f))
	return c
}

func callProbe(t *testing.T, f toolFunc, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return tooltest.Call(t, probe(t, f), "probe", "probe", in)
}

func failsWith(err error) toolFunc {
	return func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		return interpreter.ToolResult{}, err
	}
}

func TestErrorsBecomeErrorObjects(t *testing.T) {
	t.Parallel()

	wait := 1500 * time.Millisecond

	for name, c := range map[string]struct {
		err  error
		want interpreter.ErrorObject
	}{
		"plain": {
			errors.New("it broke"),
			interpreter.ErrorObject{Kind: "tool", Class: "retryable", Message: "it broke"},
		},
		"empty": {
			&tool.Error{},
			interpreter.ErrorObject{Kind: "tool", Class: "retryable", Message: "the tool failed and gave no reason"},
		},
		"wrapped": {
			fmt.Errorf("while trying: %w", &tool.Error{Kind: "http", Class: "final", Message: "HTTP 404", Status: 404, Type: "t"}),
			interpreter.ErrorObject{Kind: "http", Class: "final", Message: "HTTP 404", Status: 404, Type: "t"},
		},
		"all": {
			&tool.Error{Err: errors.New("cause"), RetryAfter: &wait, Body: map[string]any{"n": 1}, Final: true},
			interpreter.ErrorObject{
				Kind: "tool", Class: "retryable", Message: "cause", RetryAfter: ptr(1.5),
				Body: expression.Of(map[string]any{"n": 1}), Final: true,
			},
		},
		"no valid text": {
			errors.New("a\xffb"),
			interpreter.ErrorObject{Kind: "tool", Class: "retryable", Message: "a\uFFFDb"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := callProbe(t, failsWith(c.err), interpreter.ToolInput{Attempt: 4, Page: 5})
			c.want.Attempt, c.want.Page = 4, 5

			require.Equal(t, c.want, tooltest.ErrorObject(t, err))
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestErrorBodiesAndMessagesAreCut(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("ä", 20_000)

	for name, body := range map[string]any{"text": long, "map": map[string]any{"long": long}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := callProbe(t, failsWith(&tool.Error{Message: long, Body: body}), interpreter.ToolInput{})
			object := tooltest.ErrorObject(t, err)
			text, isText := object.Body.Data.(string)

			require.True(t, isText)
			require.LessOrEqual(t, len(text), tool.MaxErrorBody)
			require.Greater(t, len(text), tool.MaxErrorBody-100)
			require.Regexp(t, "ä\n… [0-9]+ bytes left out …\nä", text, "whole runes")
			head, tail, _ := strings.Cut(text, "\n… ")
			require.InDelta(t, len(head), len(tail), 100, "beginning and end alike")
			require.Less(t, len(object.Message), 5000)
		})
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	t.Parallel()

	_, err := callProbe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		panic("index out of range")
	}, interpreter.ToolInput{})
	object := tooltest.ErrorObject(t, err)

	require.EqualValues(t, "tool", object.Kind)
	require.EqualValues(t, "final", object.Class)
	require.Equal(t, `tool "probe" panicked: index out of range`, object.Message)
}

func TestAToolThatEndsItsGoroutineFails(t *testing.T) {
	t.Parallel()

	_, err := callProbe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		runtime.Goexit()
		return interpreter.ToolResult{}, nil
	}, interpreter.ToolInput{})

	require.Contains(t, tooltest.ErrorObject(t, err).Message, "ended without a result")
}

// A tool that does not look at its context is left behind.
func TestAttemptsEndThoughTheToolDoesNot(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	t.Cleanup(func() { close(release) })

	began := time.Now()
	_, err := callProbe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		<-release
		return interpreter.ToolResult{}, nil
	}, interpreter.ToolInput{TimeoutSeconds: 0.1})

	require.Equal(t, interpreter.KindTimeout, tooltest.ErrorObject(t, err).Kind)
	require.Less(t, time.Since(began), attempt.StopGrace+testenv.Within(8*time.Second))
}

func untilDone(ctx context.Context, _ interpreter.ToolInput) (interpreter.ToolResult, error) {
	<-ctx.Done()
	return interpreter.ToolResult{}, fmt.Errorf("stopped: %w", ctx.Err())
}

// A tool that found its own error just before the time was over keeps it.
func TestAnErrorOfTheToolIsNoTimeout(t *testing.T) {
	t.Parallel()

	_, err := callProbe(t, func(ctx context.Context, _ interpreter.ToolInput) (interpreter.ToolResult, error) {
		<-ctx.Done()
		return interpreter.ToolResult{}, &tool.Error{Kind: "http", Class: "final", Status: 404, Message: "HTTP 404"}
	}, interpreter.ToolInput{TimeoutSeconds: 0.05})

	require.Equal(t, "HTTP 404", tooltest.ErrorObject(t, err).Message)
}

func TestResultsThatTemporalRefusesAreErrors(t *testing.T) {
	t.Parallel()

	gives := func(n int) toolFunc {
		return func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
			return interpreter.ToolResult{Data: expression.Of(strings.Repeat("x", n))}, nil
		}
	}
	const beside = len(`{"data":"","meta":{"rows":{}}}`)
	_, err := callProbe(t, gives(interpreter.MaxInlinePayload-beside), interpreter.ToolInput{})
	require.NoError(t, err)

	_, err = callProbe(t, gives(interpreter.MaxInlinePayload-beside+1), interpreter.ToolInput{Step: "fetch"})
	object := tooltest.ErrorObject(t, err)

	require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind)
	require.EqualValues(t, "final", object.Class)
	require.Contains(t, object.Message, `step "fetch": the result of one attempt has 1900001 bytes of JSON, the limit is 1900000`)
}

func probeActivity(t *testing.T, f toolFunc) attempt.Func {
	t.Helper()

	for _, a := range probe(t, f).Attempts.Activities() {
		if a.Name == "probe" {
			return a.Run
		}
	}

	require.Fail(t, "no activity")
	return nil
}

func TestHeartbeatsGoOnWhileTheToolRuns(t *testing.T) {
	t.Parallel()

	seen := make(chan struct{}, 1000)
	tool := toolFunc(func(ctx context.Context, _ interpreter.ToolInput) (interpreter.ToolResult, error) {
		for range 2 {
			select {
			case <-seen:
			case <-ctx.Done():
				return interpreter.ToolResult{}, errors.New("no heartbeat came")
			}
		}
		return interpreter.ToolResult{Data: expression.Of("beating")}, nil
	})

	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(testenv.Within(time.Minute))
	env.RegisterActivityWithOptions(probeActivity(t, tool), activity.RegisterOptions{Name: "probe"})
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { seen <- struct{}{} })
	env.ExecuteWorkflow(func(ctx workflow.Context) (interpreter.ToolResult, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, HeartbeatTimeout: 2 * time.Second,
		})

		var result interpreter.ToolResult

		err := workflow.ExecuteActivity(ctx, "probe", tooltest.CompleteInput(interpreter.ToolInput{TimeoutSeconds: 30}, "probe")).Get(ctx, &result)
		return result, err
	})

	var result interpreter.ToolResult

	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, "beating", result.Data.Data)
}

// An attempt that ends because its worker stops is delivered to another one:
// it is the only error that Temporal may retry.
func TestAStoppedWorkerGivesTheAttemptBack(t *testing.T) {
	t.Parallel()

	stop := make(chan struct{})
	close(stop)

	ctx, cancel := context.WithCancel(context.Background())

	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(probeActivity(t, func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		cancel()
		return untilDone(ctx, in)
	}), activity.RegisterOptions{Name: "probe"})
	env.SetTestTimeout(testenv.Within(20 * time.Second))
	env.SetWorkerStopChannel(stop)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})

	_, err := env.ExecuteActivity("probe", tooltest.CompleteInput(interpreter.ToolInput{}, "probe"))

	var application *temporal.ApplicationError

	require.ErrorAs(t, err, &application)
	require.EqualValues(t, interpreter.KindWorkerLost, application.Type())
	require.False(t, application.NonRetryable())
}

// The history is read by Temporal's UI and by every later version.
func TestErrorsInHistoryHaveTheirShape(t *testing.T) {
	t.Parallel()

	_, err := callProbe(t, failsWith(&tool.Error{Kind: "http", Class: "rate_limited", Status: 429, RetryAfter: ptr(2 * time.Second), Message: "HTTP 429"}),
		interpreter.ToolInput{Attempt: 1, Page: 1})
	encoded, marshalErr := json.Marshal(tooltest.ErrorObject(t, err))

	require.NoError(t, marshalErr)
	require.JSONEq(t, `{"kind":"http","class":"rate_limited","message":"HTTP 429","status":429,"retry_after":2,"attempt":1,"page":1}`, string(encoded))
}
