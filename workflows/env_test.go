package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/mailbox"
	"reprise/interpreter/tree"
	"reprise/workflows"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
	"reprise/workflows/run"
)

func TestMain(m *testing.M) {
	if os.Getenv("TEST_NO_CACHE") != "" {
		worker.SetStickyWorkflowCacheSize(0)
	}
	testenv.Main(m)
}

// began is when every run of these tests begins. Time is skipped: waits of
// hours take none.
var began = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// attempt is one call of the tool http.
type attempt struct {
	at time.Duration // since the run began
	in interpreter.ToolInput
}

// stage runs one playbook with tools that a test plays.
type stage struct {
	t         *testing.T
	mu        sync.Mutex // of what attempts note, which several may do at once
	env       *testsuite.TestWorkflowEnvironment
	attempts  []attempt
	written   []interpreter.ToolInput // by sinks
	writtenAt []time.Duration
	// refuses answers the n-th write, from 1; nil takes all.
	refuses func(n int, in interpreter.ToolInput) error
	timers  []time.Duration
	// attributes says that the namespace has our search attributes.
	attributes bool
	// recalled is what earlier runs answer.
	recalled interpreter.EarlierAnswers
}

// alone is the name under which calls run without their loop, or their run.
const alone = "batch"

// runBatch executes calls without their loop, or their run.
func (s *stage) runBatch(input protocol.CallsInput) {
	task, script := input.Task.SplitScript()
	input.Task = task
	s.env.ExecuteWorkflow(alone, input, script)
}

// nextBatch is the input with which a batch continues as new.
func nextBatch(t *testing.T, next *workflow.ContinueAsNewError) (input protocol.CallsInput) {
	t.Helper()
	var script call.Script
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &script))
	input.Task = input.Task.WithScript(script)
	return input
}

// chained registers workflows of which the environment says, as a server does, what the
// first run ID of their chain is.
type chained struct {
	*testsuite.TestWorkflowEnvironment
}

func (c chained) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	if options.Name == protocol.PlaybookWorkflowName {
		w = func(ctx workflow.Context, input protocol.Input) (*protocol.Result, error) {
			workflow.GetInfo(ctx).FirstRunID = "first-of-the-chain"
			return run.PlaybookWorkflow(ctx, input)
		}
	}
	c.TestWorkflowEnvironment.RegisterWorkflowWithOptions(w, options)
}

// play is what the tool http answers to its n-th attempt, from 1.
type play func(n int, in interpreter.ToolInput) (any, error)

func newStage(t *testing.T, answer play) *stage {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &stage{t: t, env: suite.NewTestWorkflowEnvironment()}
	s.env.SetStartTime(began)
	s.env.SetTestTimeout(testenv.Within(time.Minute))
	s.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a busy machine is no deadlock
	workflows.Register(chained{s.env})
	s.env.RegisterWorkflowWithOptions(loop.CallsWorkflow, workflow.RegisterOptions{Name: alone})
	// Hosts nothing, so that every attempt is one that the test plays.
	s.register(call.DriveActivity, func(_ context.Context, in call.DriveInput) (call.DriveOutput, error) {
		return call.DriveOutput{Calls: make([]call.Driven, len(in.Calls))}, nil
	})
	s.register(interpreter.CheckActivity, func(context.Context, interpreter.CheckInput) (interpreter.CheckResult, error) {
		return interpreter.CheckResult{Limits: interpreter.RunLimits{}}, nil
	})
	s.register(interpreter.RecallActivity, func(context.Context, interpreter.Recall) (interpreter.EarlierAnswers, error) {
		return s.recalled, nil
	})
	s.register(tree.MayStartActivity, func(context.Context, tree.RunStart) (tree.AdmissionAnswer, error) {
		return tree.AdmissionAnswer{}, nil
	})
	s.register(mailbox.SettleActivity, func(context.Context, []string) error { return nil }) // nothing is kept
	s.register("http", func(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.attempts = append(s.attempts, attempt{at: s.env.Now().Sub(began), in: in})
		data, err := answer(len(s.attempts), in)
		if off, isOff := data.(interpreter.PutOff); isOff {
			return interpreter.ToolResult{PutOff: &off}, err
		}
		return interpreter.ToolResult{Data: expression.Of(data)}, err
	})
	s.register(interpreter.WriteActivity("http"), func(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.written, s.writtenAt = append(s.written, in), append(s.writtenAt, s.env.Now().Sub(began))
		if s.refuses != nil {
			return interpreter.ToolResult{}, s.refuses(len(s.written), in)
		}
		return interpreter.ToolResult{}, nil
	})
	s.env.SetOnTimerScheduledListener(func(_ string, wait time.Duration) { s.timers = append(s.timers, wait) })
	return s
}

func (s *stage) register(name string, run any) {
	s.env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
}

// run runs a playbook of these steps and gives its result and how long it took.
func (s *stage) run(steps string) (protocol.Result, time.Duration) {
	s.t.Helper()
	head := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\n"
	if !strings.HasPrefix(steps, "timeout:") {
		head += "workflow:\n"
	}
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{
		Name: "test.yaml", Source: head + strings.TrimLeft(steps, "\n"), SearchAttributes: s.attributes, NextRetry: s.attributes,
	})
	require.True(s.t, s.env.IsWorkflowCompleted())
	var result protocol.Result
	err := s.env.GetWorkflowError()
	if err == nil {
		require.NoError(s.t, s.env.GetWorkflowResult(&result))
	} else {
		require.NoError(s.t, details(err, &result))
	}
	return result, s.env.Now().Sub(began)
}

func details(err error, into any) error {
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.HasDetails() {
		return application.Details(into)
	}
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) && cancelled.HasDetails() {
		return cancelled.Details(into)
	}
	return err
}

// times are when the attempts began.
func (s *stage) times() []time.Duration {
	all := make([]time.Duration, len(s.attempts))
	for i, attempt := range s.attempts {
		all[i] = attempt.at
	}
	return all
}

// failure is an error of the tool http.
func failure(object interpreter.ErrorObject) error {
	if object.Kind == "" {
		object.Kind, object.Status = interpreter.KindHTTP, 503
	}
	if object.Class == "" {
		object.Class = interpreter.ClassRetryable
	}
	object.Message = "HTTP 503"
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind),
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{object}})
}

func unavailable() error { return failure(interpreter.ErrorObject{}) }

func rateLimited(wait time.Duration) error {
	seconds := wait.Seconds()
	return failure(interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRateLimited, Status: 429, RetryAfter: &seconds,
	})
}

// always fails every attempt in the same way.
func always(err error) play {
	return func(int, interpreter.ToolInput) (any, error) { return nil, err }
}

// until fails the first n attempts.
func until(n int, err error) play {
	return func(i int, _ interpreter.ToolInput) (any, error) {
		if i <= n {
			return nil, err
		}
		return map[string]any{"ok": true}, nil
	}
}

func hours(all ...float64) []time.Duration {
	durations := make([]time.Duration, len(all))
	for i, h := range all {
		durations[i] = time.Duration(h * float64(time.Hour))
	}
	return durations
}
