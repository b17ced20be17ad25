// Package tooltest is the conformance suite of tools: what the interpreter and
// the authors of playbooks rely on, whatever the tool does.
package tooltest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// patience is how long an attempt of a case may take, also on a machine that has much else
// to do.
const patience = 5 * time.Minute

// Suite says how to exercise one tool. Inputs are made anew for each use, so
// that tests can run side by side.
type Suite struct {
	Catalogue *activities.Catalogue
	Tool      string
	// Good is an attempt that succeeds, any number of times.
	Good func(t *testing.T) interpreter.ToolInput
	// Slow is an attempt that takes at least 30 s unless it is stopped.
	Slow func(t *testing.T) interpreter.ToolInput
	// Large is an attempt that reads so much that it is acquired from activities/memory: rows from 1 MiB in memory,
	// else from 64 KiB. LargeIn is a catalogue that allows it, nil for Catalogue.
	Large   func(t *testing.T) interpreter.ToolInput
	LargeIn *activities.Catalogue
	// Moves is set where what is read does not become the result.
	Moves bool
	// SlowAsSink is set where only a write can take long.
	SlowAsSink bool
	// TakesAuth is set where the tool uses connections; a missing one is tested.
	TakesAuth bool
	// Failures are those that the tool knows, at least one.
	Failures []FailureCase
	// Write exercises Write; needed for every tool whose spec says it writes.
	Write *WriteCase
	// Ledgers are the ways to write with notes, where the tool is an
	// tool.Ledger.
	Ledgers []LedgerCase
	// Secrets must show in no error: passwords, tokens, queries.
	Secrets []string
}

// FailureCase is an attempt that fails in a known way.
type FailureCase struct {
	Name   string
	Input  func(t *testing.T) interpreter.ToolInput
	Kind   interpreter.Kind
	Class  interpreter.Class
	Type   string
	Status int
	// Says is part of the message.
	Says string
	// AsSink makes the attempt through Write.
	AsSink bool
}

// WriteCase says how to write and how to see what was written.
type WriteCase struct {
	// Input is one write to a place of its own; the suite sets the keys.
	Input func(t *testing.T) interpreter.ToolInput
	// Effect is what is at the place an input has written to, in a form
	// that can be compared.
	Effect func(t *testing.T, in interpreter.ToolInput) any
	// Overwrites is set where a write with another key leaves the same effect,
	// such as an upsert.
	Overwrites bool
	// AuthorsDuty says why repeating a write is the author's to make harmless,
	// "" where the tool does it.
	AuthorsDuty string
}

// LedgerCase is one way to write with notes.
type LedgerCase struct {
	Name string
	// Input is one write to a place of its own, Other another one to that place.
	Input, Other func(t *testing.T) interpreter.ToolInput
	Effect       func(t *testing.T) any
	// Upserts is set where an operation key is not noted.
	Upserts bool
}

// prompt is how fast an attempt that was stopped must return. It is generous
// because test machines are slow; the slow attempts take far longer.
const prompt = 10 * time.Second

// Run runs the suite as subtests.
func Run(t *testing.T, suite Suite) {
	t.Helper()
	require.NotNil(t, suite.Good, "an attempt that succeeds")
	require.NotNil(t, suite.Slow, "an attempt that takes long unless it is stopped")
	require.NotNil(t, suite.Large, "an attempt that reads much: a worker bounds the memory of all attempts together, so what a tool reads is acquired from activities/memory")
	s := &runner{Suite: suite, run: ActivityOf(t, suite.Catalogue, suite.Tool)}
	s.spec, _ = suite.Catalogue.Spec(suite.Tool)
	t.Run("spec", s.testSpec)
	t.Run("example", s.testExample)
	t.Run("result", s.testResult)
	t.Run("memory", s.testMemory)
	t.Run("unknown fields", s.testUnknownFields)
	t.Run("concurrent use", s.testConcurrent)
	t.Run("cancelled", s.testCancelled)
	t.Run("cancelled before", s.testCancelledBefore)
	t.Run("timeout", s.testTimeout)
	if _, begins := suite.Catalogue.Attempts.Tools[suite.Tool].(tool.Beginner); begins {
		t.Run("held", s.testHeld)
	}
	t.Run("missing connection", s.testMissingConnection)
	require.NotEmpty(t, suite.Failures, "the failures that the tool knows, each with its kind and class")
	for _, failure := range suite.Failures {
		t.Run("failure/"+failure.Name, func(t *testing.T) { s.testFailure(t, failure) })
	}
	if s.spec.Writes || suite.Write != nil {
		require.NotNil(t, suite.Write, "a tool that writes needs the suite's Write")
		t.Run("write", s.testWrite)
	}
	for _, ledger := range suite.Ledgers {
		t.Run("ledger/"+ledger.Name, func(t *testing.T) { s.testLedger(t, ledger) })
	}
}

type runner struct {
	Suite
	spec playbook.ToolSpec
	run  attempt.Func
}

// ActivityOf returns the function a worker registers under a name.
func ActivityOf(t testing.TB, c *activities.Catalogue, name string) attempt.Func {
	t.Helper()
	for _, a := range c.Attempts.Activities() {
		if a.Name == name {
			return a.Run
		}
	}
	require.Failf(t, "no activity", "the catalogue has no activity %q", name)
	return nil
}

// slowActivity is the activity that the slow attempt is for.
func (s *runner) slowActivity(t *testing.T) attempt.Func {
	t.Helper()
	if s.SlowAsSink {
		return ActivityOf(t, s.Catalogue, interpreter.WriteActivity(s.Tool))
	}
	return s.run
}

func (s *runner) goodInput(t *testing.T) interpreter.ToolInput {
	return CompleteInput(s.Good(t), s.Tool)
}

// CompleteInput fills in what the interpreter always gives.
func CompleteInput(in interpreter.ToolInput, name string) interpreter.ToolInput {
	in.Tool = name
	in.Step = cmp.Or(in.Step, "fetch")
	in.Visit, in.Page, in.Attempt = max(in.Visit, 1), max(in.Page, 1), max(in.Attempt, 1)
	if in.TimeoutSeconds == 0 {
		in.TimeoutSeconds = patience.Seconds()
	}
	in.OperationKey = cmp.Or(in.OperationKey, "op-1")
	if in.AttemptKey == "" {
		in.AttemptKey = in.OperationKey + ":1"
	}
	return in
}

// Fields makes the fields of an input from canonical values.
func Fields(values map[string]any) map[string]expression.Value {
	fields := make(map[string]expression.Value, len(values))
	for name, v := range values {
		fields[name] = expression.Of(v)
	}
	return fields
}

// ErrorObject takes the error object out of what an activity returned, and
// checks the shape every activity error has.
func ErrorObject(t *testing.T, err error) interpreter.ErrorObject {
	t.Helper()
	var application *temporal.ApplicationError
	require.True(t, errors.As(err, &application), "want an ApplicationError, got %T: %v", err, err)
	require.True(t, application.NonRetryable(), "policies own the retries, not Temporal")
	var object interpreter.ErrorObject
	require.NoError(t, application.Details(&object))
	require.EqualValues(t, application.Type(), object.Kind)
	require.NotEmpty(t, object.Message)
	return object
}

// testMemory: what an attempt reads is acquired, so that many of them wait for each other and do not
// exhaust the worker. It is not parallel: other attempts acquire from the same memory.
func (s *runner) testMemory(t *testing.T) {
	const least = 64 << 10
	catalogue := cmp.Or(s.LargeIn, s.Catalogue)
	before := catalogue.Attempts.MemoryAcquired()
	result, err := ActivityOf(t, catalogue, s.Tool)(t.Context(), CompleteInput(s.Large(t), s.Tool))
	require.NoError(t, err)
	if !s.Moves {
		require.GreaterOrEqual(t, interpreter.EncodedSize(result.Data.Data), least, "the suite's Large reads too little")
	}
	require.GreaterOrEqual(t, catalogue.Attempts.MemoryAcquired()-before, int64(least),
		"tool %s has not acquired the memory for what it read: activities/memory has AcquireBody, AcquireJSON and Rows", s.Tool)
}

func (s *runner) testCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(300*time.Millisecond, cancel)
	defer stop.Stop()
	began := time.Now()
	_, err := s.slowActivity(t)(ctx, CompleteInput(s.Slow(t), s.Tool))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), prompt)
}

func (s *runner) testCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.run(ctx, s.goodInput(t))
	require.ErrorIs(t, err, context.Canceled)
}

// held is the host of attempts that may not begin.
type held struct{}

var errHeld = errors.New("the run is paused")

func (held) Begin(context.Context) error                           { return errHeld }
func (held) MarkAnswered()                                         {}
func (held) MarkReceiving(context.Context)                         {}
func (held) MarkProgress(context.Context, *interpreter.HostedStep) {}
func (held) Propagate(context.Context, http.Header)                {}

// testHeld: a tool that begins by itself does not act if it may not, and says so in the words of who holds it: an error of its own would count as a
// failed attempt.
func (s *runner) testHeld(t *testing.T) {
	t.Parallel()
	called := s.Catalogue.Attempts.Tools[s.Tool]
	ctx := tool.WithAttempt(t.Context(), held{})
	_, err := called.Run(ctx, s.goodInput(t))
	require.ErrorIs(t, err, errHeld)
	if writer, writes := called.(tool.Writer); writes && s.Write != nil {
		in := CompleteInput(s.Write.Input(t), s.Tool)
		before := s.Write.Effect(t, in)
		_, err := writer.Write(ctx, in)
		require.ErrorIs(t, err, errHeld)
		require.Equal(t, before, s.Write.Effect(t, in))
	}
}

func (s *runner) testTimeout(t *testing.T) {
	t.Parallel()
	in := CompleteInput(s.Slow(t), s.Tool)
	in.TimeoutSeconds = 0.3
	began := time.Now()
	_, err := s.slowActivity(t)(t.Context(), in)
	object := ErrorObject(t, err)
	require.Equal(t, interpreter.KindTimeout, object.Kind)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Contains(t, object.Message, "300ms")
	require.Less(t, time.Since(began), prompt)
}

// Value returns a value as an input has it.
func Value(v any) *expression.Value {
	wrapped := expression.Of(v)
	return &wrapped
}

// Input makes inputs with these fields.
func Input(fields map[string]any) func(*testing.T) interpreter.ToolInput {
	return func(*testing.T) interpreter.ToolInput {
		return interpreter.ToolInput{Fields: Fields(fields)}
	}
}

// Call makes an attempt of a tool by the activity of a name.
func Call(t testing.TB, c *activities.Catalogue, name, tool string, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return ActivityOf(t, c, name)(t.Context(), CompleteInput(in, tool))
}

// CallHTTP makes an attempt of the tool http.
func CallHTTP(t testing.TB, c *activities.Catalogue, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return Call(t, c, "http", "http", in)
}
