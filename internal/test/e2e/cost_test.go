package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/observe/cost"
	"reprise/internal/observe/ending"
	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// costWorld is a run whose actions are counted.
type costWorld struct {
	steps    string
	workload map[string]any
	assumed  cost.Assumption // what the run is like
	// people do what the run waits for.
	people  func(w *world, run client.WorkflowRun)
	latency time.Duration // of the API
	soak    bool          // it is long
}

func costLoop(batch string, elements int, soak bool) costWorld {
	return costWorld{soak: soak, workload: map[string]any{"elements": elements}, assumed: cost.Assumption{Elements: elements}, steps: `
  - step: each
    tool: http
    url: "{{ api }}/api/v1/assessments?n={{ n }}"
    loop: {in: "{{ 0..elements-1 }}", iterator: n, batch: ` + batch + `}
`}
}

// costWorlds are the runs of TestCostOfRuns.
var costWorlds = map[string]costWorld{
	"one step": {steps: "\n  - {step: one, tool: http, url: \"{{ api }}/api/v1/assessments\"}\n"},
	"retries with waits": {assumed: cost.Assumption{Attempts: 3}, steps: `
  - step: one
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: error.status == 503, then: {max_attempts: 3, delay: 0.01, jitter: none}}]
`},
	"pages": {assumed: cost.Assumption{Pages: 35}, steps: `
  - step: all
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 1}
    retry: [{when: response.paging.hasMore == true, then: {max_attempts: 100, next_call: {params: {page: "{{ response.paging.page + 1 }}"}}, collect: {path: data}}}]
`},
	"slow pages": {soak: true, assumed: cost.Assumption{Pages: 35}, latency: 100 * time.Millisecond, steps: `
  - step: all
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 1}
    retry: [{when: response.paging.hasMore == true, then: {max_attempts: 100, next_call: {params: {page: "{{ response.paging.page + 1 }}"}}, collect: {path: data}}}]
`},
	"loop, batch 1":    costLoop("1", 50, true),
	"loop, batch 10":   costLoop("10", 50, false),
	"loop, batch auto": costLoop("auto", 400, true),
	"sinks": {steps: `
  - step: one
    tool: http
    url: "{{ api }}/api/v1/assessments"
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {rows: 1}}
    next: [{step: two}]
  - step: two
    tool: http
    url: "{{ api }}/api/v1/assessments"
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {rows: 1}}
`},
	"failing iterations": {soak: true, workload: map[string]any{"elements": 20}, assumed: cost.Assumption{Elements: 20, Attempts: 3}, steps: `
  - step: each
    tool: http
    url: "{{ api }}/status/503"
    loop: {in: "{{ 0..elements-1 }}", iterator: n, batch: 1, thresholds: {partial_success: 0}}
    retry: [{when: error.status == 503, then: {max_attempts: 3, delay: 0.1, jitter: none}}]
`},
	"loop with rows in a table": {soak: true, workload: map[string]any{"elements": 50}, assumed: cost.Assumption{Elements: 50}, steps: `
  - step: each
    tool: http
    url: "{{ api }}/status/200"
    loop:
      in: "{{ 1..elements }}"
      iterator: n
      batch: 10
      sink: {tool: sqlite, auth: db, table: numbers, args: {n: "{{ n }}"}}
`},
	"rows in a table": {soak: true, steps: `
  - step: one
    tool: http
    url: "{{ api }}/status/200"
    sink: {tool: sqlite, auth: db, table: numbers, args: {n: 1}}
`},
	"loop with a sink": {soak: true, workload: map[string]any{"elements": 50}, assumed: cost.Assumption{Elements: 50}, steps: `
  - step: each
    tool: http
    url: "{{ api }}/status/200"
    loop: {in: "{{ 1..elements }}", iterator: n, batch: 10, sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {n: "{{ n }}"}}}
`},
	"loop of child runs": {soak: true, workload: map[string]any{"elements": 10}, assumed: cost.Assumption{Elements: 10}, steps: `
  - step: each
    tool: playbook
    loop: {in: "{{ 1..elements }}", iterator: n, mode: parallel, batch: 1}
    workload: {api: "{{ api }}"}
    workflow:
      - {step: inner, tool: http, url: "{{ api }}/status/200"}
`},
	"loop of shards": {soak: true, workload: map[string]any{"elements": 5001}, assumed: cost.Assumption{Elements: 5001}, steps: `
  - step: each
    tool: http
    url: "{{ api }}/status/200"
    loop: {in: "{{ 1..elements }}", iterator: n, mode: parallel, max_concurrency: 50}
`},
	"child run": {steps: `
  - step: one
    tool: playbook
    workload: {api: "{{ api }}"}
    workflow:
      - {step: inner, tool: http, url: "{{ api }}/api/v1/assessments"}
`},
	"approval": {people: answersAsk, steps: "\n  - {step: ask, tool: approval, message: \"Well?\", timeout: 1h}\n"},
	"webhook that is answered": {people: completesAsk, steps: `
  - {step: ask, tool: webhook, timeout: 1h, on_start: {url: "{{ api }}/api/v1/writes", body: {n: 1}}}
`},
	"attempt of seconds": {soak: true, steps: "\n  - {step: one, tool: python, code: \"import time\\ndef main(): time.sleep(9)\"}\n"},
}

// answersAsk approves the step ask of a run, and completesAsk completes it.
func answersAsk(w *world, run client.WorkflowRun) {
	w.answers(run.GetID(), interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete, Option: "approve"})
}

func completesAsk(w *world, run client.WorkflowRun) {
	w.answers(run.GetID(), interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete})
}

// mostCostError is the share by which an estimate may differ.
const mostCostError = 0.02

// TestCostOfRuns: what starter stats says about actions and history bytes is what the server has counted.
func TestCostOfRuns(t *testing.T) {
	t.Parallel()
	server := testenv.MeteredServer(t)
	_, err := connect.EnsureAttributes(t.Context(), server.Client(), server.Namespace, protocol.SearchAttributes())
	require.NoError(t, err)
	for name, test := range costWorlds {
		if test.soak && !*soak {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = server.Env
			if test.latency > 0 {
				w.serve(demoapi.Options{Latency: test.latency})
			}
			w.makeKeys()
			w.resources.CallbackURL = "https://serve.example.com/"
			w.work()
			w.connected["db"] = "sqlite:numbers.db"
			before := server.Actions(t)
			input := w.input(book(test.steps), test.workload)
			input.SearchAttributes = true
			run, err := server.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, input)
			require.NoError(t, err)
			if test.people != nil {
				test.people(w, run)
			}
			_, err = ending.WaitForResult(t.Context(), run)
			require.NoError(t, err)
			actions, kinds := 0, server.Actions(t)
			for _, kind := range []string{"grpc_QueryWorkflow", "message_UpdateWorkflowExecution:Rejection"} {
				delete(kinds, kind) // is not part of the estimate
			}
			for kind := range kinds {
				kinds[kind] -= before[kind]
				actions += kinds[kind]
			}
			counted, foretold := w.countCost(run), foretold(t, book(test.steps), test.assumed)
			t.Logf("%d actions, %d bytes; estimated: %+v; foretold: %+v; by kind: %v", actions, w.historySizes(run), counted, foretold, kinds)
			allowed := mostCostError * float64(actions)
			if counted.Heartbeats+kinds["grpc_RecordActivityTaskHeartbeat"] > 0 {
				allowed = max(allowed, 1) // an activity may end where one is due
			}
			require.InDelta(t, actions, counted.Actions, allowed, "%v", kinds)
			if test.people != nil {
				allowed = max(allowed, 1) // two markers may be in one workflow task
			}
			require.InDelta(t, actions-kinds["grpc_RecordActivityTaskHeartbeat"], foretold.Actions, allowed, "%v", kinds)
			require.InDelta(t, w.historySizes(run), counted.HistoryBytes, mostCostError*float64(counted.HistoryBytes))
		})
	}
}

// foretold is what starter validate --cost says of a playbook.
func foretold(t *testing.T, text string, assumed cost.Assumption) cost.Cost {
	t.Helper()
	read, found := playbook.Decode(source.NewFile("test.yaml", []byte(text)))
	require.False(t, found.HasErrors(), "%v", found)
	return cost.Foretell(read, assumed).Cost
}

// countCost is the cost of a run, with its child runs, as its histories say.
func (w *world) countCost(run client.WorkflowRun) (counted cost.Cost) {
	for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
		counted = counted.Plus(cost.OfHistory(history.History.GetEvents()))
	}
	return counted
}

// historySizes is the size of the histories of a run, with its child runs, as the server says.
func (w *world) historySizes(run client.WorkflowRun) (size int) {
	for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
		described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), history.WorkflowID, history.RunID)
		require.NoError(w.t, err)
		size += int(described.GetWorkflowExecutionInfo().GetHistorySizeBytes())
	}
	return size
}
