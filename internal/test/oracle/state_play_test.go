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

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/workflows/protocol"
)

// shop answers the rows of runs.
type shop struct {
	story *story

	mu     sync.Mutex
	visits map[string]*visit // by the ID of the run
	order  []string          // whose requests for rows came, one after another
	in     []string          // what the sink got
	wrong  disagreements
}

// visit is what the source has for a run, and what the run has asked for.
type visit struct {
	run   *storyRun
	began bool
	asked map[string][]string
	forms map[string]string // since, as it was sent
	shown map[string]int
	gone  map[string]bool
	hold  *hold
	times []time.Time // of its requests for rows
}

// hold keeps the first request of a run without an answer.
type hold struct {
	once              sync.Once
	arrived, released chan struct{}
}

// expects has the source be that of a run, which may be held at its first request.
func (s *shop) expects(id string, run *storyRun, held bool) *visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &visit{run: run, asked: map[string][]string{}, forms: map[string]string{}, shown: map[string]int{}, gone: map[string]bool{}}
	if held {
		v.hold = &hold{arrived: make(chan struct{}), released: make(chan struct{})}
	}
	s.visits[id] = v
	return v
}

// waits keeps a request for rows for as long as its run is held.
func (v *visit) waits(ctx context.Context) {
	if v.hold == nil {
		return
	}
	v.hold.once.Do(func() { close(v.hold.arrived) })
	select {
	case <-v.hold.released:
	case <-ctx.Done():
	}
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Run")
	s.mu.Lock()
	v := s.visits[id]
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/src/") {
		s.mu.Lock()
		v.times = append(v.times, time.Now())
		s.mu.Unlock()
		v.waits(r.Context())
	}
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
	case "/begin":
		v.began = true
		_, _ = w.Write([]byte("{}"))
	case "/later":
		if v.run.later {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("{}"))
	default:
		s.order = append(s.order, id)
		s.page(w, v, strings.TrimPrefix(r.URL.Path, "/src/"), r.URL.Query().Get("since"), r.URL.Query().Get("page"))
	}
}

func (s *shop) page(w http.ResponseWriter, v *visit, name, since, asked string) {
	from, err := s.story.positionOf(since)
	if err != nil {
		s.wrong.say("since of %s: %v", name, err)
	}
	page := 1
	if asked != "" {
		page, _ = strconv.Atoi(asked)
	}
	v.asked[name] = append(v.asked[name], fmt.Sprintf("%d page %d", from, page))
	if v.forms[name] == "" {
		v.forms[name] = since
	}
	trouble, at := v.run.trouble[name], fmt.Sprint(name, page)
	switch {
	case v.run.gone[name] == page && !v.gone[name]:
		v.gone[name] = true
		w.WriteHeader(http.StatusGone)
		return
	case trouble.page == page && v.shown[at] < trouble.times:
		v.shown[at]++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	found, more := s.story.pageOf(v.run, name, from, page)
	rows := []any{}
	for _, r := range found {
		rows = append(rows, s.story.object(r))
	}
	answer := map[string]any{"rows": rows}
	if more {
		answer["next"] = page + 1
	}
	if s.story.token != "" {
		if token := s.story.tokenOf(v.run, name, found, more); token > 0 {
			answer["token"] = s.story.value(position(token), 0)
		}
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
	api := &shop{story: s, visits: map[string]*visit{}}
	server := httptest.NewServer(api)
	defer server.Close()
	env := testenv.Temporal(t)
	w := &told{t: t, s: s, env: env, dir: t.TempDir(), name: env.NewTaskQueue(), api: api, url: server.URL}
	defer startWorker(t, env, w.name, w.dir)()
	predicted := s.foretell()
	for i := 0; i < len(s.runs); {
		together := s.together(i)
		if d := w.runTogether(i, together, predicted); len(d) > 0 {
			return append(disagreements{fmt.Sprintf("run %d, %d at once:", i+1, len(together))}, d...)
		}
		i += len(together)
	}
	return nil
}

// together are a run and those that begin while it holds the state.
func (s *story) together(first int) []*storyRun {
	last := first + 1
	for last < len(s.runs) && s.runs[last].overlaps && s.conflict != "" {
		last++
	}
	return s.runs[first:last]
}

// runTogether makes runs of which the first holds the state while the others begin.
func (w *told) runTogether(first int, together []*storyRun, predicted *predictedRuns) disagreements {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var all []*startedRun
	for i, run := range together {
		forms := predicted.expectedForms(run)
		f := ranOnce{status: "failed", kind: "incremental", reason: "conflict", asked: map[string][]string{}}
		if i == 0 || w.s.conflict == "queue" {
			f = predicted.next(run)
		}
		p := w.start(ctx, first+i, run, i == 0 && len(together) > 1)
		p.predicted, p.forms = f, forms
		all = append(all, p)
		switch {
		case len(together) == 1:
		case i == 0:
			w.untilHeld(ctx, p)
		case w.s.conflict == "fail":
			w.ends(ctx, p)
		default:
			w.untilIdle(p)
		}
	}
	if h := all[0].visit.hold; h != nil {
		close(h.released)
	}
	var d disagreements
	for _, p := range all {
		w.ends(ctx, p)
		d = append(d, w.compare(p)...)
	}
	d = append(d, w.api.interleaved(all)...)
	return append(d, w.compareState(predicted)...)
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

// startedRun is a run that was started, with what is predicted of it. result is nil until it has ended.
type startedRun struct {
	id        string
	visit     *visit
	started   client.WorkflowRun
	result    *protocol.Result
	predicted ranOnce
	forms     map[string][]string
}

// start starts a run.
func (w *told) start(ctx context.Context, i int, run *storyRun, held bool) *startedRun {
	w.t.Helper()
	w.fillSource(run)
	p := &startedRun{id: fmt.Sprintf("%s-%d", w.name, i+1)}
	p.visit = w.api.expects(p.id, run, held)
	input := protocol.Input{Name: "oracle.yaml", Source: w.s.source(w.name), Workload: expression.Of(map[string]any{"api": w.url})}
	if run.full {
		input.FullRefresh = []string{"fetch"}
	}
	p.started = startRun(ctx, w.t, w.env, w.name, p.id, input)
	return p
}

// ends awaits the end of a run, and replays it.
func (w *told) ends(ctx context.Context, p *startedRun) {
	w.t.Helper()
	if p.result != nil {
		return
	}
	result, err := ending.WaitForResult(ctx, p.started)
	require.NoError(w.t, ctx.Err(), "the run did not end:\n%s", w.s.describe())
	require.NoError(w.t, err)
	p.result = &result
	replay(w.t, w.env, p.started)
}

// untilHeld waits until a run is held at its first request, or has ended without one.
func (w *told) untilHeld(ctx context.Context, p *startedRun) {
	w.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.started.Get(ctx, nil)
	}()
	select {
	case <-p.visit.hold.arrived:
	case <-ended:
		w.ends(ctx, p)
	}
}

// untilIdle waits until a run that has begun has nothing to do: it waits for the state.
func (w *told) untilIdle(p *startedRun) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		w.api.mu.Lock()
		began := p.visit.began
		w.api.mu.Unlock()
		return began && isIdle(w.t.Context(), w.env, p.started)
	}, patience, 20*time.Millisecond, "a run that waits for a state still does something: %s", p.id)
}

// interleaved are the runs that asked for rows while another one held the state.
func (s *shop) interleaved(all []*startedRun) (d disagreements) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := 0
	for _, id := range s.order {
		next := slices.IndexFunc(all, func(p *startedRun) bool { return p.id == id })
		if next < at {
			d.say("run %s asked for rows after a run that came later had: %q", id, s.order)
		}
		at = next
	}
	s.order = nil
	return d
}

// compare gives the differences of a run.
func (w *told) compare(p *startedRun) (d disagreements) {
	w.t.Helper()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	f, result := p.predicted, p.result
	if result.Error != nil && result.Error.Kind == "" {
		d.say("the playbook is not valid: %s", result.Error.Message)
		return d
	}
	d.equal("status", f.status, string(result.Status))
	kind, reason := "", ""
	if result.Error != nil {
		kind, reason = string(result.Error.Kind), result.Error.Type
	}
	if f.status == "failed" {
		d.equal("kind of the error", f.kind, kind)
		if f.reason != "" {
			d.equal("type of the error", f.reason, reason)
		}
	} else {
		fetch, _ := value(w.t, result.Result).(map[string]any)["fetch"]
		if loop, ok := fetch.(map[string]any); ok {
			fetch = loop["results"]
		}
		d.equal("result", normal(f.result), fetch)
	}
	d = append(d, p.visit.limited(w.s)...)
	for _, name := range w.s.shopsOf() {
		if w.s.sql {
			continue
		}
		d.equal("requests of "+name, f.asked[name], p.visit.asked[name])
		if all := p.forms[name]; all != nil && len(f.asked[name]) > 0 && !slices.Contains(all, p.visit.forms[name]) {
			d.say("since of %s is %q, predicted was the form of a row: %q", name, p.visit.forms[name], all)
		}
	}
	if len(d) > 0 {
		d.say("the run %s: %s %s %s", p.id, result.Status, canonical(result.Error), strings.Join(result.Warnings, "\n  "))
	}
	return d
}

// compareState gives the differences of what is kept after a run.
func (w *told) compareState(p *predictedRuns) disagreements {
	w.t.Helper()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	d := slices.Clone(w.api.wrong)
	for _, name := range w.s.shopsOf() {
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
	return d
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

func (k *predictedState) text() string {
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
