package call_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

const stoppedBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workload: {n: 1}
workflow:
  - step: fetch
    tool: http
    url: "http://localhost/{{ n }}"
    params: {page: 1}
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 3, delay: 5s}
      - when: "{{ response.more }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          collect: {path: rows}
          per_page: {sink: {tool: http, url: "http://localhost/sink"}}
`

// stoppable is a call of stoppedBook.
type stoppable struct {
	t    *testing.T
	task call.Task
	call *call.Call
	at   time.Time
}

func newStoppable(t *testing.T, run interpreter.RunInfo, n int) *stoppable {
	t.Helper()
	task := call.Task{Name: "test.yaml", Source: stoppedBook, Run: run, Step: "fetch", Visit: 1, Data: interpreter.Data{
		Workload: expression.Of(map[string]any{"n": n}),
	}, Limits: interpreter.RunLimits{MaxRetries: 2 + len(run.Lap)}}
	book, step, err := task.LoadStep()
	require.NoError(t, err)
	return &stoppable{t: t, task: task, call: task.BuildCall(book, step, call.Snapshot{}, func() float64 { return 0 }), at: tables.Started}
}

func (s *stoppable) next() call.Command {
	s.at = s.at.Add(time.Second)
	return s.call.Next(s.at)
}

// page answers the request that is due, which is for a page.
func (s *stoppable) page(n int, more bool) {
	s.t.Helper()
	command := s.next()
	require.Equal(s.t, call.DoAttempt, command.Kind)
	require.EqualValues(s.t, n, command.Input.Fields["params"].Data.(map[string]any)["page"])
	s.call.ApplyOutcome(interpreter.Outcome{Data: tables.Value(s.t, tables.Encode(s.t, map[string]any{"page": n, "more": more, "rows": []any{n}}))}, s.at)
}

func (s *stoppable) fails() {
	s.t.Helper()
	require.Equal(s.t, call.DoAttempt, s.next().Kind)
	s.call.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 500, Class: interpreter.ClassRetryable}}, s.at)
}

// due is the sink that is due, as it would be sent.
func (s *stoppable) due() interpreter.ToolInput {
	s.t.Helper()
	command := s.next()
	require.Equal(s.t, call.DoSink, command.Kind)
	return command.Sink.Next(s.at).Input
}

func (s *stoppable) written() {
	s.t.Helper()
	s.due()
	s.call.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, s.at)
}

// continued is the call in a run that takes the place of this one, one day later.
func (s *stoppable) continued(n int) (*stoppable, call.StoppedCall) {
	s.t.Helper()
	encoded, err := json.Marshal(s.task.StoppedAs(s.call))
	require.NoError(s.t, err)
	var stopped call.StoppedCall
	require.NoError(s.t, json.Unmarshal(encoded, &stopped))
	run := s.task.Run
	run.Lap += "a2"
	again := newStoppable(s.t, run, n)
	again.at = s.at.Add(24 * time.Hour)
	if stopped.State != nil && again.task.CanContinue(again.call, stopped) {
		again.call.ContinueFrom(stopped)
		require.True(s.t, again.call.View().Recalls)
		again.call.MarkRecalled()
	}
	return again, stopped
}

var stoppedRun = interpreter.RunInfo{WorkflowID: "a", RunID: "b", Key: "k"}

// TestContinue: a call that is continued makes the request that was due, with its attempts
// anew, and ends with all pages.
func TestContinue(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(s *stoppable){
		"before an attempt": func(*stoppable) {},
		"in a wait":         func(s *stoppable) { s.fails(); s.call.EndWait(); s.fails() },
		"on hold":           func(s *stoppable) { s.call.Hold(interpreter.Hold{Version: 1}) },
		"cancelled":         func(s *stoppable) { s.fails(); s.call.Cancel(s.at) },
		"abandoned":         func(s *stoppable) { s.call.Abandon(interpreter.ErrorObject{Message: "silent"}, s.at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoppable(t, stoppedRun, 1)
			s.page(1, true)
			s.written()
			key := s.next().Input.OperationKey
			stop(s)
			again, _ := s.continued(1)
			require.Equal(t, key, again.next().Input.OperationKey)
			require.NotEqual(t, key, again.next().Input.AttemptKey)
			again.fails()
			again.call.EndWait()
			again.fails()
			again.call.EndWait()
			again.page(2, false)
			again.written()
			result := again.next().Result
			require.Equal(t, interpreter.StatusSuccess, result.Status, "%+v", result.Error)
			require.JSONEq(t, "[1, 2]", tables.Encode(t, result.Data.Data))
		})
	}
}

// TestASnapshotHasThePageOnce: rows that are a list of the page are encoded with the page only, and are the same to the
// call that is loaded from the snapshot.
func TestASnapshotHasThePageOnce(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct{ old, collects, contribution string }{
		"collect":    {"", "", `"contribution_at":"rows"`},
		"rows":       {"    params:", "    rows: rows\n    params:", `"contribution_at":"rows"`},
		"rows by *":  {"    params:", "    rows: rows.*\n    params:", `"contribution":[1]`},
		"where":      {"    params:", "    rows: rows\n    where: \"{{ row > 1 }}\"\n    params:", `"contribution":[]`},
		"whole page": {"          collect: {path: rows}\n", "", `"contribution_at":""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoppable(t, stoppedRun, 1)
			s.task.Source = strings.Replace(stoppedBook, at.old, at.collects, 1)
			book, step, err := s.task.LoadStep()
			require.NoError(t, err)
			fresh := func() *call.Call {
				return s.task.BuildCall(book, step, call.Snapshot{}, func() float64 { return 0 })
			}
			s.call = fresh()
			s.page(1, true)
			due := s.due()
			encoded := tables.Encode(t, json.RawMessage(marshal(t, s.call.View().Snapshot())))
			require.Contains(t, encoded, at.contribution)
			require.Equal(t, due, s.due(), "a snapshot changed the call")
			var state call.State
			require.NoError(t, json.Unmarshal([]byte(encoded), &state))
			s.call = fresh()
			s.call.Load(&state)
			require.Equal(t, due, s.due())
			require.Equal(t, encoded, tables.Encode(t, json.RawMessage(marshal(t, s.call.View().Snapshot()))))
		})
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	return encoded
}

// TestContinueASink: a page that may have been written is written again as it was.
func TestContinueASink(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(s *stoppable){
		"terminated": func(*stoppable) {},
		"cancelled": func(s *stoppable) {
			sink := s.next().Sink
			s.call.SinkDone(sink.Cancel(s.at), s.at)
		},
		"left in the midst": func(s *stoppable) {
			sink := s.next().Sink
			sink.Next(s.at)
			sink.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable}}, s.at)
			s.call.StoreSink(sink)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoppable(t, stoppedRun, 1)
			s.page(1, true)
			before := s.due()
			stop(s)
			again, stopped := s.continued(1)
			due := again.due()
			require.Equal(t, before.OperationKey, due.OperationKey)
			require.Equal(t, before.Fingerprint, due.Fingerprint)
			require.Equal(t, before.Result, due.Result)
			again.written()
			again.page(2, false)
			again.written()
			require.JSONEq(t, "[1, 2]", tables.Encode(t, again.next().Result.Data.Data))
			third, later := again.continued(1)
			require.Equal(t, stopped.Ledger, later.Ledger, "ledgers know it by one key")
			require.JSONEq(t, "[1, 2]", tables.Encode(t, third.next().Result.Data.Data))
		})
	}
}

// TestNotContinued: what has failed, asks for something else or has no page begins anew.
func TestNotContinued(t *testing.T) {
	t.Parallel()
	s := newStoppable(t, stoppedRun, 1)
	s.fails()
	again, stopped := s.continued(1)
	require.True(t, stopped.State.CanStartAnew())
	again.page(1, false)
	require.Equal(t, "k", stopped.Key)

	s = newStoppable(t, stoppedRun, 1)
	s.page(1, true)
	s.written()
	again, _ = s.continued(2)
	again.page(1, false)
	for range 3 {
		s.fails()
		if !s.call.Finished() {
			s.call.EndWait()
		}
	}
	require.True(t, s.call.Finished())
	_, stopped = s.continued(1)
	require.Nil(t, stopped.State)
	require.False(t, s.call.View().Stopped)
}
