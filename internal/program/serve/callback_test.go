package serve_test

import (
	"context"
	"encoding/json"
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

	"reprise/activities"
	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// asking is a world with a system that is asked by webhooks and answers through the
// server.
type asking struct {
	*world
	key   string // of keys, as text
	keys  *seal.Keys
	other string // URL of the other system
	told  chan map[string]any
	stop  func() // ends the worker
}

// webhook awaits an answer, whose failures are tried again once, and then another.
const webhook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: webhook}
workflow:
  - step: ask
    tool: webhook
    timeout: 10m
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}"}}
    retry:
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2, delay: 0}}
    next: {when: "{{ ask == nil }}", step: another}
  - step: another
    tool: webhook
`

func newAsking(t *testing.T, change ...func(*serve.Options)) *asking {
	t.Helper()
	key := seal.NewKey()
	keys, err := seal.Parse(key)
	require.NoError(t, err)
	a := &asking{key: key, keys: keys, told: make(chan map[string]any, 100)}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body map[string]any
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &body)
		a.told <- body
	}))
	t.Cleanup(other.Close)
	a.other = other.URL
	a.world = newWorld(t, append(change, func(o *serve.Options) { o.Keys = keys })...)
	a.work()
	return a
}

// work starts a worker; stop ends it.
func (a *asking) work() {
	a.t.Helper()
	catalogue := activities.NewCatalogue(activities.Resources{SecretKeys: a.keys, CallbackURL: a.url})
	worker := host.NewWorker(a.env.Client(), catalogue, host.Options{TaskQueue: a.queue, StopTimeout: time.Second})
	require.NoError(a.t, worker.Start())
	a.stop = sync.OnceFunc(func() {
		worker.Stop()
		require.NoError(a.t, catalogue.Close())
	})
	a.t.Cleanup(a.stop)
}

// ask starts a run and gives it with the token of its first attempt.
func (a *asking) ask(id, source string) (client.WorkflowRun, string) {
	a.t.Helper()
	run, err := a.env.Client().ExecuteWorkflow(a.t.Context(), client.StartWorkflowOptions{ID: a.queue + "-" + id, TaskQueue: a.queue},
		protocol.PlaybookWorkflowName, protocol.Input{
			Name: "webhook.yaml", Source: source, Workload: expression.Of(map[string]any{"other": a.other}),
		})
	require.NoError(a.t, err)
	return run, a.token()
}

// token is the next one that the other system is told.
func (a *asking) token() string {
	a.t.Helper()
	token := a.tokenWithin(patience)
	require.NotEmpty(a.t, token, "nobody was asked")
	return token
}

// tokenWithin is token, or "" where the other system is told none for some time.
func (a *asking) tokenWithin(limit time.Duration) string {
	a.t.Helper()
	select {
	case body := <-a.told:
		require.Equal(a.t, a.url+"/v1/callbacks/"+body["token"].(string)+"/complete", body["complete"])
		return body["token"].(string)
	case <-time.After(limit):
		return ""
	}
}

func (a *asking) callback(token, verb, body string) reply {
	a.t.Helper()
	return a.world.ask(http.MethodPost, "/v1/callbacks/"+token+"/"+verb, "", strings.NewReader(body), "Content-Type", "application/json")
}

func (a *asking) ends(run client.WorkflowRun) protocol.Result {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	result, err := ending.WaitForResult(ctx, run)
	require.NoError(a.t, err)
	return result
}

const late = "urn:reprise:problem:answer-late"

func TestCallbackCompletes(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("complete", webhook)
	progress := a.callback(token, "progress", `{"done": 1, "total": 3, "message": "one"}`)
	require.Equal(t, http.StatusAccepted, progress.status, string(progress.body))
	first := a.callback(token, "complete", `{"result": {"rows": [1, 9007199254740993]}}`)
	require.Equal(t, http.StatusAccepted, first.status, string(first.body))
	require.Equal(t, map[string]any{"accepted": true}, first.values)
	result := a.ends(run)
	require.EqualValues(t, "completed", result.Status)
	require.Equal(t, map[string]any{"rows": []any{1, 9007199254740993}}, result.Result.Data)
	repeated := a.callback(token, "complete", `{"result": {"rows": [1, 9007199254740993]}}`)
	require.Equal(t, http.StatusOK, repeated.status, "who repeats it after the run has ended is told so too: "+string(repeated.body))
	require.Equal(t, map[string]any{"accepted": true, "repeated": true}, repeated.values)
	for _, verb := range []string{"complete", "progress"} {
		again := a.callback(token, verb, `{"done": 1}`[:map[string]int{"complete": 0, "progress": 11}[verb]])
		require.Equal(t, http.StatusConflict, again.status, "the run has ended")
		require.Equal(t, late, again.values["type"])
	}
}

// TestCallbackOfAnAttempt: a token is for one attempt; the same answer again says so,
// another one is late.
func TestCallbackOfAnAttempt(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, first := a.ask("fail", webhook)
	failure := `{"message": "no disk", "details": {"free": 0}, "retryable": true}`
	require.Equal(t, http.StatusAccepted, a.callback(first, "fail", failure).status)
	second := a.token()
	require.NotEqual(t, first, second)
	again := a.callback(first, "fail", failure)
	require.Equal(t, http.StatusOK, again.status, string(again.body))
	require.Equal(t, map[string]any{"accepted": true, "repeated": true}, again.values)
	for verb, body := range map[string]string{"fail": `{"message": "other"}`, "complete": `{"result": 1}`, "progress": `{"done": 1}`} {
		require.Equal(t, http.StatusConflict, a.callback(first, verb, body).status, verb)
	}
	require.Equal(t, http.StatusAccepted, a.callback(second, "fail", `{"message": "no use", "retryable": false}`).status)
	result := a.ends(run)
	require.EqualValues(t, "failed", result.Status)
	require.Equal(t, "no use", result.Error.Message)
	require.EqualValues(t, "explicit", result.Error.Kind)
}

// TestCallbackWhileNobodyWorks: the Temporal server keeps an answer, over a restart
// of ours.
func TestCallbackWhileNobodyWorks(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("asleep", webhook)
	a.stop()
	stored := a.callback(token, "complete", `{"result": "kept"}`)
	require.Equal(t, http.StatusAccepted, stored.status, string(stored.body))
	require.Equal(t, map[string]any{"accepted": false}, stored.values)
	a.world.stop()
	a.serve()
	a.work()
	require.Equal(t, "kept", a.ends(run).Result.Data)
}

func TestCallbacksAfterTheEnd(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	cancelled, token := a.ask("cancelled", webhook)
	require.NoError(t, a.env.Client().CancelWorkflow(t.Context(), cancelled.GetID(), ""))
	require.EqualValues(t, "cancelled", a.ends(cancelled).Status)
	_, timed := a.ask("timed", strings.Replace(webhook, "timeout: 10m", "timeout: 1s", 1))
	_ = a.token() // the attempt after it
	for verb, body := range map[string]string{"complete": `{}`, "fail": `{"message": "x"}`, "progress": `{"done": 1}`} {
		for _, one := range []string{token, timed} {
			given := a.callback(one, verb, body)
			require.Equal(t, http.StatusConflict, given.status, string(given.body))
		}
	}
	a.stop()
	require.Equal(t, http.StatusConflict, a.callback(token, "complete", `{}`).status, "without a worker too")
}

func TestTokensThatAreNone(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("tokens", webhook)
	others, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	to := callback.Address{Workflow: run.GetID(), To: interpreter.AnswerTo{Step: "ask", Key: "x"}}
	forged, err := callback.SealToken(others, to)
	require.NoError(t, err)
	elsewhere, err := a.keys.Seal([]byte(`{"w": "`+run.GetID()+`", "to": {"key": "x"}}`), "elsewhere")
	require.NoError(t, err)
	changed := []byte(token)
	changed[len(changed)-5] ^= 1
	var answers []string
	for _, one := range []string{
		"x", token[:len(token)-1], token + "x", string(changed), forged, elsewhere, strings.Repeat("a", 9000), "%00", "v1..", strings.ToUpper(token),
	} {
		for _, body := range []string{`{}`, `{`, strings.Repeat(" ", serve.MaxBody+1)} {
			given := a.callback(one, "complete", body)
			require.Equal(t, http.StatusNotFound, given.status, one)
			answers = append(answers, string(given.body))
		}
	}
	for _, one := range answers {
		require.Equal(t, answers[0], one)
	}
	require.NotContains(t, a.log.String(), token)
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "x"}`).status)
	require.Equal(t, "x", a.ends(run).Result.Data)
	require.NotContains(t, a.log.String(), token)
}

func TestCallbackBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	_, token := a.ask("bodies", webhook)
	for _, row := range []struct {
		verb, body string
		status     int
		says       string
	}{
		{"complete", `{"result": 1, "reslut": 2}`, 400, `complete has no field "reslut"`},
		{"complete", `{"rows": 1200}`, 400, `put what the other system reports into result, such as {"result": {"rows": 1200}}`},
		{"complete", `[1]`, 400, "must be a JSON object"},
		{"complete", `{"result": }`, 400, "not JSON"},
		{"complete", `{"option": 1}`, 400, "option must be text"},
		{"complete", `{"form": []}`, 400, "form must be a map"},
		{"complete", `{"option": "approve"}`, 422, "does not ask for an approval"},
		{"complete", strings.Repeat(" ", serve.MaxBody+1), 413, "1048576"},
		{"fail", ``, 400, "fail needs a message"},
		{"fail", `{"message": ""}`, 400, "fail needs a message"},
		{"fail", `{"message": 1}`, 400, "message must be text"},
		{"fail", `{"message": "x", "retryable": "no"}`, 400, "retryable must be true or false"},
		{"fail", `{"message": "` + strings.Repeat("x", 5000) + `"}`, 400, "4096 bytes"},
		{"fail", `{"result": 1}`, 400, `fail has no field "result", expected details, message, retryable`},
		{"progress", `{}`, 400, "progress needs done"},
		{"progress", `{"done": 1.5}`, 400, "done must be a whole number"},
		{"progress", `{"done": -1}`, 400, "negative"},
		{"progress", `{"done": 3, "total": 2}`, 400, "more than the total"},
		{"progress", `{"done": 99999999999999999999}`, 400, "done must be a whole number"},
	} {
		given := a.callback(token, row.verb, row.body)
		require.Equal(t, row.status, given.status, "%s %s: %s", row.verb, row.body[:min(len(row.body), 40)], given.body)
		require.Contains(t, given.values["detail"], row.says)
		quoted, err := json.Marshal(row.says)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(a.log.String()), "\n")
		require.Contains(t, lines[len(lines)-1], strings.Trim(string(quoted), `"`), "the log says why too")
	}
	given := a.world.ask(http.MethodPost, "/v1/callbacks/"+token+"/complete", "", strings.NewReader(`a=1`), "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, given.status)
	require.Equal(t, http.StatusNotFound, a.callback(token, "cancel", `{}`).status)
}

// TestManyCallbacks: answers to many runs at the same time, each of them said twice
// at once, over two servers.
func TestManyCallbacks(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	first := a.url
	a.serve()
	second := a.url
	a.url = first
	const many = 20
	var group sync.WaitGroup
	runs := make([]client.WorkflowRun, many)
	tokens := make([]string, many)
	for i := range many {
		runs[i], tokens[i] = a.ask(fmt.Sprint(i), webhook)
	}
	replies := make([]reply, 2*many)
	for i := range 2 * many {
		own := *a.world
		own.url = []string{first, second}[i/many]
		group.Go(func() {
			replies[i] = own.ask(http.MethodPost, "/v1/callbacks/"+tokens[i%many]+"/complete", "",
				strings.NewReader(fmt.Sprintf(`{"result": %d}`, i%many)), "Content-Type", "application/json")
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all callbacks")
	for i, run := range runs {
		both := []int{replies[i].status, replies[many+i].status}
		require.Contains(t, both, http.StatusAccepted)
		for _, status := range both { // the second comes before the run has ended, or after
			require.Contains(t, []int{http.StatusAccepted, http.StatusOK, http.StatusConflict}, status)
		}
		first, second := replies[i].values["accepted"] == true, replies[many+i].values["accepted"] == true
		if first && second { // else one is kept until a worker has looked at it
			require.NotEqual(t, both[0], both[1], "one of them was taken")
		}
		require.Equal(t, i, a.ends(run).Result.Data)
	}
}

// TestCallbacksOfALoop: each iteration has tokens of its own, in batches and while the
// run is paused too.
func TestCallbacksOfALoop(t *testing.T) {
	t.Parallel()
	const loop = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: loop}
workflow:
  - step: ask
    tool: webhook
    loop: {in: "{{ [0, 1, 2, 3] }}", iterator: n, mode: parallel, batch: 2}
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}", n: "{{ n }}"}}
`
	a := newAsking(t)
	run, first := a.ask("loop", loop)
	tokens := []string{first}
	for len(tokens) < 4 {
		tokens = append(tokens, a.token())
	}
	handle, err := a.env.Client().UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: "pause", Args: []any{map[string]any{}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(t, err)
	require.NoError(t, testenv.WaitOutcome(t, handle, nil))
	var wanted []any
	complete := func(token string) {
		address, err := callback.OpenToken(a.keys, token)
		require.NoError(t, err)
		index := *address.To.Index
		wanted = append(wanted, index*10)
		require.Equal(t, http.StatusAccepted, a.callback(token, "progress", `{"done": 1}`).status)
		given := a.callback(token, "complete", fmt.Sprintf(`{"result": %d}`, index*10))
		require.Equal(t, http.StatusAccepted, given.status, string(given.body))
		require.Equal(t, map[string]any{"accepted": true}, given.values)
	}
	for _, token := range tokens[:3] {
		complete(token)
	}
	handle, err = a.env.Client().UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: "resume", Args: []any{map[string]any{}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(t, err)
	require.NoError(t, testenv.WaitOutcome(t, handle, nil))
	complete(tokens[3]) // the last one: a run of which nothing is left ends, paused or not
	require.ElementsMatch(t, []any{0, 10, 20, 30}, wanted)
	require.Equal(t, []any{0, 10, 20, 30}, a.ends(run).Result.Data.(map[string]any)["results"])
	for _, token := range tokens {
		require.Equal(t, http.StatusConflict, a.callback(token, "complete", `{}`).status)
	}
}

// FuzzAnswer: a body is an answer that a workflow may be sent, or is refused.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		`{"result": {"a": [1, null]}}`, `{"message": "x", "details": 1, "retryable": false}`, `{"done": 1, "total": 2}`,
		`{"option": "approve", "form": {"a": 1}, "by": "ada", "comment": ""}`, `{"done": 1e3}`, `{"retryable": null}`, `{"": 1}`,
	} {
		for verb := range 3 {
			f.Add(verb, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, verb int, body []byte) {
		value, err := serve.ReadJSON(body)
		object, isObject := value.(map[string]any)
		if err != nil || !isObject {
			return
		}
		verbs := []interpreter.AnswerVerb{interpreter.AnswerComplete, interpreter.AnswerFail, interpreter.AnswerProgress}
		given, err := serve.ReadAnswer(verbs[(verb%3+3)%3], object)
		if err != nil {
			var told *serve.Problem
			require.ErrorAs(t, err, &told)
			require.Equal(t, http.StatusBadRequest, told.Status)
			return
		}
		require.NoError(t, given.Check())
		_, err = json.Marshal(given)
		require.NoError(t, err)
	})
}
