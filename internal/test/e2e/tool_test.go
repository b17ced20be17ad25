package e2e_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"reprise/activities/tooltest"
	"reprise/internal/observe/ending"
	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

// TestEveryToolAsStepAndSink takes one value through python, SQLite, PostgreSQL
// and files.
func TestEveryToolAsStepAndSink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	w.work()
	data := w.completes(book(`
  - step: make
    tool: python
    args: {n: 3}
    code: |
      def main(n):
          print("printed text is no result")
          return [{"id": i, "name": "row %d" % i, "tags": ["a", "b"]} for i in range(n)]
    sink: {tool: sqlite, auth: "sqlite:rows.db", table: rows, key: id, mode: upsert}
    next: write
  - step: table
    tool: postgres
    auth: pg
    statement: CREATE TABLE rows (id bigint primary key, name text, tags text)
    next: make
  - step: start
    tool: sqlite
    auth: "sqlite:rows.db"
    statement: CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, tags TEXT)
    next: table
  - step: write
    tool: sqlite
    auth: "sqlite:rows.db"
    statement: SELECT id, name, tags FROM rows ORDER BY id
    sink: {tool: postgres, auth: pg, table: rows}
    next: read
  - step: read
    tool: postgres
    auth: pg
    statement: SELECT id, name, tags FROM rows ORDER BY id
    sink: {tool: file, path: out/rows.csv}
    next: load
  - step: load
    tool: file
    path: out/rows.csv
    sink:
      tool: python
      code: |
        def main(result):
            with open("seen", "a") as file:
                file.write(str(len(result)))
output: {table: "{{ read }}", file: "{{ map(load, .name) }}"}
`), nil)
	row := func(id int, name string) any {
		return map[string]any{"id": id, "name": name, "tags": `["a","b"]`}
	}
	require.Equal(t, map[string]any{
		"table": []any{row(0, "row 0"), row(1, "row 1"), row(2, "row 2")},
		"file":  []any{"row 0", "row 1", "row 2"},
	}, data)
	require.Equal(t, "3", w.file("seen"))
	require.Len(t, db.Query(t, "SELECT * FROM rows"), 3)
	require.Len(t, db.Query(t, "SELECT * FROM reprise_writes"), 1, "insert notes its operation key")
}

// TestStatementParameters: values are never part of the SQL.
func TestStatementParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.recordAs("statement_parameters")
	db := w.database()
	db.Exec(t, "CREATE TABLE people (id bigint, name text)")
	w.work()
	evil := "x'); DROP TABLE people; --"
	data := w.completes(book(`
  - step: insert
    tool: postgres
    auth: pg
    statement: |
      INSERT INTO people (id, name) SELECT n, '{{ name }}' || n FROM unnest({{ ids }}::bigint[]) AS n
    next: lookup
  - step: lookup
    tool: postgres
    auth: pg
    statement: |
      SELECT id, name FROM people WHERE id = ANY({{ ids }}) AND name LIKE '%{{ part }}%' AND id > {{ vars.least | default(1) }} ORDER BY id
`), map[string]any{"name": evil, "part": "DROP", "ids": []any{1, 2, 3}})
	require.Equal(t, []any{
		map[string]any{"id": 2, "name": evil + "2"}, map[string]any{"id": 3, "name": evil + "3"},
	}, data)
}

// TestVarsAndOutput: vars see the step's result and those before them.
func TestVarsAndOutput(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ n }}"}
    vars:
      once: "{{ result.query.n[0] | int }}"
      twice: "{{ vars.once * 2 }}"
    next: again
  - step: again
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ vars.twice }}"}
    vars: {once: "{{ 'replaced' }}"}
output:
  vars: "{{ vars }}"
  n: "{{ again.query.n[0] }}"
  big: "{{ big }}"
  id: "{{ execution_id }}"
  playbook: "{{ run.playbook }}"
`), map[string]any{"n": 21, "big": int64(9007199254740993)})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, w.expected(map[string]any{
		"vars": map[string]any{"once": "replaced", "twice": 42}, "n": "42", "big": int64(9007199254740993),
		"id": run.GetID(), "playbook": "test",
	}), result.Result.Data)
}

// TestSecretsStayInTheWorker: no history, log or error holds a password,
// whether the connection works or not.
func TestSecretsStayInTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const password = "s3cret-Passw0rd"
	db := w.database()
	good, err := url.Parse(db.URL)
	require.NoError(t, err)
	if own, has := good.User.Password(); has && len(own) >= 4 {
		w.secrets = append(w.secrets, own)
	}
	host := good.Host
	w.connected["wrong"] = "postgres://nobody:" + password + "@" + host + "/" + db.Name
	w.connected["refused"] = "postgres://nobody:" + password + "@127.0.0.1:1/x"
	w.connected["broken"] = "postgres://nobody:" + password + "@:not-a-port/x"
	w.connected["basic"] = "http://user:" + password + "@" + w.api.URL()[len("http://"):]
	w.connected["bearer"] = "bearer:" + password
	tokens := `{"oauth2": {"token_url": "` + w.api.URL() + `/auth/token?uses=1", "client_id": "demo", "client_secret": "%s"}}`
	w.connected["unknown"] = fmt.Sprintf(tokens, password)
	w.connected["granted"] = fmt.Sprintf(tokens, demoapi.DemoSecret)
	w.secrets = append(w.secrets, demoapi.DemoSecret, "demo-token-", "session-t0ken-")
	desk := tooltest.AnsweringServer(t, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" && r.FormValue("password") == password {
			fmt.Fprint(out, `{"token": "session-t0ken-1", "refresh": "session-t0ken-2"}`)
			return
		}
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprint(out, "you sent ", r.Header.Get("X-Session"), r.FormValue("password"))
	})
	session := `{"session": {"login": {"url": "` + desk + `/login", "form": {"password": %q}}, "token": "{{ response.token }}", "send": {"header": "X-Session"}}}`
	w.connected["entered"], w.connected["locked"] = fmt.Sprintf(session, password), fmt.Sprintf(session, password+"-old")
	w.secrets = append(w.secrets, password)
	logged := &testenv.Output{}
	logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.resources.Logger = logger
	w.workWith(w.env.Dial(t, client.Options{Logger: log.NewStructuredLogger(logger)}))

	result := w.ends("completed", book(`
  - step: start
    next: [good, wrong, refused, broken, basic, bearer, echo, unknown, granted, entered, locked]
  - {step: good, tool: postgres, auth: pg, statement: SELECT 1 AS one}
  - {step: wrong, tool: postgres, auth: wrong, statement: SELECT 1 AS one, next: [{when: "{{ error is defined }}", step: done}]}
  - {step: refused, tool: postgres, auth: refused, statement: SELECT 1 AS one, next: [{when: "{{ error is defined }}", step: done}]}
  - {step: broken, tool: postgres, auth: broken, statement: SELECT 1 AS one, next: [{when: "{{ error is defined }}", step: done}]}
  - {step: basic, tool: http, auth: basic, url: "/auth/basic?user=user&password=other", next: [{when: "{{ error.status == 401 }}", step: done}]}
  - {step: bearer, tool: http, auth: bearer, url: "{{ api }}/auth/bearer?token=other", next: [{when: "{{ error.status == 401 }}", step: done}]}
  - {step: unknown, tool: http, auth: unknown, url: "{{ api }}/auth/oauth2", next: [{when: "{{ error.type == 'token' }}", step: done}]}
  - {step: granted, tool: http, auth: granted, url: "{{ api }}/auth/bearer?token=other", next: [{when: "{{ error.status == 401 }}", step: done}]}
  - {step: entered, tool: http, auth: entered, url: /refused, next: [{when: "{{ error.status == 403 and error.body == 'you sent ***' }}", step: done}]}
  - {step: locked, tool: http, auth: locked, url: /, next: [{when: "{{ error.type == 'login' and error.status == 403 }}", step: done}]}
  - {step: echo, tool: http, auth: basic, url: /status/500, next: [{when: "{{ error.status == 500 }}", step: done}]}
  - step: done
output: "{{ [good, steps.wrong.error, steps.refused.error, steps.broken.error, steps.basic.error, steps.bearer.error, steps.unknown.error, steps.granted.error, steps.entered.error, steps.locked.error] }}"
`), nil)
	require.Len(t, result.Warnings, 10)          // each step that fails
	require.Len(t, result.ValidationWarnings, 3) // a password and two tokens in addresses
	encoded := logged.String()
	require.NotEmpty(t, encoded)
	for _, secret := range w.secrets {
		require.NotContains(t, encoded, secret)
	}
}

// TestConnectionThatNobodyConfigured says what to configure.
func TestConnectionThatNobodyConfigured(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: query
    tool: postgres
    auth: clinic
    statement: SELECT 1 AS one
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 5}
`), nil)
	require.Contains(t, result.Error.Message, "REPRISE_AUTH_CLINIC")
	require.Equal(t, 1, step(t, result, "query").Attempts, "trying again cannot help")
}

// TestPythonIsOffUnlessAllowed: the worker decides, not the playbook.
func TestPythonIsOffUnlessAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.AllowPython = false
	w.work()
	result, err := w.run(book(`
  - step: compute
    tool: python
    code: |
      def main():
          return 1
`), nil)
	if err != nil {
		require.ErrorIs(t, err, ending.ErrRefused)
		require.ErrorContains(t, err, "python")
		return
	}
	require.EqualValues(t, "failed", result.Status)
	require.Contains(t, result.Error.Message, "python")
}
