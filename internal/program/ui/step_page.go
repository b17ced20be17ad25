package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// iterationsPerPage is how many iterations a page lists.
const iterationsPerPage = 50

// stepView is the content of a step's page.
type stepView struct {
	Run        runs.Found
	Name, Path string
	Visits     []stepRow
	Iterations []iterationRow
	HasLoop    bool
	Total      int // iterations that the filter takes
	Left       int // that were not read
	Filter     string
	Statuses   []interpreter.Status
	Previous   string
	Next       string
	Notes      []string
	Actions    []action
	Names      runNames
	Runs       string // list of the runs that the step has started, "" for a step that starts none
}

// iterationRow is an iteration in the list.
type iterationRow struct {
	Index   int
	Element string // "" where it is not known
	Status  interpreter.Status
	// ByPerson is set if only a person can continue it.
	ByPerson bool
	Now      string
	Error    string
	Child    string
	Failed   string // the child run with which it failed, "" for none
	Events   string // address of its events
	Again    string // address of the page that runs it again, "" where it cannot be
}

func (s *Server) stepPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	name := r.PathValue("step")
	status, err := s.readStatus(r.Context(), found, v.frame.At)
	if err != nil {
		return err
	}
	visits := status.Visits(name)
	if name == "" || len(visits) == 0 {
		return &pageError{http.StatusNotFound, "The run has no step " + name + "."}
	}
	shown := &stepView{
		Run: found, Name: name, Path: stepPath(found.WorkflowID, name), Filter: r.URL.Query().Get("status"),
		Statuses: interpreter.StatusesOf(interpreter.OfIteration),
	}
	var all []iterationRow
	for _, visit := range visits {
		row := newStepRow(status, *visit, nil)
		row.Rows = newRowsView(visit.Rows, status, []runs.Step{*visit})
		shown.Visits = append(shown.Visits, row)
		if visit.Loop == nil {
			continue
		}
		shown.HasLoop = true
		s.Runs.AddIterations(r.Context(), status, visit)
		shown.Left += visit.Left
		all = append(all, shown.filterIterations(visit, status)...)
	}
	shown.cutPage(all, r.URL.Query())
	shown.Names = newRunNames(r.Context(), s.Runs, found)
	if book, err := s.Runs.Playbook(r.Context(), found); err == nil && startsRuns(book, name) {
		shown.Runs = runsOfStep(found.WorkflowID, name)
	}
	canAgain := found.Ended() && found.Origin == "" && s.Reprocess != nil && v.person.Operator
	for i := range shown.Iterations {
		row := &shown.Iterations[i]
		row.Events = eventsPath(found.WorkflowID, name, &row.Index)
		if canAgain && row.Status == interpreter.Failed {
			row.Again = runPath(found.WorkflowID) + "/confirm?" +
				url.Values{"command": {reprocess}, "step": {name}, "index": {strconv.Itoa(row.Index)}, "run": {found.LastRunID()}}.Encode()
		}
	}
	shown.Notes = status.Notes
	shown.Actions = s.stepActions(status, visits[len(visits)-1], v.person)
	v.frame.Title, v.frame.Section, v.frame.Live = name+" · "+render.RunTitle(found), "/", !found.Ended()
	s.writePage(w, v, http.StatusOK, "step", shown)
	return nil
}

// startsRuns reports whether a step of a playbook runs playbooks.
func startsRuns(book *playbook.Playbook, name string) bool {
	step := book.Step(name)
	if step == nil || step.Action == nil {
		return false
	}
	tool, _ := step.Action.ToolName()
	return tool == playbook.PlaybookTool
}

// filterIterations returns the iterations of a visit that the filter selects.
func (v *stepView) filterIterations(visit *runs.Step, status *runs.Status) []iterationRow {
	var rows []iterationRow
	for _, iteration := range visit.Iterations {
		if v.Filter != "" && string(iteration.Status) != v.Filter {
			continue
		}
		row := iterationRow{Index: iteration.Index, Status: iteration.Status, ByPerson: isByPerson(iteration.Item), Child: iteration.Child}
		row.Now = render.StepNow(runs.Step{Step: visit.Step, Item: iteration.Item}, status)
		if iteration.Error != nil && iteration.Status.Ended() {
			row.Error = terminal.Shorten(iteration.Error.Message, 300)
			row.Now = terminal.Count(iteration.Attempt, "attempt")
			if id, cause := iteration.Error.FailedRun(); cause != "" { // the run is linked
				row.Failed, row.Error = id, terminal.Shorten(cause, 300)
			}
			row.Element = render.FormatElement(render.MaskSecrets(iteration.Element.Data))
		}
		rows = append(rows, row)
	}
	return rows
}

// cutPage selects a page of the iterations.
func (v *stepView) cutPage(all []iterationRow, query url.Values) {
	from, _ := strconv.Atoi(query.Get("from"))
	from = min(max(0, from), max(0, len(all)-1))
	to := min(len(all), from+iterationsPerPage)
	v.Total, v.Iterations = len(all), all[from:to]
	at := func(from int) string {
		params := url.Values{"from": {strconv.Itoa(from)}}
		if v.Filter != "" {
			params.Set("status", v.Filter)
		}
		return v.Path + "?" + params.Encode()
	}
	if from > 0 {
		v.Previous = at(max(0, from-iterationsPerPage))
	}
	if to < len(all) {
		v.Next = at(to)
	}
}

// stepActions returns the buttons for a step.
func (s *Server) stepActions(status *runs.Status, step *runs.Step, person Person) []action {
	if !person.Operator || status.Ended() || step.Status.Ended() {
		return nil
	}
	var all []action
	if slices.Contains(status.Control.Steps, step.Step) {
		all = append(all, action{Command: steer.Resume, Name: "Resume step", First: true})
	} else {
		all = append(all, action{Command: steer.Pause, Name: "Pause step"})
	}
	if stepWaits(*step) {
		all = append(all, action{Command: steer.RetryNow, Name: "Retry now"}, action{Command: steer.Skip, Name: "Skip…", Bad: true})
	}
	return append(all, action{Command: steer.Set, Name: "Change speed"})
}

// logPage shows the last lines that the worker on this machine logged about a run.
func (s *Server) logPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	if s.Log == nil {
		return &pageError{http.StatusNotFound, "No worker logs where this page is served. Each worker has its own log."}
	}
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	const lines = 300
	shown := struct {
		Run   runs.Found
		Lines []string
		Most  int
	}{Run: found, Most: lines}
	if shown.Lines, err = s.Log(r.Context(), found, lines); err != nil {
		return err
	}
	v.frame.Title, v.frame.Section, v.frame.Live = "Log · "+render.RunTitle(found), "/", !found.Ended()
	s.writePage(w, v, http.StatusOK, "log", shown)
	return nil
}
