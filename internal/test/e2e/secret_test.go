package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/workflows/protocol"
)

// The result of a secret step, with what URLs, JSON, SQL and shells escape.
const (
	fetchedToken  = `Zq8-kN4/w+T2=x9Lm&v`
	fetchedSecond = `R7#hUq2<v>9"u'Kd Wz`
)

// vault gives out tokens and repeats what it is sent, in every spelling; each path
// is refused the first time.
type vault struct {
	*httptest.Server

	mu     sync.Mutex
	seen   map[string]int
	calls  []heard
	logins int
	// hold is called by every request for an item.
	hold func(calls int)
}

// heard is what a request for an item had.
type heard struct{ path, query, header, token, second string }

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{seen: map[string]int{}, hold: func(int) {}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.seen[r.URL.Path]++
		first := v.seen[r.URL.Path] == 1
		if r.URL.Path == "/token" {
			v.logins++
		} else {
			sent := struct{ Token, Second string }{}
			_ = json.Unmarshal(body, &sent)
			v.calls = append(v.calls, heard{
				r.URL.Path, r.URL.Query().Get("t"), r.Header.Get("Authorization"), sent.Token, sent.Second,
			})
		}
		calls, hold := len(v.calls), v.hold
		v.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			rw.Header().Set("X-Token", fetchedToken)
			rw.Header().Set("Link", `</next?t=`+fetchedToken+`>; rel="next"`)
			v.answer(rw, map[string]any{
				"access_token": fetchedToken, "token_type": "Bearer", "expires_in": 3600,
				"more": []any{map[string]any{"second": fetchedSecond}}, "big": json.Number("12345678901234567890"),
			})
			return
		}
		hold(calls)
		rw.Header().Set("X-Sent", r.Header.Get("Authorization"))
		if first {
			rw.WriteHeader(http.StatusUnauthorized)
		}
		v.answer(rw, map[string]any{
			"url": r.URL.String(), "sent": r.Header, "body": string(body), "n": 7,
			"spelt": append(spelledOut(fetchedToken), spelledOut(fetchedSecond)...),
		})
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *vault) answer(w http.ResponseWriter, value any) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
}

// all are the requests for items so far.
func (v *vault) all() []heard {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]heard(nil), v.calls...)
}

// fetched is how often the token was given out.
func (v *vault) fetched() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.logins
}

const secretBook = `
  - step: login
    tool: http
    secret: true
    method: POST
    url: "{{ vault }}/token"
    vars: {logged_in: "{{ this.meta.status == 200 }}"}
    next: items
  - step: items
    tool: http
    method: POST
    url: "{{ vault }}/items/{{ item }}/{{ login.more[0].second }}?t={{ login.access_token }}"
    headers: {Authorization: "{{ login.token_type }} {{ login.access_token }}", Accept: application/json}
    body: {token: "{{ steps.login.data.access_token }}", second: "{{ login['more'][0]['second'] }}", item: "{{ item }}"}
    loop: {collection: "{{ 0..19 }}", mode: parallel, max_concurrency: 10, batch: 5}
    retry:
      - when: "{{ error.status == 401 and 'spelt' in error.body }}"
        then: {max_attempts: 2, initial_delay: 0.01, jitter: none}
    next: snake
  - step: snake
    tool: python
    args: {token: "{{ login.access_token }}", all: "{{ login }}", n: 3}
    code: |
      def main(token, all, n):
          print("printed", token, all)
          assert all["access_token"] == token and str(all["big"]) == "12345678901234567890"
          return {"length": len(token), "n": n, "token": token, "deep": [{"x": all}]}
    next: bite
  - step: bite
    tool: python
    args: {token: "{{ login.access_token | upper }}", second: "{{ login.more[0].second }}"}
    code: |
      def main(token, second):
          raise ValueError(f"no {token!r} and {second!r}")
    next: [{when: "{{ error is defined }}", then: [{step: lite, args: {why: "{{ error.message }}"}}]}]
  - step: lite
    tool: sqlite
    path: lite.db
    statement: SELECT length({{ login.access_token }}) AS n, {{ login.access_token }} AS t, 'x {{ login.more[0].second }}' AS s, {{ args.why }} AS why
    next: broken
  - step: broken
    tool: sqlite
    path: lite.db
    statement: SELECT json({{ login.access_token }}), {{ 1 + 1 }} AS two
    next: [{when: "{{ error is defined }}", step: odd}]
  - step: odd
    tool: http
    url: "{{ vault }}/odd?x={{ int(login.access_token) }}"
    next: [{when: "{{ error is defined }}", step: post}]
  - step: post
    tool: postgres
    auth: pg
    statement: SELECT CAST({{ login.access_token }} AS text) AS t, length({{ login.more[0].second }}) AS n
    next: fails
  - step: fails
    tool: postgres
    auth: pg
    statement: SELECT CAST({{ login.access_token }} AS int)
    next: [{when: "{{ error is defined }}", step: done}]
  - step: done
output: "{{ [items.stats, items.results[3].n, snake, lite, odd, steps.odd.error.message, post, steps.login.status, vars.logged_in] }}"
`

// TestSecretResults: a token that a step fetches is used in all fields that take
// secrets. Every receiver repeats it, in every spelling, in answers, errors and output;
// then it is looked for in everything that the run leaves.
func TestSecretResults(t *testing.T) {
	t.Parallel()
	w, shelf := newShelved(t, time.Minute)
	w.database()
	v := newVault(t)
	w.makeKeys()
	logged, tapped := &testenv.Output{}, &tap{}
	logger := slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.resources.Logger = logger
	options := shelf.options()
	options.Logger = log.NewStructuredLogger(logger)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(tapped.listen))
	w.workWith(w.env.Dial(t, options))

	result, err := w.outcome(w.start(book(secretBook), map[string]any{"vault": v.URL}))
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	checkSecretOutput(t, result)
	calls := v.all()
	require.Len(t, calls, 40, "each item is refused once")
	for _, call := range calls {
		require.Equal(t, heard{call.path, fetchedToken, "Bearer " + fetchedToken, fetchedToken, fetchedSecond}, call)
		require.True(t, strings.HasSuffix(call.path, "/"+fetchedSecond), call.path)
	}
	require.Equal(t, 1, v.fetched())

	found := w.leaves(logged.String(), result, tapped, shelf)
	found.files(t, "files of tools", w.dir)
	for _, place := range []string{"log", "result", "history", "sent by the worker"} {
		require.Contains(t, strings.Join(found[place], "\n"), secrets.Stars, "nothing was masked in: %s", place)
	}
	require.Contains(t, strings.Join(found["history"], "\n"), "$sealed")
	report(t, newHound(t, []string{fetchedToken, fetchedSecond, strings.ToUpper(fetchedToken)}), found)
}

func checkSecretOutput(t *testing.T, result protocol.Result) {
	t.Helper()
	encoded, err := json.Marshal(result.Result)
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"total": 20, "success": 20, "failed": 0, "truncated": 0, "cancelled": 0}, 7,
		{"length": 19, "n": 3, "token": "***", "deep": [{"x": {
			"access_token": "***", "token_type": "Bearer", "expires_in": 3600, "more": [{"second": "***"}], "big": 12345678901234567890}}]},
		[{"n": 19, "t": "***", "s": "x ***", "why": "ValueError: no '***' and '***'"}], null,
		"step \"odd\": url: int cannot make a number of the string ***; if it may be empty, write x | default(***, true) | int",
		[{"t": "***", "n": 19}], "success", true]`, string(encoded))
}

// TestSecretKeys: results are opened with the key that has sealed them, also where
// another seals by now, and never without.
func TestSecretKeys(t *testing.T) {
	t.Parallel()
	const two = `
  - step: login
    tool: http
    secret: true
    url: "{{ vault }}/token"
    next: gate
  - step: gate
    tool: http
    url: "{{ vault }}/gate"
    retry: [{when: "{{ error.status == 401 }}", then: {max_attempts: 2, initial_delay: 0.01}}]
    next: use
  - step: use
    tool: python
    args: {token: "{{ login.access_token }}"}
    code: |
      def main(token):
          return len(token)
`
	old, next := seal.NewKey(), seal.NewKey()
	file := filepath.Join(t.TempDir(), "secret-key")
	require.NoError(t, os.WriteFile(file, []byte(old), 0o600))
	for _, row := range []struct{ name, first, second, want string }{
		{"rotated", old, next + "," + old, ""},
		{"rotated in a file", file, next + "," + old, ""}, // which the same worker reads again
		{"same", old, old, ""},
		{"another", old, next, "cannot be opened: it is sealed with the key "},
		{"none to open", old, "", "this worker has none"},
		{"none to seal", "", "", "openssl rand -base64 32"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w, v := newWorld(t), newVault(t)
			reached, goOn := make(chan struct{}), make(chan struct{})
			answer := sync.OnceFunc(func() { close(goOn) })
			t.Cleanup(answer)
			v.hold = func(calls int) {
				if calls == 1 {
					close(reached)
					<-goOn
				}
			}
			variable := seal.Variable
			if row.first == file {
				variable = seal.FileVariable
			}
			first := w.spawnWith(variable + "=" + row.first)
			run := w.start(book(two), map[string]any{"vault": v.URL})
			switch row.first {
			case "":
			case file:
				testenv.Receive(t, reached, "the request with the secret")
				require.NoError(t, os.WriteFile(file, []byte(row.second), 0o600))
				answer()
			default:
				testenv.Receive(t, reached, "the request with the secret") // the result is sealed, and the worker gives way to another one
				first.Kill()
				answer()
				w.spawnWith(seal.Variable + "=" + row.second)
			}
			result, err := w.outcome(run)
			require.NoError(t, err)
			if row.want == "" {
				require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
				require.Equal(t, strconv.Itoa(len(fetchedToken)), fmt.Sprint(result.Result.Data))
				return
			}
			require.EqualValues(t, "failed", result.Status)
			require.Contains(t, result.Error.Message, row.want)
			require.Contains(t, result.Error.Message, seal.Variable)
			require.NotContains(t, result.Error.Message, old[:10])
			require.NotContains(t, result.Error.Message, next[:10])
			if row.first == "" {
				require.Zero(t, v.fetched(), "the attempt is not made")
			}
		})
	}
}

// spawnWith is spawn with variables of the environment.
func (w *world) spawnWith(env ...string) *testworker.Process {
	w.t.Helper()
	return testworker.Start(w.t, testworker.Options{
		Address: w.env.Address, Namespace: w.env.Namespace, TaskQueue: w.queue, Directory: w.dir,
		Connections: w.connected, Env: env,
	})
}

// TestSecretsSurviveAKilledWorker: the worker is killed in the middle of the loop
// that uses the secret; another one with the same key goes on.
func TestSecretsSurviveAKilledWorker(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t), newVault(t)
	reached, once := make(chan struct{}), sync.Once{}
	v.hold = func(calls int) {
		if calls == 12 {
			once.Do(func() { close(reached) })
		}
	}
	key := seal.Variable + "=" + seal.NewKey()
	first := w.spawnWith(key)
	run := w.start(book(`
  - step: login
    tool: http
    secret: true
    url: "{{ vault }}/token"
    next: items
  - step: items
    tool: http
    url: "{{ vault }}/items/{{ item }}?t={{ login.access_token }}"
    headers: {Authorization: "Bearer {{ login.access_token }}"}
    loop: {collection: "{{ 0..19 }}", mode: parallel, batch: 5}
    retry: [{when: "{{ error.status == 401 }}", then: {max_attempts: 2, initial_delay: 0.01}}]
output: "{{ items.stats.success }}"
`), map[string]any{"vault": v.URL})
	testenv.Receive(t, reached, "the twelfth request")
	first.Kill()
	w.spawnWith(key)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, "20", fmt.Sprint(result.Result.Data))
	for _, call := range v.all() {
		require.Equal(t, fetchedToken, call.query)
	}
	require.Equal(t, 1, v.fetched(), "what is sealed is not fetched again")
	found := litter{}
	for _, history := range w.histories {
		found.message(t, "history", history.History)
	}
	report(t, newHound(t, []string{fetchedToken, fetchedSecond}), found)
}

// TestSecretsStayWhereTheyBelong: a page that leads elsewhere is not sent the
// secret, the result of a run that ends with a secret step tells nothing, and what
// fails in a secret step does not say what the other side has said.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	w, v := newWorld(t), newVault(t)
	w.makeKeys()
	w.work()
	login := `
  - step: login
    tool: http
    secret: true
    url: "{{ vault }}/token"
`
	require.Equal(t, "***", w.completes(book(login), map[string]any{"vault": v.URL}))

	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	failed := w.ends("failed", book(login+`    next: paged
  - step: paged
    tool: http
    url: "{{ vault }}/pages"
    headers: {Authorization: "Bearer {{ login.access_token }}"}
    retry:
      - when: "{{ error.status == 401 }}"
        then: {max_attempts: 2, initial_delay: 0.01}
      - when: "{{ response.n == 7 }}"
        then: {next_call: {url: "{{ workload.other }}/next"}, collect: {strategy: append}}
`), map[string]any{"vault": v.URL, "other": other.URL})
	require.Contains(t, failed.Error.Message, "the secret results that it uses are not sent to "+other.URL)
	require.Empty(t, elsewhere)

	quiet := w.ends("failed", book(`
  - step: login
    tool: http
    secret: true
    url: "{{ vault }}/refused"
    headers: {Authorization: "Bearer nothing"}
`), map[string]any{"vault": v.URL})
	require.Equal(t, 401, quiet.Error.Status)
	require.Nil(t, quiet.Error.Body.Data)
	require.Empty(t, quiet.Error.Headers)

	raised := w.ends("failed", book(`
  - step: login
    tool: python
    secret: true
    code: |
      def main():
          raise KeyError("tok" + "en-1234567")
`), nil)
	require.NotContains(t, raised.Error.Message, "1234567")
	require.Equal(t, "KeyError", raised.Error.Type)

	require.Contains(t, w.refused(book(login+"output: \"{{ login }}\"\n")), "secret-use")
	require.Contains(t, w.refused(book(login+"    sink: {tool: file, path: x.jsonl}\n")), "secret-step")
}
