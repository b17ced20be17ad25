package playtest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"reprise/activities"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/program/playtest"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// agreeing are playbooks with a test each, which come to the same on a server: their answers are
// given by an API there. Steps ask it under their names, iterations under their indexes.
var agreeing = map[string]struct{ steps, answers string }{
	"retry": {
		`
  - step: fetch
    tool: http
    url: "{{ api }}/fetch"
    retry:
      - {when: "{{ error.class == 'rate_limited' }}", then: {max_attempts: 2}}
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 3, initial_delay: 20ms}}`,
		`{fetch: [{status: 503}, {status: 429, headers: {retry-after: "0"}}, {status: 500}, {body: {a: [1, 2.5, null]}}]}`,
	},
	"exhausted": {
		`
  - step: fetch
    tool: http
    url: "{{ api }}/fetch"
    retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 3, delay: 10ms}}]
    next: [{when: "{{ error.exhausted }}", step: other}]
  - step: other
    tool: http
    url: "{{ api }}/other"`,
		`{fetch: [{status: 503}, {status: 502}, {status: 500}], other: [{status: 418, body: {no: coffee}}]}`,
	},
	"pages": {
		`
  - step: start
    tool: sqlite
    path: rows.db
    statement: CREATE TABLE rows (id INTEGER PRIMARY KEY)
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/fetch"
    params: {page: 1}
    retry:
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2, delay: 10ms}}
      - when: "{{ response.more }}"
        then:
          max_attempts: 3
          next_call: {params: {page: "{{ _retry.page + 1 }}"}}
          collect: {path: rows}
          per_iteration: {sink: {tool: sqlite, path: rows.db, table: rows, mode: upsert, key: id}}
    next: count
  - step: count
    tool: sqlite
    path: rows.db
    statement: SELECT count(*) AS n, sum(id) AS ids FROM rows`,
		`{fetch: [{body: {rows: [{id: 1}, {id: 2}], more: true}}, {status: 500}, {body: {rows: [{id: 3}], more: true}}, {body: {rows: [], more: true}}]}`,
	},
	"loop": {
		`
  - step: each
    tool: http
    url: "{{ api }}/each/{{ _loop.index }}"
    loop:
      collection: [a, b, c, d]
      mode: parallel
      thresholds: {completed: 0.9}
      sink: {tool: file, path: "out-{{ item }}.jsonl", args: {item: "{{ item }}", got: "{{ result }}"}}
    retry: [{when: "{{ error.status == 503 }}", then: {max_attempts: 2, delay: 10ms}}]`,
		`{"each[0]": [{body: 1}], "each[1]": [{status: 503}, {body: 2}], "each[2]": [{status: 404}], "each[3]": [{status: 503}, {status: 503}]}`,
	},
	"poll": {
		`
  - step: fetch
    tool: http
    url: "{{ api }}/fetch"
    retry: [{when: "{{ response.state == 'new' }}", then: {max_attempts: 2, delay: 10ms}}]
    sink: {tool: http, url: "{{ api }}/sink"}`,
		`{fetch: [{body: {state: new}}, {body: {state: new}}]}`,
	},
	"sink": {
		`
  - step: fetch
    tool: http
    url: "{{ api }}/fetch"
    sink: {tool: http, url: "{{ api }}/sink", retry: [{when: "{{ error.status == 503 }}", then: {max_attempts: 2, delay: 10ms}}]}`,
		`{fetch: [{body: [1]}], fetch.sink: [{status: 503}, {status: 503}]}`,
	},
}

// TestAgreesWithAServer: the status, result, error, steps and warnings of a test are those of a run
// on a server, and so are the requests.
func TestAgreesWithAServer(t *testing.T) {
	t.Parallel()
	for name, one := range agreeing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: agree}\nworkload: {api: \"\"}\nworkflow:" + one.steps + "\n"
			suite, err := playtest.Load(write(t, book, "playbook: book.yaml\ntests:\n  - name: it\n    workload: {api: API}\n    answers: "+
				one.answers+"\n    expect: {within: 1h}\n"))
			require.NoError(t, err)
			api := newAPI(suite.Tests.Tests[0])
			server := httptest.NewServer(api)
			defer server.Close()
			suite.Tests.Tests[0].Workload = map[string]any{"api": server.URL}
			report := suite.Run(suite.Tests.Tests[0], playtest.Options{})
			require.Empty(t, texts(report))
			tested, err := report.Result()
			require.NoError(t, err)
			ran := onServer(t, book, server.URL)
			require.Equal(t, comparableOf(t, ran), comparableOf(t, tested))
			require.Empty(t, api.left(), "answers that the run on a server did not ask for")
			require.Zero(t, api.missed)
		})
	}
}

// api gives the answers of a test.
type api struct {
	mu      sync.Mutex
	answers map[string][]*playbook.TestAnswer // by path
	missed  int
}

func newAPI(test *playbook.Test) *api {
	a := &api{answers: map[string][]*playbook.TestAnswer{}}
	for _, answers := range test.Answers {
		path := strings.NewReplacer("[", "/", "]", "", "fetch.sink", "sink").Replace(answers.Written)
		a.answers["/"+path] = answers.Answers
	}
	return a
}

func (a *api) left() (paths []string) {
	for path, answers := range a.answers {
		if len(answers) > 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

func (a *api) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.answers[request.URL.Path]
	if len(left) == 0 {
		a.missed++
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := left[0]
	a.answers[request.URL.Path] = left[1:]
	for name, value := range answer.Headers {
		w.Header().Set(name, expression.Text(value))
	}
	if answer.Words.Has("body") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(max(answer.Status, http.StatusOK))
	if answer.Words.Has("body") {
		_ = json.NewEncoder(w).Encode(answer.Body)
	}
}

// onServer makes a run on a real server.
func onServer(t *testing.T, book, api string) protocol.Result {
	t.Helper()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{}, Directory: t.TempDir()})
	w := host.NewWorker(env.Dial(t, client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Within(time.Minute))
	defer cancel()
	started, err := env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "book.yaml", Source: book, Workload: expression.Of(map[string]any{"api": api})})
	require.NoError(t, err)
	result, err := ending.WaitForResult(ctx, started)
	require.NoError(t, err)
	return result
}

// comparableOf is what people compare of a result: no times, no IDs.
func comparableOf(t *testing.T, result protocol.Result) map[string]any {
	t.Helper()
	steps := map[string]any{}
	for _, record := range result.Steps {
		steps[record.Step] = []any{string(record.Status), record.Attempts, errorOf(t, record.Error)}
	}
	return map[string]any{
		"status": result.Status, "result": plain(t, result.Result), "error": errorOf(t, result.Error), "steps": steps, "warnings": result.Warnings,
	}
}

func errorOf(t *testing.T, failure any) any {
	t.Helper()
	object, isMap := plain(t, failure).(map[string]any)
	if isMap {
		delete(object, "error")
	}
	return object
}

// plain is a value without what differs from run to run.
func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var decoded any
	require.NoError(t, json.Unmarshal(data, &decoded))
	return withoutTimes(decoded)
}

func withoutTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, word := range []string{"at", "headers"} {
			delete(v, word)
		}
		for name, inner := range v {
			v[name] = withoutTimes(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withoutTimes(inner)
		}
	}
	return v
}

// FuzzLoad: whatever stands in a file of tests, nothing panics.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*_test.yaml", "../../../playbooks/*_test.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(string(text))
		}
	}
	f.Add("playbook: book.yaml\ntests: [{name: x, answers: {\"fetch{a:}\": [{recorded: x}]}, expect: {requests: {a: [[]]}}}]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "sqlite") {
			t.Skip()
		}
		suite, err := playtest.Load(write(t, users, strings.ReplaceAll(text, "playbook: ", "playbook: book.yaml # ")))
		if err != nil {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, report := range all(suite) {
				_ = texts(report)
			}
		}()
		select {
		case <-ended:
		case <-time.After(testenv.Within(20 * time.Second)):
			t.Fatal("the tests do not end")
		}
	})
}
