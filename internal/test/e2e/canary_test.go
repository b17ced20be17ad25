package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// canaryTails make it hard to write a secret in one way only.
var canaryTails = []string{
	"", "/+=", `&<>"'q`, "%41%2Fx", `\n\u0041x`, " with blanks", "äöß", "😀", "a'b''c", "~!*()-_.",
}

// canary is a secret with the form that a connection gives it.
type canary struct {
	secret string
	name   string // of its connection
	url    string // of its connection
	base   string // what a step's url begins with
}

// aviary makes forty canaries for a server of ours and one of PostgreSQL.
func aviary(t *testing.T, api string, db *testenv.Database) []canary {
	t.Helper()
	t.Helper()
	host := strings.TrimPrefix(api, "http://")
	var all []canary
	put := func(tail string, form func(secret string) (connection, base string)) {
		n := len(all)
		secret := fmt.Sprintf("Cn%02dQx%sZ%dk%s", n, base64.RawURLEncoding.EncodeToString([]byte{byte(n * 37), byte(n*91 + 5), 0x9f, byte(n), 0x3c, 7}), n, tail)
		connection, base := form(secret)
		all = append(all, canary{secret: secret, name: fmt.Sprintf("canary%02d", n), url: connection, base: base})
	}
	prefixed := func(prefix string) func(string) (string, string) {
		return func(secret string) (string, string) { return prefix + secret, api }
	}
	for i, prefix := range []string{
		"bearer:", "Bearer:", "bearer: ", "Bearer: ", "BEARER:  ", " bearer:", "bearer:", "bearer:",
		"header:X-Api-Key: ", "Header:X-Api-Key:", "header: X-Api-Key : ", "header:Authorization: Token ",
		"header:Cookie: sid=", "header:Authorization: Bearer ",
	} {
		put(canaryTails[i%len(canaryTails)], prefixed(prefix))
	}
	for _, tail := range canaryTails {
		put(tail, func(secret string) (string, string) {
			return "http://" + url.UserPassword("svc", secret).String() + "@" + host, ""
		})
	}
	for _, tail := range canaryTails[:4] {
		put(tail, func(secret string) (string, string) { return "http://" + url.User(secret).String() + "@" + host, "" })
	}
	for _, tail := range []string{"", "äöß", " with blanks"} {
		put(tail, func(secret string) (string, string) {
			return api + "/hook/" + url.PathEscape(secret) + "/x?sig=" + url.QueryEscape(secret), ""
		})
	}
	putPostgres(t, db, put)
	require.Len(t, all, 40)
	return all
}

// putPostgres makes the canaries of PostgreSQL's connections.
func putPostgres(t *testing.T, db *testenv.Database, put func(tail string, form func(secret string) (connection, base string))) {
	t.Helper()
	pg, err := url.Parse(db.URL)
	require.NoError(t, err)
	pgWith := func(change func(u *url.URL, secret string)) func(string) (string, string) {
		return func(secret string) (string, string) {
			u := *pg
			change(&u, secret)
			return u.String(), "pg"
		}
	}
	wrong := pgWith(func(u *url.URL, secret string) { u.User = url.UserPassword("nobody", secret) })
	put(canaryTails[2], wrong)
	put(canaryTails[4], wrong)
	put("", pgWith(func(u *url.URL, secret string) { u.User = url.UserPassword(secret, "any") }))
	put("", pgWith(func(u *url.URL, secret string) { // a user that may connect
		db.Exec(t, `CREATE ROLE "`+secret+`" LOGIN PASSWORD 'canary-of-pg'`)
		u.User = url.UserPassword(secret, "canary-of-pg")
	}))
	named := pgWith(func(u *url.URL, secret string) {
		query := u.Query()
		query.Set("application_name", secret)
		u.RawQuery = query.Encode()
	})
	put("", named)
	put("~!*()-_.", named)
	put("", pgWith(func(u *url.URL, secret string) { u.User, u.Host = url.UserPassword("nobody", secret), "127.0.0.1:1" }))
	put("", pgWith(func(u *url.URL, secret string) { u.User, u.Host = url.UserPassword("nobody", secret), "nobody.invalid" }))
	put("x%zz", func(secret string) (string, string) { return "postgres://nobody:" + secret + "@:not-a-port/x", "pg" })
}

// parrot is a server that repeats every credential it is sent, in all spellings.
type parrot struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newParrot(t *testing.T) *parrot {
	t.Helper()
	p := &parrot{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(p.Close)
	return p
}

// credentials are those of a request, as they came and taken apart.
func credentials(r *http.Request) []string {
	var all []string
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if value := r.Header.Get(name); value != "" {
			_, token, _ := strings.Cut(value, " ")
			all = append(all, value, token)
		}
	}
	if user, password, ok := r.BasicAuth(); ok {
		all = append(all, user, password, user+":"+password)
	}
	all = append(all, strings.TrimPrefix(r.Header.Get("Cookie"), "sid="))
	if rest, ok := strings.CutPrefix(r.URL.Path, "/hook/"); ok {
		secret, _, _ := strings.Cut(rest, "/")
		all = append(all, secret)
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < 8 })
}

// repeated are the credentials in all spellings, as many as an error keeps.
func repeated(r *http.Request, part int) []string {
	all := []string{"nothing"}
	for _, credential := range credentials(r) {
		all = append(all, spelledOut(credential)...)
	}
	const parts = 3
	for i := range all {
		all[i] += " "
	}
	size := (len(all) + parts - 1) / parts
	return all[min(part*size, len(all)):min((part+1)*size, len(all))]
}

// canaryModes are the ways in which the parrot answers.
var canaryModes = []string{
	"text1", "text2", "text3", "json1", "json2", "json3", "html", "key", "headers1", "headers2", "headers3", "header-name", "type",
	"invalid-json", "not-text", "cut", "cut-ok", "redirect", "redirect-host", "redirects", "hang", "drop", "ok1", "ok2", "ok-header", "retry",
}

func (p *parrot) answer(w http.ResponseWriter, r *http.Request) {
	mode := r.URL.Query().Get("mode")
	if mode == "take" { // a sink of dead letters
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bodies = append(p.bodies, string(body))
		return
	}
	all := append([]string{"none of the credentials"}, credentials(r)...)
	first, part := all[len(all)-1], 0
	if n := len(mode) - 1; n > 0 && mode[n] >= '1' && mode[n] <= '3' {
		mode, part = mode[:n], int(mode[n]-'1')
	}
	spelt := repeated(r, part)
	text := strings.Join(spelt, "\n")
	switch mode {
	case "text", "retry":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(map[string]int{"text": 401, "retry": 503}[mode])
		_, _ = io.WriteString(w, text)
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "<p>"+first)
	case "json", "key":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		var body any = map[string]any{"sent": spelt}
		if mode == "key" {
			body = map[string]any{first: map[string]any{"deep": []any{first}}}
		}
		_ = json.NewEncoder(w).Encode(body)
	case "headers", "ok-header":
		for i, one := range spelt {
			w.Header().Set(fmt.Sprintf("X-E-%02d", i), strings.TrimSpace(one))
		}
		w.WriteHeader(map[string]int{"headers": 401, "ok-header": 200}[mode])
	default:
		p.odd(w, r, mode, first, text)
	}
}

// odd answers in ways that are errors of another kind than HTTP's.
func (p *parrot) odd(w http.ResponseWriter, r *http.Request, mode, first, text string) {
	switch mode {
	case "header-name":
		w.Header()["X-"+strings.Map(func(c rune) rune {
			if c > ' ' && c < 127 && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
				return c
			}
			return -1
		}, first)] = []string{"v"}
		w.WriteHeader(http.StatusUnauthorized)
	case "type":
		w.Header().Set("Content-Type", "application/x-"+url.QueryEscape(first))
		_, _ = w.Write([]byte{0, 1, 2})
	case "invalid-json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, first+text)
	case "not-text":
		_, _ = io.WriteString(w, first+"\x00")
	case "cut", "cut-ok":
		w.Header().Set("Content-Length", "100000")
		w.WriteHeader(map[string]int{"cut": 500, "cut-ok": 200}[mode])
		_, _ = io.WriteString(w, text+"\n"+first[:len(first)*2/3])
	case "redirect":
		http.Redirect(w, r, "http://127.0.0.1:1/"+url.PathEscape(first)+"?t="+url.QueryEscape(first), http.StatusFound)
	case "redirect-host":
		w.Header().Set("Location", "http://"+base64.RawURLEncoding.EncodeToString([]byte(first))+"."+url.PathEscape(first)+".invalid/"+first)
		w.WriteHeader(http.StatusFound)
	case "redirects":
		http.Redirect(w, r, r.URL.Path+"?mode=redirects&t="+url.QueryEscape(first), http.StatusFound)
	case "hang":
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case "drop":
		panic(http.ErrAbortHandler)
	default: // it went well, and says who asked
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"sent": text, "name": first})
	}
}

// canaryBook has every tool and sink fail with every canary in reach.
const canaryBook = `
  - step: start
    next: [http, again, python, postgres, named, server, slow, sqlite, sinks_http, sinks_pg, sinks_python, letters]
  - step: http
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    timeout: 2s
    loop:
      collection: "{{ workload.calls }}"
      mode: parallel
      max_concurrency: 16
      batch: 25
      dead_letter:
        sink: {tool: file, path: letters.jsonl, args: {why: "{{ error }}", element: "{{ result.element.auth }}"}}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: again
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    loop: {collection: "{{ workload.again }}", mode: parallel}
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 3, initial_delay: 100ms}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: python
    tool: python
    args: {n: "{{ item[0] }}", how: "{{ item[1] }}"}
    code: |
      import base64, json, os
      def main(n, how):
          it = json.load(open("canaries.json"))[n]
          text = "\n".join(it["spelt"])
          print(text, flush=True)
          if how == "type":
              raise type("E" + it["secret"], (Exception,), {})("why")
          if how == "message":
              raise ValueError(text)
          if how == "long":
              raise ValueError("x" * (4000 - len(it["secret"]) // 2) + it["secret"])
          if how == "repr":
              raise KeyError(it["secret"])
          if how == "exit":
              os._exit(3)
          scope = {}
          exec(compile("def f(" + "a" + "):\n    raise ValueError(a)  # " + it["secret"], it["secret"], "exec"), scope)
          scope["f"](it["secret"].encode())
    loop: {collection: "{{ workload.snakes }}", mode: parallel, max_concurrency: 4, batch: 20}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: postgres
    tool: postgres
    auth: "{{ item }}"
    statement: SELECT current_user::text::int AS n
    loop: {collection: "{{ workload.databases }}", mode: parallel}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: named
    tool: postgres
    auth: "{{ item }}"
    statement: SELECT current_setting('application_name')::int AS n
    loop: {collection: "{{ workload.databases }}", mode: parallel}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: server
    tool: postgres
    auth: "{{ item }}"
    statement: |
      DO $$ DECLARE c text := current_setting('application_name'); u text := current_user;
      BEGIN RAISE EXCEPTION USING MESSAGE = c || ' ' || quote_literal(c) || ' ' || quote_ident(u) || ' ' || to_json(c),
        DETAIL = encode(convert_to(c, 'UTF8'), 'base64') || ' ' || encode(convert_to('x' || c, 'UTF8'), 'base64'),
        HINT = encode(convert_to(c, 'UTF8'), 'hex') || ' ' || encode(convert_to(c, 'UTF8'), 'escape'),
        COLUMN = c, CONSTRAINT = u, TABLE = c, SCHEMA = u, ERRCODE = 'P0001'; END $$
    loop: {collection: "{{ workload.databases }}", mode: parallel}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: slow
    tool: postgres
    auth: "{{ item }}"
    timeout: 2s
    statement: SELECT pg_sleep(60)::text AS s
    loop: {collection: "{{ workload.databases }}", mode: parallel}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: sqlite
    tool: sqlite
    auth: "{{ item }}"
    statement: SELECT nothing FROM nowhere
    loop: {collection: "{{ workload.every }}", mode: parallel, batch: 20}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: sinks_http
    tool: sqlite
    auth: "sqlite:rows.db"
    statement: SELECT 1 AS a
    loop:
      collection: "{{ workload.webs }}"
      mode: parallel
      batch: 20
      sink: {tool: http, auth: "{{ item.auth }}", url: "{{ item.url }}"}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: sinks_pg
    tool: sqlite
    auth: "sqlite:rows.db"
    statement: SELECT 1 AS a
    loop:
      collection: "{{ workload.databases }}"
      mode: parallel
      sink: {tool: postgres, auth: "{{ item }}", table: nowhere}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: sinks_python
    tool: sqlite
    auth: "sqlite:rows.db"
    statement: SELECT 1 AS a
    loop:
      collection: "{{ workload.each }}"
      mode: parallel
      batch: 20
      sink:
        tool: python
        args: {n: "{{ item }}"}
        code: |
          import json
          def main(n):
              it = json.load(open("canaries.json"))[n]
              raise type("E" + it["secret"], (Exception,), {})("\n".join(it["spelt"]))
    next: [{when: "{{ error is defined }}", step: done}]
  - step: letters
    next: [letters_sqlite, letters_pg, letters_http, letters_python]
  - step: letters_sqlite
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    loop:
      collection: "{{ workload.webs }}"
      mode: parallel
      batch: 10
      dead_letter: {sink: {tool: sqlite, auth: "sqlite:rows.db", table: letters, args: {why: "{{ error }}"}}}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: letters_pg
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    loop:
      collection: "{{ workload.webs }}"
      mode: parallel
      batch: 10
      dead_letter: {sink: {tool: postgres, auth: pg, table: letters, args: {why: "{{ error }}"}}}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: letters_http
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    loop:
      collection: "{{ workload.webs }}"
      mode: parallel
      batch: 10
      dead_letter: {sink: {tool: http, url: "{{ workload.parrot }}/?mode=take", args: {why: "{{ error }}"}}}
    next: [{when: "{{ error is defined }}", step: done}]
  - step: letters_python
    tool: http
    auth: "{{ item.auth }}"
    url: "{{ item.url }}"
    loop:
      collection: "{{ workload.webs }}"
      mode: parallel
      batch: 10
      dead_letter:
        sink:
          tool: python
          args: {why: "{{ error }}"}
          code: |
            import json
            def main(why):
                open("letters.py.txt", "a").write(json.dumps(why) + "\n")
    next: [{when: "{{ error is defined }}", step: done}]
  - step: done
output: "{{ [http.stats, again.stats, python.stats] }}"
`

// tap keeps everything that a worker sends to the server, heartbeats included.
type tap struct {
	mu   sync.Mutex
	sent []proto.Message
}

func (tp *tap) listen(
	ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if message, ok := request.(proto.Message); ok {
		tp.mu.Lock()
		tp.sent = append(tp.sent, proto.Clone(message))
		tp.mu.Unlock()
	}
	return invoke(ctx, method, request, reply, cc, opts...)
}

// litter is where something was left, by place.
type litter map[string][]string

// leaves is what a run leaves on the way, wherever it went: for anybody to read.
func (w *world) leaves(logged string, result protocol.Result, tapped *tap, shelf *shelf) litter {
	w.t.Helper()
	found := litter{"log": {logged}}
	encoded, err := json.Marshal(result)
	require.NoError(w.t, err)
	found["result"] = []string{string(encoded)}
	for _, history := range w.histories {
		found.message(w.t, "history", history.History)
	}
	for _, message := range tapped.sent {
		found.message(w.t, "sent by the worker", message)
	}
	found.namespace(w.t, w)
	found.files(w.t, "payload store", shelf.dir)
	return found
}

// message adds a message: its bytes, and each of its payloads and texts alone.
func (l litter) message(t *testing.T, place string, message proto.Message) {
	t.Helper()
	encoded, err := proto.Marshal(message)
	require.NoError(t, err)
	l[place] = append(l[place], string(encoded))
	l.payloads(place, message.ProtoReflect())
}

func (l litter) payloads(place string, m protoreflect.Message) {
	if payload, ok := m.Interface().(*common.Payload); ok {
		var value any
		if json.Unmarshal(payload.GetData(), &value) == nil {
			l[place] = append(l[place], texts(value)...)
		}
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap() && field.MapValue().Kind() == protoreflect.MessageKind:
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { l.payloads(place, v.Message()); return true })
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			for i := range value.List().Len() {
				l.payloads(place, value.List().Get(i).Message())
			}
		case !field.IsMap() && field.Kind() == protoreflect.MessageKind:
			l.payloads(place, value.Message())
		}
		return true
	})
}

// texts are all strings and keys of a value, and what they hold as JSON.
func texts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, texts(item)...)
		}
		return all
	case map[string]any:
		var all []string
		for key, item := range v {
			all = append(append(all, key), texts(item)...)
		}
		return all
	}
	return nil
}

// files adds every file of a folder except those that are the test's own.
func (l litter) files(t *testing.T, place, dir string, own ...string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains(own, entry.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		l[place] = append(l[place], string(text))
		return err
	}))
}

// namespace adds everything that the server knows of the workflows of a queue.
func (l litter) namespace(t *testing.T, w *world) {
	t.Helper()
	c := w.env.Client()
	var next []byte
	for {
		page, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: w.env.Namespace, PageSize: 500, NextPageToken: next, Query: fmt.Sprintf("TaskQueue = '%s'", w.queue),
		})
		require.NoError(t, err)
		for _, execution := range page.Executions {
			l.message(t, "visibility", execution)
			id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
			described, err := c.DescribeWorkflowExecution(t.Context(), id, run)
			require.NoError(t, err)
			l.message(t, "description", described)
		}
		if next = page.NextPageToken; len(next) == 0 {
			return
		}
	}
}

// TestCanaries has every tool and sink fail in every way with forty secrets in
// reach, whose servers repeat them in all spellings. Then it looks for them in
// all that the server knows of the run, all that the worker sent and logged, the
// payload store, and what sinks wrote.
func TestCanaries(t *testing.T) {
	t.Parallel()
	w, shelf := newShelved(t, time.Minute)
	db := w.database()
	db.Exec(t, "CREATE TABLE letters (why text)")
	polly := newParrot(t)
	canaries := aviary(t, polly.URL, db)
	var all []string
	for _, c := range canaries {
		all = append(all, c.secret)
		w.connected[c.name] = c.url
	}
	hound := newHound(t, all)
	cage, err := json.Marshal(canariesForPython(canaries))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "canaries.json"), cage, 0o600))
	logged, tapped := &testenv.Output{}, &tap{}
	logger := slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.resources.Logger = logger
	options := shelf.options()
	options.Logger = log.NewStructuredLogger(logger)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(tapped.listen))
	w.workWith(w.env.Dial(t, options))

	run := w.start(book(canaryBook), canaryWorkload(canaries, polly.URL))
	w.replays = 1
	result, err := w.outcome(run)
	require.NoError(t, err)
	for _, record := range result.Steps {
		if record.Loop != nil && record.Step != "http" {
			require.Equal(t, record.Loop.Stats.Total, record.Loop.Stats.Failed, "the test is about failures: %s", record.Step)
		}
	}
	found := w.leaves(logged.String(), result, tapped, shelf)
	found["sink http"] = polly.bodies
	found.files(t, "files of sinks", w.dir, "canaries.json")
	for _, row := range db.Query(t, "SELECT * FROM letters") {
		found["sink postgres"] = append(found["sink postgres"], fmt.Sprint(row))
	}
	for _, place := range []string{
		"log", "result", "history", "sent by the worker", "payload store", "files of sinks", "sink http", "sink postgres",
	} {
		require.Contains(t, strings.Join(found[place], "\n"), secrets.Stars, "nothing was masked in: %s", place)
	}
	report(t, hound, found)
}

// canariesForPython is what python is told of the canaries.
func canariesForPython(canaries []canary) []map[string]any {
	all := make([]map[string]any, len(canaries))
	for i, c := range canaries {
		all[i] = map[string]any{"secret": c.secret, "spelt": spelledOut(c.secret)}
	}
	return all
}

// canaryWorkload says which canary goes where.
func canaryWorkload(canaries []canary, parrot string) map[string]any {
	share := 4 // of the ways to fail, one of so many for each canary
	if *soak {
		share = 2
	}
	var calls, again, snakes, databases, every, webs, each []any
	for i, c := range canaries {
		costly := *soak || i%2 == 0 // it also goes where processes are started and connections opened
		every = append(every, c.name)
		if costly {
			each = append(each, i)
		}
		for _, how := range []string{"type", "message", "long", "repr", "exit", "trace"} {
			if costly && i/2%share == len(how)%share {
				snakes = append(snakes, []any{i, how})
			}
		}
		if c.base == "pg" {
			databases = append(databases, c.name) // whose canaries are of PostgreSQL
			calls = append(calls, map[string]any{"auth": c.name, "url": parrot + "/?mode=text1"})
			continue
		}
		at := func(mode string) map[string]any {
			path := c.base + "/?mode=" + mode
			if strings.Contains(c.url, "/hook/") {
				path = "?mode=" + mode
			}
			return map[string]any{"auth": c.name, "url": path}
		}
		for m, mode := range canaryModes {
			slow := slices.Contains([]string{"hang", "redirects", "redirect-host"}, mode)
			if slow && i%(2*share) == 0 || !slow && (i+m)%share == 0 {
				calls = append(calls, at(mode))
			}
		}
		if i%2 == 0 {
			again = append(again, at("retry"))
		} else {
			webs = append(webs, at("text1"), at("json2"))
		}
		if costly {
			databases = append(databases, c.name)
		}
	}
	return map[string]any{
		"calls": calls, "again": again, "snakes": snakes, "databases": databases, "every": every, "webs": webs, "each": each,
		"parrot": parrot,
	}
}

// report fails with what was found, by place and by spelling.
func report(t *testing.T, hound *hound, found litter) {
	t.Helper()
	places, spellings, canaries := map[string]int{}, map[string]int{}, map[string]bool{}
	total, bytes := 0, 0
	examples := []string{}
	for place, all := range found {
		for _, text := range all {
			bytes += len(text)
			for _, one := range hound.finds(text) {
				total++
				places[place]++
				spellings[one.spelling]++
				canaries[one.canary] = true
				if at := strings.Index(text, one.text); len(examples) < 20 && places[place] < 4 {
					examples = append(examples, fmt.Sprintf("%s, %s: …%q…", place, one.spelling, text[max(0, at-60):min(len(text), at+len(one.text)+30)]))
				}
			}
		}
	}
	t.Logf("%d finds of %d canaries in %d places with %d bytes\nby place: %v\nby spelling: %v", total, len(canaries), len(found), bytes, places, spellings)
	require.Zero(t, total, "canaries were found:\n%s", strings.Join(examples, "\n"))
}
