package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

const (
	// runsPerPage is how many runs a page lists.
	runsPerPage = 25
	// callsOfRuns bounds the calls to the server for the list of runs. Without it a page with many runs would load the
	// server and take long. The next refresh shows what was left out, because it needs fewer calls for the rest.
	callsOfRuns = 10
	// callsPerPage bounds the calls of a page, besides listing, that are made at once.
	callsPerPage = 9
	// glanceTime is how long a worker has to respond about an open run, and glanceWait how long the list waits for
	// that: without a response it shows what the server lists, and the response with its next refresh.
	glanceTime = 2 * time.Second
	glanceWait = 150 * time.Millisecond
	// startTime is how long a run may take until a worker has it, before the list says that none has answered.
	startTime = 15 * time.Second
)

// spans are the periods in which runs may have started.
var spans = []struct {
	Value, Name string
	ago         time.Duration
}{
	{"", "any time", 0},
	{"1h", "1 hour", time.Hour},
	{"24h", "24 hours", 24 * time.Hour},
	{"7d", "7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", 30 * 24 * time.Hour},
}

// runsView is the content of the list of runs.
type runsView struct {
	Search, Playbook, Label, Status, Since, Ended, Doing string
	Person                                               bool
	Statuses                                             []interpreter.Status
	Spans                                                []option
	Rows                                                 []runRow
	Next                                                 string // address of the next page, "" for none
	First                                                string // of the first page, "" where this is it
	Filtered                                             bool
	Narrowed                                             bool   // by a filter of the form that is folded
	Chosen                                               string // the filters of links, in words
	Problem                                              string
	*overview
}

type option struct{ Value, Name string }

// runRow is a run in the list.
type runRow struct {
	Run      runs.Found
	Path     string
	Status   interpreter.Status
	Now      string
	NoWorker bool   // no worker responds
	Unknown  bool   // it has run for a while, and no worker has responded yet
	Late     string // by how much it is late
	Fault    fault
	IsUnread bool // of a failed run: its cause has not been read yet
	ByPerson bool // only a person can continue it
	Progress *progress
	Started  string
	Took     string
	Rows     rowsCell
	Needs    bool   // somebody: the row says why, and what to do next
	Next     []link // what to do, of a run that needs somebody
}

// Word describes the status of the run, or what holds it.
func (r *runRow) Word() string {
	switch {
	case r.NoWorker:
		return render.NoWorker
	case r.ByPerson:
		return render.NeedsPerson
	}
	return r.Status.DisplayWord()
}

// colour returns the status in whose colour the run is drawn.
func (r *runRow) colour() interpreter.Status {
	switch {
	case r.NoWorker:
		return interpreter.RetryPending
	case r.ByPerson:
		return interpreter.Awaiting
	}
	return r.Status
}

// progress is the progress of a run's loop.
type progress struct {
	Name                   string
	Completed, Failed, All int
	Open                   bool
}

func (s *Server) runsPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section, v.frame.Live = "Runs", "/", true
	query := r.URL.Query()
	shown := &runsView{
		Search: strings.TrimSpace(query.Get("q")), Playbook: query.Get("playbook"), Label: query.Get("label"), Status: query.Get("status"), Since: query.Get("since"),
		Ended: query.Get("ended"), Doing: query.Get("now"), Person: query.Get("person") != "", Statuses: interpreter.StatusesOf(interpreter.OfRun),
	}
	filter, err := shown.readFilter(v.frame.At, zoneOf(r))
	if err != nil {
		return err
	}
	token, err := s.pageToken(r)
	if err != nil {
		return err
	}
	isStart := !shown.Filtered && token == nil
	listed, err := s.listRuns(r, shown, filter, token, v.frame.At)
	if errors.Is(err, runs.ErrNoAttributes) {
		shown.Problem = "The server cannot filter runs by this: the namespace lacks search attributes. starter setup adds them."
		err = nil
	}
	if err != nil {
		return err
	}
	s.addRows(r.Context(), shown, listed.Runs, isStart, v)
	shown.setTiles(query, s.silences.countKinds(shown.overview, v.frame.At))
	next := ""
	if listed.Next != nil {
		next = s.nextPage(listed.Next)
	}
	shown.setPages(query, next)
	s.writePage(w, v, http.StatusOK, "runs", shown)
	return nil
}

// listRuns lists the runs of a page and reads its overview, at once where the page lists other runs than a tile counts.
func (s *Server) listRuns(r *http.Request, shown *runsView, filter runs.Filter, token []byte, now time.Time) (listed runs.Page, err error) {
	var group errgroup.Group
	kind := shown.tileKind()
	isStart := !shown.Filtered && token == nil
	group.Go(func() (err error) {
		if kind == "" {
			listed, err = s.Runs.Page(r.Context(), filter, runsPerPage, token)
		}
		return err
	})
	group.Go(func() (err error) {
		shown.overview, err = s.readOverview(r, now, isStart)
		return err
	})
	if err = group.Wait(); err != nil || kind == "" {
		return listed, err
	}
	rest, isOffset := bytes.CutPrefix(token, []byte(offsetToken))
	if inList := !shown.More || kind == nowLate || kind == nowNoWorker; isOffset || token == nil && inList {
		first, _ := strconv.Atoi(string(rest))
		return pageOfKind(s.silences.openOfKind(shown.overview, kind, now), first), nil
	}
	if listed, err = s.Runs.Page(r.Context(), filter, runsPerPage, token); err == nil {
		listed.Runs = lists.Filter(listed.Runs, func(run runs.Found) bool { return s.silences.kindOf(run, now) == kind })
	}
	return listed, err
}

// offsetToken begins the token of a page of open runs that the overview has; the index of its first run follows.
const offsetToken = "open:"

// pageOfKind returns one page of a list, from an index on.
func pageOfKind(all []runs.Found, first int) (page runs.Page) {
	page.Runs = all[min(first, len(all)):min(first+runsPerPage, len(all))]
	if next := first + runsPerPage; next < len(all) {
		page.Next = []byte(offsetToken + strconv.Itoa(next))
	}
	return page
}

// tileKind returns the kind of open runs that are listed, if the page lists what a tile counts; "" if it does not.
func (v *runsView) tileKind() string {
	if v.Narrowed || v.Search != "" || v.Ended != "" || v.Person && v.Doing != "" {
		return ""
	}
	if v.Person {
		return nowPerson
	}
	return v.Doing
}

// addRows describes the listed runs and, on the start page, the runs that need somebody.
func (s *Server) addRows(ctx context.Context, shown *runsView, listed []runs.Found, isStart bool, v *visit) {
	var needing []runs.Found
	if isStart {
		needing = shown.needingRuns(v.frame.At)
		listed = lists.Filter(listed, func(run runs.Found) bool { return !containsRun(needing, run) })
	}
	rows := s.describeRuns(ctx, slices.Concat(needing, listed), shown.open, len(needing), v.frame.At, callsOfRuns-1-shown.calls)
	shown.Rows = rows[len(needing):]
	if kind := shown.tileKind(); kind != "" && kind != nowLate { // workers have answered since they were listed, or have not
		shown.Rows = lists.Filter(shown.Rows, func(row runRow) bool { return s.silences.kindOf(row.Run, v.frame.At) == kind })
	}
	shown.Needs = s.needRows(rows[:len(needing)], v.person)
	shown.Stopped = s.silences.stoppedQueues(shown.open, v.frame.At)
}

// readFilter parses the filters.
func (v *runsView) readFilter(now time.Time, zone *time.Location) (runs.Filter, error) {
	filter := runs.Filter{Search: v.Search, Playbook: v.Playbook, Label: v.Label, NeedsPerson: v.Person}
	filter.Children = strings.Contains(v.Search, "/") // as of one that a step has started
	today, yesterday := dayStarts(now, zone)
	switch v.Ended {
	case "":
	case endedToday:
		filter.EndedSince, v.Chosen = today, "ended since midnight"
	case endedYesterday:
		filter.EndedSince, v.Chosen = yesterday, "ended since yesterday"
	default:
		return filter, &pageError{http.StatusBadRequest, "There is no such time."}
	}
	switch filter.Doing = v.Doing; filter.Doing {
	case "", runs.DoingWork, runs.DoingWait, nowLate, nowNoWorker:
		v.Chosen = cmp.Or(v.Chosen, strings.ReplaceAll(v.Doing, "-", " "))
	default:
		return filter, &pageError{http.StatusBadRequest, "There is no such filter."}
	}
	if v.Label != "" && !strings.Contains(v.Label, "=") {
		return filter, &pageError{http.StatusBadRequest, "A label is NAME=VALUE, such as team=sales."}
	}
	if v.Status != "" {
		filter.Status = interpreter.Status(v.Status)
		if !slices.Contains(v.Statuses, filter.Status) {
			return filter, &pageError{http.StatusBadRequest, "There is no such status."}
		}
	}
	for _, span := range spans {
		v.Spans = append(v.Spans, option{span.Value, span.Name})
		if span.Value == v.Since && span.ago > 0 {
			filter.Since = now.Add(-span.ago)
		}
	}
	v.Narrowed = v.Playbook != "" || v.Label != "" || v.Status != "" && v.Ended == "" || v.Since != ""
	v.Filtered = v.Narrowed || v.Status != "" || v.Person || v.Search != "" || v.Chosen != ""
	v.chooseWords()
	return filter, nil
}

// chooseWords describes which runs are listed.
func (v *runsView) chooseWords() {
	var words []string
	if v.Search != "" {
		words = append(words, fmt.Sprintf("matching %q", v.Search))
	}
	if v.Status != "" {
		words = append(words, interpreter.Status(v.Status).DisplayWord())
	}
	if v.Person {
		words = append(words, "need a person")
	}
	if v.Chosen != "" {
		words = append(words, v.Chosen)
	}
	v.Chosen = strings.Join(words, ", ")
}

// setPages sets the links to other pages; next is "" for the last page.
func (v *runsView) setPages(query url.Values, next string) {
	at := func(token string) string {
		params := url.Values{}
		for name, values := range query {
			if name != "page" && values[0] != "" {
				params.Set(name, values[0])
			}
		}
		if token != "" {
			params.Set("page", token)
		}
		return (&url.URL{Path: "/", RawQuery: params.Encode()}).String()
	}
	if next != "" {
		v.Next = at(next)
	}
	if query.Get("page") != "" {
		v.First = at("")
	}
}

// describeRuns describes runs. It queries some of the open ones, within a limit of calls to the server. others are open runs whose
// workers are looked for too. The first ones of the list need somebody: what those failed with is read before anything else.
func (s *Server) describeRuns(ctx context.Context, list, others []runs.Found, first int, now time.Time, calls int) []runRow {
	rows := make([]runRow, len(list))
	ids := map[string]int{}
	var open []*runRow
	var group errgroup.Group
	group.SetLimit(callsPerPage)
	for i, run := range list {
		ids[run.WorkflowID]++
		end := cmp.Or(run.EndedAt, now)
		rows[i] = runRow{
			Run: run, Path: runPath(run.WorkflowID), Status: run.Status, Started: agoText(run.StartedAt, now), Took: terminal.Duration(end.Sub(run.StartedAt)),
			Now: listedNow(run, now), Late: lateText(run, now), Rows: newRowsCell(run.Rows),
		}
		if run.Ended() && ids[run.WorkflowID] > 1 {
			rows[i].Path += "?run=" + url.QueryEscape(run.LastRunID())
		}
		rows[i].ByPerson = run.Status == interpreter.RetryPending && run.NeedsPerson()
		if !run.Ended() && run.Queue == nil {
			open = append(open, &rows[i])
		}
	}
	for _, row := range s.failedRows(rows, first, &calls, len(open) > 0) {
		group.Go(func() error {
			row.Fault = s.faults.faultOf(ctx, s.Runs, row.Run)
			row.IsUnread = !s.faults.isKnown(row.Run) // the server did not answer
			return nil
		})
	}
	checks := len(open)+len(others) > 0 && calls > 1
	if checks {
		calls-- // for checkWorkers
	}
	queried, rest := splitByAge(open, max(0, calls), func(row *runRow) time.Time { return s.glanced.storedAt(row.Run.LastRunID()) })
	s.addGlances(ctx, queried, now, calls)
	for _, row := range rest {
		if last := s.glanced.recentStatus(row.Run.LastRunID(), now); last != nil && last.Status == row.Status {
			row.showStatus(last, now)
		}
	}
	_ = group.Wait()
	if checks {
		unheard := lists.Filter(open, func(row *runRow) bool { return row.Unknown }) // before those that are not queried
		others = slices.Concat(lists.Map(unheard, func(row *runRow) runs.Found { return row.Run }), others)
		s.checkWorkers(ctx, others, now)
	}
	s.silences.spreadSilence(rows, now)
	return rows
}

// checkWorkers finds out whether workers poll for one of the open runs whose workers have not responded lately, with at most one
// call to the server. Each page checks others.
func (s *Server) checkWorkers(ctx context.Context, open []runs.Found, now time.Time) {
	run, found := s.silences.nextUnheard(open, now)
	if !found {
		return
	}
	s.silences.changeHearing(run, now, func(h *hearing) { h.checked = now })
	if workers, err := s.Runs.WorkersOf(ctx, run); err == nil && !workers.HavePolled(now) {
		s.silences.recordSilence(run, now)
	}
}

// markUnserved marks last runs as having no worker whose workers do not respond. most bounds the task queues that are checked,
// each with a call to the server or a few.
func (s *Server) markUnserved(ctx context.Context, rows []*runRow, now time.Time, most int) {
	var list runs.List
	for _, row := range rows {
		switch known := slices.ContainsFunc(list.Runs, row.Run.HasWorkersOf); {
		case row.Run.Ended():
		case s.silences.hasSilence(row.Run, now):
			row.NoWorker = true
		case now.Sub(row.Run.StartedAt) <= startTime:
		case !known && most > 0:
			most--
			list.Runs = append(list.Runs, row.Run)
		}
	}
	reader := *s.Runs
	reader.Patience = glanceTime
	reader.FindUnpolled(ctx, &list, now)
	list.DescribeOpen(now)
	for _, run := range list.Runs {
		if run.HeldBy != runs.HeldByNoWorker {
			continue
		}
		s.silences.recordSilence(run, now)
		for _, row := range rows {
			row.NoWorker = row.NoWorker || !row.Run.Ended() && row.Run.HasWorkersOf(run)
		}
	}
}

// failedRows returns the rows of runs that failed, in whole or in part, whose cause is shown. To read a cause that is
// not known yet takes callsOfFault of the calls. The first rows may take all of them; of the others, if open runs are shown beside,
// causes take at most half. Rows for which no call is left say so.
func (s *Server) failedRows(rows []runRow, first int, calls *int, beside bool) []*runRow {
	var failed []*runRow
	most := 0
	for i := range rows {
		row := &rows[i]
		switch {
		case i < first:
			most = *calls
		case i == first:
			if most = *calls; beside {
				most = (most + 1) / 2
			}
		}
		if row.Status != interpreter.Failed && row.Status != interpreter.Partial {
			continue
		}
		if !s.faults.isKnown(row.Run) {
			of := callsOfFault(row.Run)
			if most < of {
				row.IsUnread = true
				continue
			}
			most -= of
			*calls -= of
		}
		failed = append(failed, row)
	}
	return failed
}

// spreadSilence marks the open rows whose workers do not respond, those that were not queried too.
func (s *silences) spreadSilence(rows []runRow, now time.Time) {
	for i := range rows {
		if row := &rows[i]; !row.Run.Ended() && s.hasSilence(row.Run, now) {
			row.NoWorker, row.Now = true, ""
		}
	}
}

// listedNow describes what an open run is doing, from the server's list alone.
func listedNow(run runs.Found, now time.Time) string {
	switch {
	case run.Queue != nil:
		return "under the concurrency key " + run.Queue.Name.Key
	case run.Status != interpreter.RetryPending || run.NextRetryAt.IsZero():
		return ""
	case !run.NextRetryAt.After(now):
		return "the next retry is due"
	}
	return "next retry in " + terminal.Duration(run.NextRetryAt.Sub(now).Round(time.Second))
}

// shareCalls distributes calls to the server over open runs: calls that other runs do not need go to running runs,
// and to those that wait to retry, since their loops need more.
func shareCalls(open []*runRow, most int) []int {
	calls, loops := make([]int, len(open)), 0
	for i, row := range open {
		if calls[i] = 1; row.mayLoop() {
			loops++
		}
	}
	for i, row := range open {
		if row.mayLoop() {
			calls[i] += max(0, most-len(open)) / loops
		}
	}
	return calls
}

// mayLoop reports whether the run may have a running or waiting loop.
func (r *runRow) mayLoop() bool {
	return r.Status == interpreter.Running || r.Status == interpreter.RetryPending
}

// addGlances adds what runs are doing, within a limit of calls to the server, for runs whose workers respond in time.
func (s *Server) addGlances(ctx context.Context, open []*runRow, now time.Time, calls int) {
	answers := make([]chan *runs.Status, len(open))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), glanceTime)
	var group sync.WaitGroup
	for i, calls := range shareCalls(open, calls) {
		run, answer := open[i].Run, make(chan *runs.Status, 1)
		answers[i] = answer
		group.Go(func() { answer <- s.addGlance(ctx, run, now, calls) })
	}
	go func() {
		group.Wait()
		cancel()
	}()
	late, stop := context.WithTimeout(ctx, glanceWait)
	defer stop()
	for i, row := range open {
		select {
		case status := <-answers[i]:
			row.showStatus(status, now)
		case <-late.Done():
			select {
			case status := <-answers[i]:
				row.showStatus(status, now)
			default:
				s.showLast(row, now)
			}
		}
	}
}

// showLast shows what a run without a response did recently, or that its workers have not responded about other runs
// either.
func (s *Server) showLast(row *runRow, now time.Time) {
	if last := s.glanced.recentStatus(row.Run.LastRunID(), now); last != nil {
		row.showStatus(last, now)
	} else if s.silences.hasSilence(row.Run, now) {
		row.showStatus(nil, now)
	} else if row.Status == interpreter.Running && now.Sub(row.Run.StartedAt) > startTime {
		row.Now, row.Unknown = "no worker has answered yet", true
	}
}

// addGlance returns what a run is doing; nil if its worker has not responded.
func (s *Server) addGlance(ctx context.Context, run runs.Found, now time.Time, calls int) *runs.Status {
	reader := *s.Runs
	reader.Patience = glanceTime
	status, err := reader.Glance(ctx, run, now, calls)
	if err != nil {
		s.silences.recordSilence(run, now)
		return nil
	}
	s.silences.noteAnswer(run, now, true)
	s.glanced.storeStatus(run.LastRunID(), status, now)
	return status
}

// showStatus adds what a run is doing; nil says that no worker responds.
func (r *runRow) showStatus(status *runs.Status, now time.Time) {
	if status == nil {
		r.Now, r.NoWorker = "", true
		return
	}
	if status.Late && r.Late == "" {
		r.Late = "late"
	}
	r.Status, r.Now = status.Status, render.NowText(status)
	r.ByPerson = status.Status == interpreter.RetryPending && status.HeldBy == runs.HeldByPerson
	for _, step := range status.Steps {
		switch loop := step.Loop; {
		case loop == nil, step.Status.Ended(), loop.Total == 0:
		case loop.Unknown == loop.Total: // the calls did not suffice to query it
			if status.Control.Paused {
				continue
			}
			r.Now = step.Step + ": " + terminal.Count(loop.Total, "iteration")
			if listed := listedNow(r.Run, now); listed != "" {
				r.Now += ", " + listed
			}
		default:
			r.Progress = progressOf(step)
		}
	}
}

func progressOf(step runs.Step) *progress {
	return &progress{Name: step.Step, Completed: step.Loop.Success, Failed: step.Loop.Failed, All: step.Loop.Total, Open: step.Loop.Open}
}

// Text describes the progress in words.
func (p *progress) Text() string {
	return interpreter.LoopStats{Success: p.Completed, Failed: p.Failed, Total: p.All}.TextSoFar(p.Open)
}

// Good returns the percentage of completed iterations.
func (p *progress) Good() float64 { return sharePercent(p.Completed, p.All) }

// Bad returns the percentage of failed iterations.
func (p *progress) Bad() float64 { return sharePercent(p.Failed, p.All) }

func sharePercent(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// agoText formats how long ago a time was; "" for zero.
func agoText(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return terminal.Ago(at, now)
}
