package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
)

// TestRequestsCountTheirLostWorkers: an attempt knows how often its request was
// lost before, whatever was in between; a page later, or where workers have
// stopped in order, nothing is counted.
func TestRequestsCountTheirLostWorkers(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `
workflow:
  - step: a
    tool: http
    url: http://x
    retry:
      - when: "{{ error.status == 410 }}"
        then: {max_attempts: 3, restart: true, delay: 0}
      - when: "{{ error is defined }}"
        then: {max_attempts: 20, delay: 0}
      - when: "{{ response.next is defined }}"
        then: {next_call: {params: {page: "{{ response.next }}"}}}
`)
	step := book.Steps[0]
	machine := call.New(call.Config{
		Source: request.Source{
			Book: book, Run: tables.Run, Step: step, Action: step.Action, Visit: 1, Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}),
		},
		Sinks: sink.Sinks{Policies: step.Retry}, Random: func() float64 { return 0 },
	})
	stopped := interpreter.WorkerLostError()
	stopped.Type = interpreter.TypeStopped
	for _, attempt := range []struct {
		lost int // before it
		gave interpreter.Outcome
	}{
		{0, interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable}}},
		{0, interpreter.Outcome{Err: stopped}},
		{0, interpreter.Outcome{Err: interpreter.WorkerLostError()}},
		{1, interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable}}},
		{1, interpreter.Outcome{Data: map[string]any{"next": 2}}},
		{0, interpreter.Outcome{Err: interpreter.WorkerLostError()}},
		{1, interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 410}}},
		{1, interpreter.Outcome{Err: interpreter.WorkersLost(true)}},
	} {
		command := machine.Next(tables.Started)
		if command.Kind == call.DoWait {
			machine.EndWait()
			command = machine.Next(tables.Started)
		}
		require.Equal(t, call.DoAttempt, command.Kind)
		require.Equal(t, attempt.lost, command.Input.Lost)
		machine.ApplyOutcome(attempt.gave, tables.Started)
	}
	require.Equal(t, call.DoFinish, machine.Next(tables.Started).Kind, "whatever the policies say")
	require.Equal(t, interpreter.ClassFinal, machine.Result().Error.Class)
}
