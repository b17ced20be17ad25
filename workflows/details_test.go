package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// metadataQuery is what the UI asks workflows for.
const metadataQuery = "__temporal_workflow_metadata"

// details is what the UI shows of a workflow; "" is the one under test.
func (s *stage) details(id string) string {
	s.t.Helper()
	answer, err := s.env.QueryWorkflow(metadataQuery)
	if id != "" {
		answer, err = s.env.QueryWorkflowByID(id, metadataQuery)
	}
	require.NoError(s.t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(s.t, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// TestDetailsOfACall: a run shows what its step waits for and until when, then how
// it ended.
func TestDetailsOfACall(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(2, unavailable()))
	var first, during string
	s.env.RegisterDelayedCallback(func() { first = s.details("") }, 30*time.Minute)
	s.env.RegisterDelayedCallback(func() { during = s.details("") }, 90*time.Minute)
	s.run(`
  - step: fetch_all
    tool: http
    url: http://x
    retry: [{when: error is defined, then: {max_attempts: 3, delay: 1h, backoff: fixed, jitter: none}}]
`)
	require.Contains(t, first, "| `fetch_all` | **retry_pending** | attempt 1 | 2025-03-01 13:00:00 UTC | `fetch_all: attempt 2 of 3 after 1h0m0s: HTTP 503` |")
	require.Contains(t, during, "| `fetch_all` | **retry_pending** | attempt 2 | 2025-03-01 14:00:00 UTC | `fetch_all: attempt 3 of 3 after 1h0m0s: HTTP 503` |")
	require.Contains(t, s.details(""), "| `fetch_all` | **completed** | 3 attempts |  |  |")
}

// TestDetailsOfALoop: the loop names what failed and what waits, with the workflow
// in which each is; so does the child itself, and the run leads to the loop.
func TestDetailsOfALoop(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
		switch *in.Index {
		case 1:
			return nil, failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 401})
		case 2:
			return nil, unavailable()
		}
		return "ok", nil
	})
	const loopID, childID = "default-test-workflow-id/fetch#1", "default-test-workflow-id/fetch#1/2"
	var run, loop, child string
	s.env.RegisterDelayedCallback(func() { run, loop, child = s.details(""), s.details(loopID), s.details(childID) }, 30*time.Minute)
	s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [a, b, c, d], mode: parallel}
    retry: [{when: error.class == 'retryable', then: {max_attempts: 2, delay: 1h, jitter: none}}]
`)
	link := func(id string) string {
		return "(namespaces/default-test-namespace/workflows/" + strings.NewReplacer("/", "%2F", "#", "%23").Replace(id) + ")"
	}
	require.Contains(t, run, "| `fetch` | **running** | [4 iterations]"+link(loopID)+" |")
	require.Contains(t, loop, "`fetch`: iterations 0 to 3 of 4")
	require.Contains(t, loop, "| 2 | 1 | 1 | 0 | 0 | 2025-03-01 13:00:00 UTC |")
	require.Contains(t, loop, "| 1 | `HTTP 401` | 1 | [`default-test-workflow-id/fetch#1/1`]"+link("default-test-workflow-id/fetch#1/1")+" |")
	require.Contains(t, loop, "| 2 | `fetch[2]: attempt 2 of 2 after 1h0m0s: HTTP 503` | 2025-03-01 13:00:00 UTC | [`"+childID+"`]"+link(childID)+" |")
	require.Contains(t, child, "| 2 | **retry_pending** | 1 | 2025-03-01 13:00:00 UTC | `fetch[2]: attempt 2 of 2 after 1h0m0s: HTTP 503` |")
	require.Contains(t, s.details(""), "[2 completed, 2 failed of 4]")
}

// TestDetailsOfABatch: a batch tells how many of its iterations are in which state,
// and of those that failed or wait why.
func TestDetailsOfABatch(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(n int, in interpreter.ToolInput) (any, error) {
		if *in.Index == 3 {
			return nil, failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 401})
		}
		return failing(n, in)
	})
	input := batchOfFive("parallel")
	input.Task.Source = strings.Replace(input.Task.Source, "when: error is defined", "when: error.class == 'retryable'", 1)
	var during string
	s.env.RegisterDelayedCallback(func() { during = s.details("") }, 30*time.Minute)
	s.runBatch(input)
	require.Contains(t, during, "`fetch`: 1 failed, 1 retry_pending, 3 completed\n")
	require.Contains(t, during, "| 3 | **failed** | 1 |  | `HTTP 401` |")
	require.Contains(t, during, "| 2 | **retry_pending** | 1 | 2025-03-01 13:00:00 UTC | `fetch[2]: attempt 2 of 3 after 1h0m0s: HTTP 503` |")
	require.Contains(t, s.details(""), "`fetch`: 2 failed, 3 completed\n")
}

// TestDetailsAreBounded: a loop of many failures, and a run of many visits, show
// some of them.
func TestDetailsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 404})))
	var loop string
	s.run(`
  - step: count
    vars: {n: "{{ (vars.n ?? 0) + 1 }}"}
    next:
      - {step: count, when: "{{ vars.n < 60 }}"}
      - {step: fetch, when: "{{ vars.n >= 60 }}"}
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: "{{ 1..40 }}", mode: parallel}
`)
	loop = s.details("default-test-workflow-id/fetch#1")
	require.Equal(t, 8, strings.Count(loop, "`HTTP 404`"))
	require.Contains(t, loop, "| and 32 more |")
	run := s.details("")
	require.Contains(t, run, "| … 21 earlier visits |")
	require.Equal(t, 39, strings.Count(run, "| `count` visit"))
}

// TestDetailsHoldNoMarkdownOfOthers: what comes from elsewhere makes no link, no
// picture and no cell.
func TestDetailsHoldNoMarkdownOfOthers(t *testing.T) {
	t.Parallel()
	hostile := "`|![x](http://evil.example)[y](http://evil.example)<b>\n|"
	s := newStage(t, always(failure(interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: hostile})))
	s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: ["![e](http://evil.example)"], mode: parallel}
  - step: alone
    tool: http
    url: http://x
`)
	for _, id := range []string{"", "default-test-workflow-id/fetch#1", "default-test-workflow-id/fetch#1/0"} {
		text := s.details(id)
		for at, part := range strings.Split(text, "`") {
			if at%2 == 0 { // not in code
				require.NotContains(t, part, "evil", text)
			}
		}
		require.NotContains(t, text, "\n|![", id)
	}
	require.Contains(t, s.details("default-test-workflow-id/fetch#1/0"), "`tool     x (http://evil.example) y (http://evil.example) b   `")
}

// TestBatchOfFailuresIsRed: a child whose iterations all failed ends as failed, and
// gives them to its loop as before.
func TestBatchOfFailuresIsRed(t *testing.T) {
	t.Parallel()
	final := failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 401})
	for _, c := range []struct {
		name   string
		answer play
		red    bool
	}{
		{name: "all", answer: always(final), red: true},
		{name: "all but one", answer: func(n int, in interpreter.ToolInput) (any, error) {
			if *in.Index == 4 {
				return fine(n, in)
			}
			return nil, final
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, input := newStage(t, c.answer), batchOfFive("parallel")
			input.Task.Source = strings.Replace(input.Task.Source, "when: error is defined", "when: error.class == 'retryable'", 1)
			s.runBatch(input)
			err := s.env.GetWorkflowError()
			var output protocol.CallsOutput
			if c.red {
				require.ErrorContains(t, err, "all 5 iterations failed, the first with: ")
				require.NoError(t, details(err, &output))
			} else {
				require.NoError(t, s.env.GetWorkflowResult(&output))
			}
			require.Len(t, output.Iterations, 5)
			require.Equal(t, 401, output.Iterations[0].Result.Error.Status)
		})
	}
}

// TestDetailsOfAnApproval: what is asked stands there with its options and the command
// that answers, of a step and of iterations, until it is answered.
func TestDetailsOfAnApproval(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	var step, batch string
	var asked *interpreter.AwaitedDetails
	s.env.RegisterDelayedCallback(func() { step = s.details("") }, 30*time.Minute)
	s.env.RegisterDelayedCallback(func() {
		batch = s.details("default-test-workflow-id/each#1/0")
		answer, err := s.env.QueryWorkflowByID("default-test-workflow-id/each#1/0", protocol.IterationsQuery)
		require.NoError(t, err)
		var told protocol.Iterations
		require.NoError(t, answer.Get(&told))
		asked = told.Iterations[1].Awaits
	}, 90*time.Minute)
	s.run(`
  - step: ask
    tool: approval
    message: "# Load ` + "`it`" + ` | all?\n\nMore."
    options: [later, never]
    timeout: 1h
    on_timeout: later
    next: [{step: each}]
  - step: each
    tool: approval
    message: "Load {{ n }}?"
    timeout: 1h
    on_timeout: reject
    loop: {collection: [5, 6], element: n, mode: parallel, batch: 2}
`)
	require.Contains(t, step, "\n`ask` awaits an answer: `Load 'it' ¦ all?`; the options are `later, never`. "+
		"To answer: `starter approve default-test-workflow-id ask --option \"later\"`\n")
	require.Contains(t, batch, "\n`each[1]` awaits an answer: `Load 6?`; the options are `approve, reject`. "+
		"To answer: `starter approve default-test-workflow-id each --index 1`\n")
	require.NotNil(t, asked)
	require.Equal(t, "Load 6?", asked.Approval.Message)
	require.Equal(t, time.Hour, asked.Until.Sub(asked.Since))
	require.NotContains(t, s.details(""), "awaits an answer")
}
