package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// The other side repeats its token wherever it can; nothing of that is kept.
func TestTokensStayQuiet(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	var mu sync.Mutex
	var tokens []string
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(text, &body)
		token, _ := body["token"].(string)
		mu.Lock()
		tokens = append(tokens, token)
		first := len(tokens) == 1
		same := r.URL.Query().Get("to") == "https://serve.example.com/base/v1/callbacks/"+token
		mu.Unlock()
		rw.Header().Set("X-Echo", token)
		rw.Header().Set("Link", "</next?"+token+`>; rel="next"`)
		if first || !same {
			rw.WriteHeader(http.StatusBadGateway)
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"echo": token, "url": "http://x/" + token, "header": r.Header})
	}))
	t.Cleanup(other.Close)
	run := w.start(book(`
  - step: import
    tool: webhook
    on_start:
      url: "{{ workload.etl }}/?to={{ callback.url }}"
      headers: {X-Token: "{{ callback.token }}"}
      body: {token: "{{ callback.token }}", data: "{{ workload.data }}"}
    retry: [{when: "error.kind == 'webhook_failure'", then: {max_attempts: 2, delay: 100ms}}]
`), map[string]any{"etl": other.URL, "data": "reprise_callback_0123456789abcdef_token {{ callback.token }}"})
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(tokens) == 2
	}, patience, tick)
	for _, token := range tokens {
		require.NotEmpty(t, token)
		w.secrets = append(w.secrets, token, url.QueryEscape(token))
	}
	_, err := w.answer(keys, tokens[1], interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
}

// Results of any size end the run, or are refused where they come in.
func TestAnswersOfAnySize(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	for i, c := range []struct {
		bytes int
		taken bool
	}{{100_000, true}, {1_500_000, true}, {1_950_000, false}, {3_000_000, false}} {
		run := w.start(book(importing), map[string]any{"etl": other.URL, "file": "x"})
		start := other.nth(t, i+1)
		answer := interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(strings.Repeat("x", c.bytes))}
		_, err := w.answer(keys, start.token, answer)
		if !c.taken {
			require.Error(t, err)
			answer.Result = expression.Of("smaller")
			require.Eventually(t, func() bool { // Temporal takes a while to give up what its own limits refuse
				_, err = w.answer(keys, start.token, answer)
				return err == nil
			}, patience, tick)
		}
		require.NoError(t, err)
		result, err := w.outcome(run)
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	}
}

// A worker that cannot make what on_start names says what it lacks.
func TestWorkerWithoutCallbacks(t *testing.T) {
	t.Parallel()
	other := newETL(t)
	w := newWorking(t)
	keyed := newWorld(t)
	keyed.makeKeys()
	keyed.work()
	for _, c := range []struct {
		w          *world
		name, want string
	}{
		{w, "token", "REPRISE_SECRET_KEY"},
		{keyed, "url", "REPRISE_CALLBACK_URL"},
	} {
		result, err := c.w.run(book(`
  - step: import
    tool: webhook
    on_start: {url: "{{ workload.etl }}", body: "{{ callback.`+c.name+` }}"}
    retry: 3
`), map[string]any{"etl": other.URL})
		require.NoError(t, err)
		require.EqualValues(t, "failed", result.Status)
		require.Contains(t, result.Error.Message, c.want)
		require.Equal(t, 1, step(t, result, "import").Attempts)
	}
	require.Empty(t, other.starts)
}
