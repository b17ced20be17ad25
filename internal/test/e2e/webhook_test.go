package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// etl is another system: it takes on_start, and says nothing by itself.
type etl struct {
	*httptest.Server

	mu     sync.Mutex
	starts []started // in the order of their arrival
	paths  []string
	status int           // of its answers, 0 is 202
	held   chan struct{} // where set, they are held back until it is closed
}

type started struct {
	key   string
	token string
	body  map[string]any
}

func newETL(t *testing.T) *etl {
	t.Helper()
	e := &etl{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(text, &body)
		token, _ := body["token"].(string)
		e.mu.Lock()
		e.starts = append(e.starts, started{key: r.Header.Get("Idempotency-Key"), token: token, body: body})
		e.paths = append(e.paths, r.Method+" "+r.URL.Path)
		status, held := e.status, e.held
		e.mu.Unlock()
		if held != nil {
			<-held
		}
		if status == 0 {
			status = http.StatusAccepted
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(e.Close)
	return e
}

// nth is the request with a number, from 1, once it has come.
func (e *etl) nth(t *testing.T, n int) started {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.starts) >= n
	}, patience, tick, "request %d has not come", n)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.starts[n-1]
}

// newAnswering is a world whose worker makes tokens, with the keys that read them.
func newAnswering(t *testing.T) (*world, *seal.Keys) {
	t.Helper()
	w := newWorld(t)
	keys := w.makeKeys()
	w.resources.CallbackURL = "https://serve.example.com/base/"
	w.work()
	return w, keys
}

// answer answers the attempt of a token.
func (w *world) answer(keys *seal.Keys, token string, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	w.t.Helper()
	address, err := callback.OpenToken(keys, token)
	require.NoError(w.t, err)
	answer.AnswerTo = address.To
	taken, err := w.answerTo(address.Workflow, answer)
	var elsewhere *temporal.ApplicationError
	var id string
	if errors.As(err, &elsewhere) && elsewhere.Type() == interpreter.AnswerElsewhere && elsewhere.Details(&id) == nil {
		return w.answerTo(id, answer) // the call goes on in a history of its own
	}
	return taken, err
}

func (w *world) answerTo(workflowID string, answer interpreter.Answer) (taken interpreter.AnswerReceipt, err error) {
	handle, err := w.env.Client().UpdateWorkflow(w.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: protocol.AnswerUpdate, Args: []any{answer},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return taken, err
	}
	return taken, handle.Get(w.t.Context(), &taken)
}

// answers gives an answer to a run as soon as it awaits it.
func (w *world) answers(workflowID string, answer interpreter.Answer) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.answerTo(workflowID, answer)
		return err == nil
	}, patience, tick, "%s does not await answers", answer.Step)
}

// eventsOf are the events of a run.
func (w *world) eventsOf(run client.WorkflowRun) (events []runs.Event) {
	w.t.Helper()
	reader := &runs.Reader{Client: w.env.Client(), Store: w.store, Namespace: w.env.Namespace}
	found, err := reader.Find(w.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(w.t, err)
	_, err = reader.Events(w.t.Context(), found, runs.EventFilter{}, func(event runs.Event) error {
		events = append(events, event)
		return nil
	})
	require.NoError(w.t, err)
	return events
}

const importing = `
  - step: import
    tool: webhook
    timeout: 30s
    on_start:
      url: "{{ workload.etl }}/import/{{ workload.file }}"
      body: {url: "{{ callback.url }}", done: "{{ callback.complete }}", token: "{{ callback.token }}", key: "{{ attempt_key }}"}
    on_cancel: {url: "{{ workload.etl }}/cancel", method: DELETE}
    retry:
      - when: error.kind in ['timeout', 'webhook_failure', 'explicit'] and error.class != 'final'
        then: {max_attempts: 3, initial_delay: 100ms, jitter: none}
`

func TestWebhookIsAnswered(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	run := w.start(book(importing), map[string]any{"etl": other.URL, "file": "a/b"})
	first := other.nth(t, 1)
	require.Equal(t, "POST /import/a%2Fb", strings.ReplaceAll(other.paths[0], "a/b", "a%2Fb"))
	require.Equal(t, first.body["key"], first.key, "the attempt key is sent")
	require.Equal(t, "https://serve.example.com/base/v1/callbacks/"+first.token, first.body["url"])
	require.Equal(t, "https://serve.example.com/base/v1/callbacks/"+first.token+"/complete", first.body["done"])
	w.secrets = append(w.secrets, first.token)

	_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerProgress, Done: 3, Total: 10, Message: "rows"})
	require.NoError(t, err)
	record := w.await(run, "import", interpreter.Awaiting)
	require.Contains(t, record.Waiting, "3 of 10, rows")

	fail := interpreter.Answer{Verb: interpreter.AnswerFail, Message: "the file is locked", Details: interpreter.Answer{}.Details, ID: "a"}
	taken, err := w.answer(keys, first.token, fail)
	require.NoError(t, err)
	require.Equal(t, 1, taken.Attempt)
	second := other.nth(t, 2)
	require.NotEqual(t, first.key, second.key)
	require.NotEqual(t, first.token, second.token)
	w.secrets = append(w.secrets, second.token)

	// The same again is told so, another one is late.
	fail.ID = "b"
	taken, err = w.answer(keys, first.token, fail)
	require.NoError(t, err)
	require.Equal(t, "a", taken.ID)
	_, err = w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.ErrorContains(t, err, "another answer")

	done := interpreter.Answer{Verb: interpreter.AnswerComplete}
	require.NoError(t, json.Unmarshal([]byte(`{"verb":"complete","result":{"rows":9007199254740993}}`), &done))
	_, err = w.answer(keys, second.token, done)
	require.NoError(t, err)
	w.recordAs("webhook")
	result, err := w.outcome(run)
	require.NoError(t, err)
	encoded, err := json.Marshal(result.Result)
	require.NoError(t, err)
	require.JSONEq(t, `{"rows":9007199254740993}`, string(encoded))
	require.Equal(t, 2, step(t, result, "import").Attempts)
	var told []string
	for _, event := range w.eventsOf(run) {
		told = append(told, event.Event)
	}
	require.Equal(t, []string{
		"execution_started", "step_started", "action_started", "answer_awaited", "action_error", "step_retry", "action_started",
		"answer_awaited", "action_completed", "step_result", "execution_completed",
	}, told)
	_, err = w.answer(keys, second.token, done)
	t.Log("after the end:", err)
}

// TestWebhookInOlderWords: a request of a webhook is also read as actions of tasks
// were written, with a retry of that time.
func TestWebhookInOlderWords(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	run := w.start(book(`
  - step: import
    desc: Import Data
    tool: webhook
    timeout: 120
    retry: {max_retries: 3, initial_delay_secs: 10, backoff_multiplier: 2.0, max_delay_secs: 120}
    on_start: {kind: Webhook, params: {url: "{{ workload.etl }}/import", verb: Post, body: {token: "{{ callback.token }}"}}}
`), map[string]any{"etl": other.URL})
	first := other.nth(t, 1)
	require.Equal(t, "POST /import", other.paths[0])
	_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status)
}

func TestWebhookFailures(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	other.status = http.StatusBadGateway
	source := strings.Replace(book(importing), "timeout: 30s", "timeout: 2s", 1)
	run := w.start(source, map[string]any{"etl": other.URL, "file": "x"})
	other.nth(t, 1)
	other.mu.Lock()
	other.status = 0
	other.mu.Unlock()
	other.nth(t, 2) // and nobody answers
	third := other.nth(t, 3)
	no := false
	_, err := w.answer(keys, third.token, interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no such file", Retryable: &no})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "failed", result.Status)
	require.EqualValues(t, "explicit", result.Error.Kind)
	require.EqualValues(t, "final", result.Error.Class)
	kinds := []string{}
	for _, event := range w.eventsOf(run) {
		if event.Event == "action_error" {
			kinds = append(kinds, fmt.Sprintf("%s %d", event.Error.Kind, event.Error.Status))
		}
	}
	require.Equal(t, []string{"webhook_failure 502", "timeout 0", "explicit 0"}, kinds)
}

func TestWebhookIsCancelled(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	run := w.start(book(importing), map[string]any{"etl": other.URL, "file": "x"})
	first := other.nth(t, 1)
	require.Eventually(t, func() bool {
		progress, _ := w.progress(run)
		return len(progress.Steps) == 1 && strings.HasPrefix(progress.Steps[0].Waiting, "awaits an answer until")
	}, patience, tick)
	w.cancel(run)
	other.nth(t, 2)
	require.Equal(t, "DELETE /cancel", other.paths[1])
	_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.Error(t, err)
}

func TestWebhookInLoop(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			w, keys := newAnswering(t)
			other := newETL(t)
			run := w.start(book(fmt.Sprintf(`
  - step: import
    tool: webhook
    loop: {collection: "{{ [0, 1, 2, 3] }}", element: n, mode: parallel, max_concurrency: 4, batch: %d}
    on_start: {url: "{{ workload.etl }}", body: {n: "{{ n }}", token: "{{ callback.token }}"}}
`, batch)), map[string]any{"etl": other.URL})
			for i := range 4 {
				start := other.nth(t, i+1)
				answer := interpreter.Answer{Verb: interpreter.AnswerComplete}
				if start.body["n"] == 2.0 {
					answer = interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no"}
				}
				_, err := w.answer(keys, start.token, answer)
				require.NoError(t, err)
			}
			result, err := w.outcome(run)
			require.NoError(t, err)
			stats := step(t, result, "import").Loop.Stats
			require.Equal(t, 3, stats.Success)
			require.Equal(t, 1, stats.Failed)
		})
	}
}

// A run that is given an answer to an iteration says which workflow takes it.
func TestAnswerElsewhere(t *testing.T) {
	t.Parallel()
	w, _ := newAnswering(t)
	run := w.start(book(`
  - step: ask
    tool: approval
    message: "Load {{ n }}?"
    form: {rows: {type: integer, required: true}}
    loop: {collection: "{{ [5, 6] }}", element: n, mode: parallel}
`), nil)
	for index := range 2 {
		answer := interpreter.Answer{
			AnswerTo: interpreter.AnswerTo{Step: "ask", Index: &index}, Verb: interpreter.AnswerComplete,
			Option: "approve", By: "ada", Form: map[string]any{"rows": "7"},
		}
		var elsewhere *temporal.ApplicationError
		require.Eventually(t, func() bool {
			_, err := w.answerTo(run.GetID(), answer)
			return errors.As(err, &elsewhere) && elsewhere.Type() == interpreter.AnswerElsewhere
		}, patience, tick)
		var id string
		require.NoError(t, elsewhere.Details(&id))
		w.answers(id, answer)
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	encoded, err := json.Marshal(result.Result)
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"rows":7`)
	require.Contains(t, string(encoded), `"by":"ada"`)
}

func TestApprovalInTime(t *testing.T) {
	t.Parallel()
	w, _ := newAnswering(t)
	w.recordAs("approval")
	run := w.start(book(`
  - step: ask
    tool: approval
    message: Go on?
    timeout: 1s
    on_timeout: reject
    next:
      - {when: result.option == 'approve', step: load}
      - else: stop
  - {step: load, tool: python, code: "def main(): return 'loaded'"}
  - {step: stop, tool: python, code: "def main(): return 'stopped'"}
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, "stopped", result.Result.Data)
	var chosen []string
	for _, event := range w.eventsOf(run) {
		if event.Option != "" {
			chosen = append(chosen, event.Event+" "+event.Step+" "+event.Option+event.By)
		}
	}
	require.Equal(t, []string{"action_completed ask reject"}, chosen)
}

// Progress sets the end of an attempt further away, and goes on where the history
// gets long.
func TestWebhookProgress(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	source := strings.Replace(book(importing), "timeout: 30s", "timeout: 3s", 1)
	run := w.start(source, map[string]any{"etl": other.URL, "file": "x"})
	first := other.nth(t, 1)
	began := time.Now()
	for n := int64(1); time.Since(began) < 6*time.Second; n++ {
		_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerProgress, Done: n})
		require.NoError(t, err)
	}
	_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, 1, step(t, result, "import").Attempts)
}
