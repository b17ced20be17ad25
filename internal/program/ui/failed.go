package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// failedView has the failed iterations of runs, grouped by cause.
type failedView struct {
	Search string
	Run    string // the workflow ID of the run whose iterations alone are shown, "" for those of all runs
	All    bool   // those that have succeeded since are shown too
	Groups []failedGroup
	Next   string
	Other  string // address of the page with, or without, those that have succeeded since
	Later  bool   // this is not the first page
	Notes  []string
}

// failedGroup has the failed iterations with one cause.
type failedGroup struct {
	Error string
	Like  string // the message of one of them, "" where Error has it
	Body  render.Excerpt
	// Child is a child run that failed, "" for none, and ChildTitle by what people know it.
	Child, ChildTitle string
	ID                string
	Count             int
	Runs              []*failedRun
	index             map[string]*failedRun
	first             *interpreter.ErrorObject // the failure that Body and Child are of
}

// failedRun is a run with iterations that failed for one cause.
type failedRun struct {
	Run      runs.Found
	Step     string
	Indexes  []failedIndex
	More     int // iterations that are not named
	Count    int
	Open     int          // of all causes and steps of the run
	Again    []runs.Found // that have run them again
	CanAgain bool
}

// failedIndex is a failed iteration.
type failedIndex struct {
	Index int
	Path  string
	// Partition is the partition that an iteration of a backfill is for; "" for others.
	Partition string
}

const (
	// shownIndexes bounds the iterations that are listed by index.
	shownIndexes = 8
	// shownMessage bounds the message of one of the iterations of a group, in characters.
	shownMessage = 200
	// shownChildren bounds the groups for which a child run is read, with two calls to the server each.
	shownChildren = 10
	// mostOpenSets bounds the runs whose open iterations are cached between page loads: the server lives as long as
	// its worker.
	mostOpenSets = 500
)

// letterKey identifies an iteration of a run.
type letterKey struct {
	step         string
	visit, index int
}

// openSets caches which failed iterations of runs are unresolved. The key includes the reprocesses, since only these
// change it.
type openSets struct {
	known *lru.Cache[string, map[letterKey]bool]
}

func newOpenSets() openSets {
	known, err := lru.New[string, map[letterKey]bool](mostOpenSets)
	if err != nil {
		panic(err) // for a size below 1 alone
	}
	return openSets{known}
}

// openOf returns the unresolved iterations of a run; nil if all failed iterations are unresolved.
func (o openSets) openOf(ctx context.Context, reader *runs.Reader, run runs.Found, again []runs.Found) (map[letterKey]bool, error) {
	if len(again) == 0 {
		return nil, nil //nolint:nilnil // as said
	}
	key, ended := run.LastRunID(), true
	for _, other := range again {
		key += " " + other.LastRunID()
		ended = ended && other.Ended()
	}
	if open, found := o.known.Get(key); found && ended {
		return open, nil
	}
	chain, err := (&deadletter.Reader{Reader: *reader}).Chain(ctx, run.WorkflowID, run.RunID)
	if err != nil {
		return nil, err
	}
	open := map[letterKey]bool{}
	for _, letter := range chain.Select(deadletter.Filter{}) {
		open[letterKey{letter.Step, letter.Visit, letter.Index}] = true
	}
	if ended {
		o.known.Add(key, open)
	}
	return open, nil
}

func (s *Server) failedPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Failed iterations", "/failed"
	token, err := s.pageToken(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	shown := &failedView{Later: len(token) > 0, Search: strings.TrimSpace(query.Get("q")), All: query.Get("all") != "", Run: query.Get("run")}
	page, err := s.pageOfFailed(r.Context(), shown.Run, token)
	if errors.Is(err, runs.ErrNoAttributes) {
		shown.Notes = append(shown.Notes, "The server cannot find failed iterations: the namespace lacks search attributes. starter setup adds them.")
		err = nil
	}
	if err != nil {
		return err
	}
	again, err := s.Runs.Reprocesses(r.Context(), page.Runs)
	if err != nil && !errors.Is(err, runs.ErrNoAttributes) {
		return err
	}
	for _, of := range s.failedOf(r.Context(), page.Runs, again, v) {
		if of.status == nil {
			shown.Notes = append(shown.Notes, "The failed iterations of "+of.run.WorkflowID+" cannot be read.")
			continue
		}
		shown.addRun(of, again[of.run.WorkflowID], s.Reprocess != nil && v.person.Operator)
	}
	shown.sortGroups()
	readChildren(r.Context(), s.Runs, shown.Groups)
	shown.setLinks(query, page.Next, s.nextPage)
	s.writePage(w, v, http.StatusOK, "failed", shown)
	return nil
}

// failedPath returns the path of the page with the failed iterations of a run.
func failedPath(run string) string { return "/failed?" + url.Values{"run": {run}}.Encode() }

// pageOfFailed lists runs with failed iterations, or finds the run with a workflow ID.
func (s *Server) pageOfFailed(ctx context.Context, run string, token []byte) (runs.Page, error) {
	if run == "" {
		return s.Runs.Page(ctx, runs.Filter{WithFailed: true}, callsPerPage-1, token)
	}
	found, err := s.Runs.Find(ctx, run, "")
	if errors.Is(err, runs.ErrNotFound) || errors.As(err, new(*runs.AmbiguousError)) {
		return runs.Page{}, &pageError{http.StatusNotFound, "There is no run " + run + "."}
	}
	return runs.Page{Runs: []runs.Found{found}}, err
}

// setLinks sets the links to other pages.
func (v *failedView) setLinks(query url.Values, next []byte, named func([]byte) string) {
	at := func(change func(url.Values)) string {
		values := url.Values{}
		for _, name := range []string{"q", "all", "run"} {
			if value := query.Get(name); value != "" {
				values.Set(name, value)
			}
		}
		change(values)
		return (&url.URL{Path: "/failed", RawQuery: values.Encode()}).String()
	}
	if next != nil {
		v.Next = at(func(values url.Values) { values.Set("page", named(next)) })
	}
	v.Other = at(func(values url.Values) {
		if values.Del("all"); !v.All {
			values.Set("all", "1")
		}
	})
}

// failedOf has the failed iterations of a run, and which of them are unresolved.
type failedOf struct {
	run    runs.Found
	status *runs.Status       // nil where it cannot be read
	open   map[letterKey]bool // nil says that all is
}

// failedOf reads the results of ended runs.
func (s *Server) failedOf(ctx context.Context, list []runs.Found, again map[string][]runs.Found, v *visit) []failedOf {
	all := make([]failedOf, len(list))
	var group errgroup.Group
	group.SetLimit(callsPerPage)
	for i, run := range list {
		group.Go(func() error {
			all[i].run = run
			status, err := s.Runs.Status(ctx, run, v.frame.At)
			if err != nil {
				return nil
			}
			for _, step := range status.Visits("") {
				s.Runs.AddIterations(ctx, status, step)
			}
			if all[i].open, err = s.openSets.openOf(ctx, s.Runs, run, again[run.WorkflowID]); err == nil {
				all[i].status = status
			}
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// addRun adds the failed iterations of a run to the groups with the same cause.
func (v *failedView) addRun(of failedOf, again []runs.Found, canAgain bool) {
	open := 0
	var added []*failedRun
	for _, step := range of.status.Steps {
		for _, iteration := range step.Iterations {
			isOpen := of.open == nil || of.open[letterKey{step.Step, step.Visit, iteration.Index}]
			if iteration.Error == nil || !isOpen && !v.All {
				continue
			}
			if isOpen {
				open++
			}
			if v.Search != "" && !matchesText(iteration, v.Search) {
				continue
			}
			row := v.groupOf(iteration).addIteration(of.run, step.Step, iteration, again, canAgain)
			if !slices.Contains(added, row) {
				added = append(added, row)
			}
		}
	}
	for _, row := range added {
		row.Open = open
		row.CanAgain = row.CanAgain && open > 0
	}
}

// matchesText reports whether the error or the element of an iteration contains a text.
func matchesText(iteration runs.Iteration, text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(iteration.Error.Message), text) || strings.Contains(strings.ToLower(render.FormatElement(render.MaskSecrets(iteration.Element.Data))), text) ||
		strings.Contains(strings.ToLower(render.ResponseBody(iteration.Error).Text()), text)
}

// groupOf returns the group for the cause of an iteration.
func (v *failedView) groupOf(iteration runs.Iteration) *failedGroup {
	text := render.CauseText(iteration.Error)
	for i := range v.Groups {
		if v.Groups[i].Error == text {
			return &v.Groups[i]
		}
	}
	group := failedGroup{Error: text, index: map[string]*failedRun{}, Body: render.ResponseBody(iteration.Error), first: iteration.Error, ID: fmt.Sprintf("body-%d", len(v.Groups))}
	message := iteration.Error.Message
	if _, cause := iteration.Error.FailedRun(); cause != "" { // the run is linked
		message = cause
	}
	if message = terminal.Shorten(message, shownMessage); message != text {
		group.Like = message
	}
	v.Groups = append(v.Groups, group)
	return &v.Groups[len(v.Groups)-1]
}

// readChildren reads with what child runs failed, for the largest groups of iterations that started one.
func readChildren(ctx context.Context, reader *runs.Reader, groups []failedGroup) {
	read := ending.ChildReader(ctx, reader)
	var all errgroup.Group
	all.SetLimit(callsPerPage)
	for i := range groups[:min(len(groups), shownChildren)] {
		group := &groups[i]
		if group.Child, _ = group.first.FailedRun(); group.Child == "" {
			continue
		}
		group.ChildTitle = group.Child
		all.Go(func() error {
			cause := render.EndedRun{Result: protocol.Result{Error: group.first}, ReadChild: read}.Cause()
			group.Child, group.ChildTitle, group.Body = cause.Run, cause.RunTitle, cause.Body
			return nil
		})
	}
	_ = all.Wait()
}

// sortGroups sorts the groups, largest first, and lists their iterations.
func (v *failedView) sortGroups() {
	for _, group := range v.Groups {
		for _, run := range group.Runs {
			slices.SortFunc(run.Indexes, func(x, y failedIndex) int { return cmp.Compare(x.Index, y.Index) })
			run.More = max(0, len(run.Indexes)-shownIndexes)
			run.Indexes = run.Indexes[:len(run.Indexes)-run.More]
		}
	}
	slices.SortFunc(v.Groups, func(x, y failedGroup) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Error, y.Error))
	})
}

func (g *failedGroup) addIteration(run runs.Found, step string, iteration runs.Iteration, again []runs.Found, canAgain bool) *failedRun {
	g.Count++
	key := run.WorkflowID + "\n" + run.RunID + "\n" + step
	of := g.index[key]
	if of == nil {
		of = &failedRun{Run: run, Step: step, Again: again, CanAgain: canAgain && run.Ended()}
		g.index[key] = of
		g.Runs = append(g.Runs, of)
	}
	of.Count++
	failed := failedIndex{Index: iteration.Index, Path: eventsPath(run.WorkflowID, step, &iteration.Index)}
	if strings.HasSuffix(run.Playbook, backfill.Suffix) {
		failed.Partition = expression.Text(iteration.Element.Data)
	}
	of.Indexes = append(of.Indexes, failed)
	return of
}
