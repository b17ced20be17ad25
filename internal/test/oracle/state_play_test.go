package oracle_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/workflows"
)

// shop answers the rows of a run.
type shop struct {
	story *story

	mu    sync.Mutex
	run   *storyRun
	asked map[string][]string
	forms map[string]string // since, as it was sent
	shown map[string]int
	gone  map[string]bool
	in    []string // what the sink got
	wrong disagreements
}

// begins has the source be that of a run.
func (s *shop) begins(run *storyRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.asked, s.forms, s.shown, s.gone = run, map[string][]string{}, map[string]string{}, map[string]int{}, map[string]bool{}
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/in":
		var rows []json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&rows); err != nil {
			s.wrong.say("the sink got something else than rows: %v", err)
		}
		for _, row := range rows {
			s.in = append(s.in, normalJSON(row))
		}
		_, _ = w.Write([]byte("{}"))
	case "/later":
		if s.run.later {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("{}"))
	default:
		s.page(w, strings.TrimPrefix(r.URL.Path, "/src/"), r.URL.Query().Get("since"), r.URL.Query().Get("page"))
	}
}

func (s *shop) page(w http.ResponseWriter, name, since, asked string) {
	from, err := s.story.positionOf(since)
	if err != nil {
		s.wrong.say("since of %s: %v", name, err)
	}
	page := 1
	if asked != "" {
		page, _ = strconv.Atoi(asked)
	}
	s.asked[name] = append(s.asked[name], fmt.Sprintf("%d page %d", from, page))
	if s.forms[name] == "" {
		s.forms[name] = since
	}
	trouble, at := s.run.trouble[name], fmt.Sprint(name, page)
	switch {
	case s.run.gone[name] == page && !s.gone[name]:
		s.gone[name] = true
		w.WriteHeader(http.StatusGone)
		return
	case trouble.page == page && s.shown[at] < trouble.times:
		s.shown[at]++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	found := []any{}
	for _, r := range s.run.rows[name] {
		if s.story.answers(r, from) {
			found = append(found, s.story.object(r))
		}
	}
	first, last := min((page-1)*s.story.size, len(found)), min(page*s.story.size, len(found))
	answer := map[string]any{"rows": found[first:last]}
	if last < len(found) {
		answer["next"] = page + 1
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// told is a story that is run on a server.
type told struct {
	t    *testing.T
	s    *story
	env  *testenv.Env
	dir  string
	name string
	api  *shop
	url  string
}

// onServer runs a story, and gives what is not as predicted after the first run that disagrees.
func (s *story) onServer(t *testing.T) disagreements {
	t.Helper()
	api := &shop{story: s}
	server := httptest.NewServer(api)
	defer server.Close()
	env := testenv.Temporal(t)
	w := &told{t: t, s: s, env: env, dir: t.TempDir(), name: env.NewTaskQueue(), api: api, url: server.URL}
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{}, Directory: w.dir, SecretKeys: keys})
	works := host.NewWorker(env.Dial(t, client.Options{Logger: quiet{}}), catalogue, host.Options{TaskQueue: w.name, StopTimeout: time.Second})
	require.NoError(t, works.Start())
	defer func() {
		works.Stop()
		require.NoError(t, catalogue.Close())
	}()
	predicted := s.foretell()
	for i, run := range s.runs {
		forms := predicted.expectedForms(run)
		d := w.compare(predicted.next(run), predicted, forms, w.run(i, run))
		if len(d) > 0 {
			return append(disagreements{fmt.Sprintf("run %d:", i+1)}, d...)
		}
	}
	return nil
}

// expectedForms are how the watermark may be written that a run reads from.
func (p *predictedRuns) expectedForms(run *storyRun) map[string][]string {
	forms := map[string][]string{}
	for shop, state := range p.states {
		if state.moved && !run.full && p.lag == 0 {
			forms[shop] = state.forms
		}
	}
	return forms
}

// run makes one run.
func (w *told) run(i int, run *storyRun) workflows.Result {
	w.t.Helper()
	w.api.begins(run)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	input := workflows.Input{Name: "oracle.yaml", Source: w.s.source(w.name), Workload: expression.Of(map[string]any{"api": w.url})}
	if run.full {
		input.FullRefresh = []string{"fetch"}
	}
	id := fmt.Sprintf("%s-%d", w.name, i+1)
	started, err := w.env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: w.name}, workflows.PlaybookWorkflowName, input)
	require.NoError(w.t, err)
	result, err := ending.Of(ctx, started)
	require.NoError(w.t, ctx.Err(), "the run did not end:\n%s", w.s.describe())
	require.NoError(w.t, err)
	histories := testenv.Histories(w.t, w.env.Client(), id, started.GetRunID())
	require.NoError(w.t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1,
		testenv.StoredIn(testenv.PayloadStore(w.t))))
	return result
}

// compare gives the differences after a run.
func (w *told) compare(f ranOnce, p *predictedRuns, forms map[string][]string, result workflows.Result) disagreements {
	w.t.Helper()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	d := slices.Clone(w.api.wrong)
	if result.Error != nil && result.Error.Kind == "" {
		d.say("the playbook is not valid: %s", result.Error.Message)
		return d
	}
	d.equal("status", f.status, string(result.Status))
	kind := ""
	if result.Error != nil {
		kind = string(result.Error.Kind)
	}
	if f.status == "failed" {
		d.equal("kind of the error", f.kind, kind)
	} else {
		fetch, _ := value(w.t, result.Result).(map[string]any)["fetch"]
		if loop, ok := fetch.(map[string]any); ok {
			fetch = loop["results"]
		}
		d.equal("result", normal(f.result), fetch)
	}
	for _, name := range w.s.shopsOf() {
		d.equal("requests of "+name, f.asked[name], w.api.asked[name])
		if all := forms[name]; all != nil && !slices.Contains(all, w.api.forms[name]) {
			d.say("since of %s is %q, predicted was the form of a row: %q", name, w.api.forms[name], all)
		}
		d.equal("watermark of "+name, p.states[name].text(), w.watermark(name))
	}
	if w.s.table() {
		d.equal("rows of the table", sorted(p.lines()), sorted(w.rows()))
	}
	for _, name := range []string{"pages.jsonl", "orders.jsonl"} {
		predicted := p.files[strings.Replace(name, "orders.jsonl", "file", 1)]
		d.equal("rows of "+name, sorted(predicted), sorted(w.lines(name)))
	}
	d.equal("rows sent", sorted(p.files["http"]), sorted(w.api.in))
	if len(d) > 0 {
		d.say("the run: %s %s %s", result.Status, canonical(result.Error), strings.Join(result.Warnings, "\n  "))
	}
	return d
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

func (k *kept) text() string {
	if !k.moved {
		return "none"
	}
	return fmt.Sprint(int(k.watermark))
}

// lines are the predicted rows of the table.
func (p *predictedRuns) lines() (all []string) {
	for _, r := range p.stored {
		all = append(all, fmt.Sprintf("%d %v v%d", r.id, p.cursor(r.at, r.form), r.version))
	}
	return all
}

func (w *told) database() *sql.DB {
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db"))
	require.NoError(w.t, err)
	return db
}

func (w *told) rows() (all []string) {
	db := w.database()
	defer db.Close()
	found, err := db.QueryContext(w.t.Context(), "SELECT id, at, v FROM orders")
	require.NoError(w.t, err)
	defer found.Close()
	for found.Next() {
		var id, version int
		var at any
		require.NoError(w.t, found.Scan(&id, &at, &version))
		all = append(all, fmt.Sprintf("%d %v v%d", id, at, version))
	}
	require.NoError(w.t, found.Err())
	return all
}

// watermark is that of the state, wherever it is kept.
func (w *told) watermark(name string) string {
	w.t.Helper()
	state, group := w.s.stateName(w.name, name)
	text := w.stored(state)
	if !w.s.table() {
		answer, err := w.env.Client().QueryWorkflow(w.t.Context(), incremental.WorkflowID(group), "", incremental.StatesQuery, incremental.NameRange{Prefix: state})
		require.NoError(w.t, err)
		var states []incremental.State
		require.NoError(w.t, answer.Get(&states))
		if len(states) > 0 {
			text = states[0].Watermark.Text()
		}
	}
	if text == "" {
		return "none"
	}
	at, err := w.s.positionOf(text)
	require.NoError(w.t, err)
	return fmt.Sprint(int(at))
}

// stored is the watermark that is kept beside the rows, "" for none.
func (w *told) stored(state string) string {
	if !w.s.table() {
		return ""
	}
	db := w.database()
	defer db.Close()
	var text sql.NullString
	if err := db.QueryRowContext(w.t.Context(), "SELECT watermark FROM reprise_state WHERE name = ?", state).Scan(&text); err != nil {
		require.ErrorContains(w.t, err, "no rows")
	}
	return plainJSON(text.String)
}

// plainJSON is a text or number without what JSON writes around it.
func plainJSON(text string) string { return strings.Trim(text, `"`) }

// lines are those of a file.
func (w *told) lines(name string) (all []string) {
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w.t, err)
	for line := range strings.Lines(string(text)) {
		all = append(all, normalJSON([]byte(line)))
	}
	return all
}

// describe is the playbook, and what its source has.
func (s *story) describe() string {
	var b strings.Builder
	b.WriteString(s.source("oracle"))
	for i, run := range s.runs {
		fmt.Fprintf(&b, "# run %d: full %t, later fails %t\n", i+1, run.full, run.later)
		for _, shop := range s.shopsOf() {
			fmt.Fprintf(&b, "#   %s: 410 at page %d, 503 at page %d (%d times), %d rows a page:", shop, run.gone[shop], run.trouble[shop].page, run.trouble[shop].times, s.size)
			for _, r := range run.rows[shop] {
				fmt.Fprintf(&b, " %s", canonical(s.object(r)))
			}
			b.WriteString("\n")
		}
	}
	return b.String() + fmt.Sprintf("# alone: go test ./internal/test/oracle -run '^TestStories$' -oracle.seed=%d -oracle.stories=1", s.seed)
}
