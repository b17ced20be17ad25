package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/ending"
	"reprise/internal/program/demoapi"
	"reprise/interpreter/expression"
)

// stoppedPages is a playbook that reads collections page by page into a sink, and then
// posts what it has read.
const stoppedPages = `
      - step: fetch
        tool: http
        url: "{{ api }}/api/v1/moving/{{ NAME }}"
        params: {limit: 3}
        LOOP
        retry:
          - when: "{{ error is not defined and response.more }}"
            then:
              max_attempts: 1000
              next_call: {params: {after: "{{ response.next }}"}}
              collect: {path: rows}
              per_iteration: {sink: {SINK}}
        next: post
      - step: post
        tool: http
        method: POST
        url: "{{ api }}/api/v1/writes?other_body=keep"
        body: {posted: "{{ fetch }}"}
`

// stoppedShapes are the places where the pages are read: in the playbook that a loop runs.
var stoppedShapes = map[string]struct{ loop, inner string }{
	"no playbook":           {loop: "batch: 1\n      mode: parallel"},
	"no playbook, in order": {loop: "batch: 1"},
	"no playbook, a batch":  {loop: "batch: 2\n      mode: parallel"},
	"a step":                {loop: "batch: 1"},
	"a step in a batch":     {loop: "batch: 2\n      mode: parallel"},
	"a loop":                {inner: "loop: {in: [a, b], iterator: part, batch: 1}"},
	"a loop of children":    {inner: "loop: {in: [a, b], iterator: part, batch: 1, mode: parallel}"},
	"a batch":               {inner: "loop: {in: [a, b], iterator: part, batch: 2, mode: parallel}"},
	"a batch in order":      {inner: "loop: {in: [a, b], iterator: part, batch: 2}"},
}

// stoppedSinks are what the pages are written to.
var stoppedSinks = map[string]string{
	"http":               `tool: http, url: "{{ api }}/api/v1/writes?other_body=keep"`,
	"postgres insert":    "tool: postgres, auth: pg, table: pages",
	"postgres upsert":    "tool: postgres, auth: pg, table: keyed, mode: upsert, key: [collection, id]",
	"postgres statement": `tool: postgres, auth: pg, statement: "INSERT INTO stated VALUES ({{ operation_key }}, {{ result | tojson }})"`,
	"sqlite insert":      "tool: sqlite, path: pages.db, table: pages",
	"file":               "tool: file, path: pages.jsonl",
	"python": "tool: python, args: {rows: \"{{ result }}\", api: \"{{ api }}\", key: \"{{ operation_key }}\"}, code: " +
		`"import json, urllib.request as u\ndef main(rows, api, key):\n  u.urlopen(u.Request(api + '/api/v1/writes?other_body=keep', json.dumps(rows).encode(), {'Idempotency-Key': key}))"`,
}

// stopped is a run of a loop of playbooks that is stopped while pages are read.
type stopped struct {
	*writing
	sink   string
	params string // of the first request
	// stays says that what is held when the run is stopped is held until its client has
	// gone, so that no activity of a run that was terminated reads on.
	stays bool
}

func newStopped(t *testing.T) *stopped {
	t.Helper()
	w := newWriting(t)
	w.db.Exec(t, "CREATE TABLE stated (key text, body text); CREATE TABLE pages (collection text, id bigint, version bigint); "+
		"CREATE TABLE keyed (collection text, id bigint, version bigint, PRIMARY KEY (collection, id))")
	return &stopped{writing: w, params: "limit: 3"}
}

func (s *stopped) begin(shape, sink string) client.WorkflowRun {
	s.t.Helper()
	s.sink = sink
	if strings.HasPrefix(sink, "sqlite") {
		s.completes(book("\n  - {step: create, tool: sqlite, path: pages.db, statement: 'CREATE TABLE pages (collection text, id bigint, version bigint)'}\n"), nil)
	}
	name, loop := "name", stoppedShapes[shape]
	if loop.inner != "" {
		name = "name + part"
	}
	each := "loop:\n      in: [x, y]\n      iterator: name\n      " + strings.TrimSpace(loop.loop)
	text := `
  - step: each
    tool: playbook
    ` + each + `
    workload: {name: "{{ name }}", api: "{{ api }}"}
    workflow:` + strings.NewReplacer("NAME", name, "LOOP\n", loop.inner+"\n", "SINK", stoppedSinks[sink]).Replace(stoppedPages)
	if strings.HasPrefix(shape, "no playbook") {
		each += "\n      sink: {tool: http, url: \"{{ api }}/api/v1/writes?other_body=keep\", args: {posted: \"{{ result }}\"}}"
		fetch, _, _ := strings.Cut(stoppedPages, "        next: post\n")
		text = strings.NewReplacer("NAME", name, "LOOP", each, "SINK", stoppedSinks[sink]).Replace(strings.ReplaceAll(fetch, "\n    ", "\n"))
	}
	return s.start(book(strings.ReplaceAll(text, "limit: 3", s.params)), nil)
}

// atPage stops a run while the page behind an id is asked for, and then moves the source
// so that a page before it would be another one.
func (s *stopped) atPage(run client.WorkflowRun, after string, how func()) {
	s.t.Helper()
	var over atomic.Bool
	reads := func(r *http.Request) bool {
		return !over.Load() && strings.HasPrefix(r.URL.Path, "/api/v1/moving/") && r.URL.Query().Get("after") == after
	}
	s.at(run, s.api.HoldRequests(reads), how, &over)
}

func (s *stopped) at(run client.WorkflowRun, hold *demoapi.Barrier, how func(), over *atomic.Bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return hold.HeldRequests() > 0 }, patience, tick)
	how()
	if over.Store(true); s.stays {
		s.t.Cleanup(hold.Release)
	} else {
		hold.Release()
	}
	_, _ = ending.WaitForResult(s.t.Context(), run)
	for _, name := range []string{"x", "y", "xa", "xb", "ya", "yb"} {
		if len(s.api.MovingAnswers("", name)) == 0 {
			continue
		}
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, s.api.URL()+"/api/v1/moving/"+name+"/5", nil)
		require.NoError(s.t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(s.t, err)
		require.NoError(s.t, response.Body.Close())
	}
}

// finish runs again what is left, and checks that what was posted is what was written.
func (s *stopped) finish(run client.WorkflowRun) {
	s.t.Helper()
	s.resolve(run, deadletter.Filter{Cancelled: true}, nil)
	var posted, pages []string
	for _, write := range s.api.Writes("") {
		require.Empty(s.t, write.Others, "key %s came with other bodies: %+v", write.Key, write)
		if body, is := write.Body.(map[string]any); is {
			posted = append(posted, flat(s.t, body["posted"])...)
		} else {
			pages = append(pages, flat(s.t, write.Body)...)
		}
	}
	switch {
	case s.sink == "postgres statement": // a page may come twice, in one form
		for _, row := range s.rows(s.db, "SELECT key, min(body) AS body, count(DISTINCT body) AS forms FROM stated GROUP BY key") {
			var body any
			require.EqualValues(s.t, 1, row.(map[string]any)["forms"])
			require.NoError(s.t, json.Unmarshal([]byte(row.(map[string]any)["body"].(string)), &body))
			pages = append(pages, flat(s.t, body)...)
		}
	case s.sink == "postgres upsert":
		pages = flat(s.t, s.rows(s.db, "SELECT * FROM keyed"))
	case strings.HasPrefix(s.sink, "postgres"):
		pages = flat(s.t, s.rows(s.db, "SELECT * FROM pages"))
	case s.sink == "sqlite insert":
		pages = flat(s.t, s.completes(book("\n  - {step: read, tool: sqlite, path: pages.db, statement: SELECT * FROM pages}\n"), nil))
	case s.sink == "file":
		for line := range strings.Lines(s.file("pages.jsonl")) {
			var row any
			require.NoError(s.t, json.Unmarshal([]byte(line), &row), line)
			pages = append(pages, flat(s.t, row)...)
		}
	}
	require.GreaterOrEqual(s.t, len(posted), 22)
	require.ElementsMatch(s.t, posted, pages, "what was posted, and what the sink holds")
}

// flat are the rows in a value, as texts.
func flat(t *testing.T, value any) (rows []string) {
	t.Helper()
	canonical, err := expression.Canonical(value)
	require.NoError(t, err)
	switch v := canonical.(type) {
	case []any:
		for _, inner := range v {
			rows = append(rows, flat(t, inner)...)
		}
	case map[string]any:
		if results, has := v["results"]; has {
			return flat(t, results)
		}
		return []string{fmt.Sprintf("%v/%v/%v", v["collection"], v["id"], v["version"])}
	}
	return rows
}

// stops are the ways in which a run is stopped.
var stops = map[string]func(*stopped, client.WorkflowRun){
	"cancelled":  func(s *stopped, run client.WorkflowRun) { s.cancel(run) },
	"terminated": func(s *stopped, run client.WorkflowRun) { s.terminate(run.GetID()) },
}

// stopsOf are those of the test of a number: with -soak all, and else one, by turns.
func stopsOf(number int) []string {
	all := slices.Sorted(maps.Keys(stops))
	if *soak {
		return all
	}
	return all[number%len(all):][:1]
}

// TestReprocessOfStoppedPages: playbooks are stopped while they read pages of a source
// that moves. In the end they post what they have written, under one key for one body,
// whatever the pages are written to.
func TestReprocessOfStoppedPages(t *testing.T) {
	t.Parallel()
	for i, sink := range slices.Sorted(maps.Keys(stoppedSinks)) {
		for k, shape := range slices.Sorted(maps.Keys(stoppedShapes)) {
			if sink != "http" && shape != "a step" && shape != "a batch" && shape != "no playbook, a batch" {
				continue
			}
			for _, stop := range stopsOf(i + k) {
				t.Run(strings.Join([]string{sink, shape, stop}, ", "), func(t *testing.T) {
					t.Parallel()
					s := newStopped(t)
					run := s.begin(shape, sink)
					s.atPage(run, "6", func() { stops[stop](s, run) })
					s.finish(run)
				})
			}
		}
	}
}

// TestReprocessOfStoppedPagesTwice stops the reprocess too.
func TestReprocessOfStoppedPagesTwice(t *testing.T) {
	t.Parallel()
	for i, sink := range []string{"http", "postgres insert"} {
		for k, shape := range []string{"a step", "a batch", "a loop", "no playbook"} {
			for _, stop := range stopsOf(i + k) {
				t.Run(strings.Join([]string{sink, shape, stop}, ", "), func(t *testing.T) {
					t.Parallel()
					s := newStopped(t)
					s.stays = true
					run := s.begin(shape, sink)
					s.atPage(run, "6", func() { stops[stop](s, run) })
					again := s.reprocess(run, s.chain(run).Select(deadletter.Filter{Cancelled: true}), "", nil)
					s.atPage(again, "9", func() { stops[stop](s, again) })
					s.finish(run)
				})
			}
		}
	}
}

// TestReprocessOfAStoppedLongCall: the call has gone on in a workflow of its own when its run is
// terminated.
func TestReprocessOfAStoppedLongCall(t *testing.T) {
	t.Parallel()
	s := newStopped(t)
	s.params = "limit: 1, rows: 180"
	run := s.begin("a step", "http")
	s.atPage(run, "170", func() {
		_, err := s.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID()+"/each#1/0!1/fetch#1", "")
		require.NoError(t, err, "the call has a workflow of its own")
		s.terminate(run.GetID())
	})
	s.finish(run)
}

// TestReprocessOfAStoppedSink: a playbook is stopped while a page is on its way to a
// server, or what comes after the last page. It may have come there, so the same is sent again.
func TestReprocessOfAStoppedSink(t *testing.T) {
	t.Parallel()
	for stop, how := range stops {
		for _, shape := range []string{"a step", "a batch", "no playbook"} {
			for write, match := range map[string]func(w *world) func(*http.Request) bool{
				"page 2": func(w *world) func(*http.Request) bool {
					return func(r *http.Request) bool { return isWrite(r) && len(w.api.Writes("")) >= 1 }
				},
				"last page": func(w *world) func(*http.Request) bool {
					return func(r *http.Request) bool { return isWrite(r) && len(w.api.Writes("")) >= 3 }
				},
			} {
				t.Run(strings.Join([]string{write, shape, stop}, ", "), func(t *testing.T) {
					t.Parallel()
					s := newStopped(t)
					hold := s.api.HoldAnswer(match(s.world))
					run := s.begin(shape, "http")
					s.at(run, hold, func() { how(s, run) }, &atomic.Bool{})
					s.finish(run)
				})
			}
		}
	}
}

func isWrite(r *http.Request) bool { return r.URL.Path == "/api/v1/writes" }
