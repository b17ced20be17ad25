package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/internal/base/audit"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Library is a folder of playbooks.
type Library struct {
	// Folder is the name of the folder, and Other is a folder in it that has playbooks; "" if unknown.
	Folder, Other string
	// Names returns the sorted names of the playbooks.
	Names func() []string
	// Has reports whether there is a playbook with a name.
	Has func(name string) bool
	// Read returns a playbook with its problems.
	Read func(name string) (Book, error)
	// Start starts a run of a playbook with what a form says, and returns the run's ID.
	Start func(ctx context.Context, name string, with StartForm, said ChangedBy) (string, error)
	// Backfill starts a run for the missing partitions of a playbook, and returns the run's ID. Nil leaves the button
	// out.
	Backfill func(ctx context.Context, name string, said ChangedBy) (string, error)
}

// StartForm is what a person who starts a run on the page of its playbook has chosen.
type StartForm struct {
	// Workload is merged into the playbook's.
	Workload map[string]any
	// Partition is the key of the partition that the run is about; "" if the person chose none.
	Partition string
}

// Book is a playbook in the folder.
type Book struct {
	Playbook *playbook.Playbook // nil where it cannot be read
	Problems []string
	// Errors is how many of the problems prevent it from running; the others are warnings.
	Errors  int
	Invalid bool // it cannot run
}

// verdict describes the problems of the playbook in a few words.
func (b Book) verdict() string {
	warnings := len(b.Problems) - b.Errors
	switch {
	case b.Errors > 0:
		return terminal.Count(b.Errors, "problem")
	case warnings > 0:
		return "valid, " + terminal.Count(warnings, "warning")
	}
	return "valid"
}

const (
	// shownBooks bounds the listed playbooks.
	shownBooks = 100
	// inputPrefix begins the names of inputs.
	inputPrefix = "in."
	// lastRuns is how many runs of a playbook its page shows.
	lastRuns = 10
)

// bookRow is a playbook in the list.
type bookRow struct {
	Name, Path, Description, Verdict string
	Invalid                          bool
	Title                            string // the name of its metadata where that is another, else ""
	Last                             *runRow
	NoRun                            bool   // it has no run
	name                             string // its runs have it
	partitioned                      bool   // backfills run it
	// Gaps says which partitions are missing or have failed; "" if none are. It is set for playbooks with partitions.
	Gaps string
	book *playbook.Playbook // nil if it cannot be read
}

// gapsRead bounds the playbooks whose missing partitions the list counts, with one call to a worker each.
const gapsRead = 2

// addGaps adds which partitions of playbooks are missing. Where that is not read, the row leads to the calendar. It returns the
// number of calls that it takes.
func (s *Server) addGaps(ctx context.Context, rows []bookRow, now time.Time, group *errgroup.Group) (calls int) {
	for i := range rows {
		row := &rows[i]
		if !row.partitioned {
			continue
		}
		row.Gaps = "See its partitions"
		if calls == gapsRead {
			continue
		}
		calls++
		group.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, glanceTime)
			defer cancel()
			if gaps, err := backfill.ReadGaps(limited, s.Client, row.book, now); err == nil { // else the calendar says why
				row.Gaps = gapsText(gaps)
			}
			return nil
		})
	}
	return calls
}

// gapsText describes the gaps of a playbook: 2 days missing, 1 failed; "" for none.
func gapsText(gaps backfill.Gaps) string {
	var parts []string
	if gaps.Missing > 0 {
		parts = append(parts, terminal.Count(gaps.Missing, gaps.Unit)+" missing")
	}
	switch {
	case gaps.Failed > 0 && gaps.Missing > 0:
		parts = append(parts, fmt.Sprintf("%d failed", gaps.Failed))
	case gaps.Failed > 0:
		parts = append(parts, terminal.Count(gaps.Failed, gaps.Unit)+" failed")
	}
	return strings.Join(parts, ", ")
}

// addDescription adds what a playbook says about itself; book is nil if it cannot be read.
func (r *bookRow) addDescription(book *playbook.Playbook) {
	if book == nil {
		return
	}
	r.Description, r.name, r.partitioned, r.book = book.Description, book.Name, book.Partitions != nil, book
	if title := terminal.OneLine(book.Name); title != r.Name {
		r.Title = title
	}
}

const (
	// workersChecked is how many task queues of last runs are checked for workers on a page of playbooks, and callsOfWorkers how
	// many calls to the server that takes for workers that respond: most folders have one queue.
	workersChecked = 1
	callsOfWorkers = 2
)

// newestRuns is how many of the newest runs are searched for the last run of each playbook.
const newestRuns = 100

// addLastRuns adds the last run of each playbook: from the newest runs, and for other playbooks with a call for each,
// up to the limit for a page. It returns what could not be found out, "" if nothing.
func (s *Server) addLastRuns(ctx context.Context, rows []bookRow, now time.Time) string {
	page, err := s.Runs.Page(ctx, runs.Filter{}, newestRuns, nil)
	if err != nil {
		return "The last runs are not known: " + err.Error()
	}
	var group errgroup.Group
	left, calls := 0, callsPerPage-callsOfWorkers-s.addGaps(ctx, rows, now, &group)
	for i := range rows {
		row := &rows[i]
		at := slices.IndexFunc(page.Runs, func(run runs.Found) bool { return run.Playbook == row.name })
		switch {
		case row.name == "":
		case at >= 0:
			row.Last = newLastRun(page.Runs[at], now)
		case page.Next == nil && !row.partitioned: // these were all runs
			row.NoRun = true
		case calls == 0:
			left++
		default:
			calls--
			group.Go(func() error {
				own, err := s.Runs.Page(ctx, runs.Filter{Playbook: row.name, Children: row.partitioned}, 1, nil)
				if err == nil && len(own.Runs) > 0 {
					row.Last = newLastRun(own.Runs[0], now)
				}
				row.NoRun = err == nil && row.Last == nil
				return err
			})
		}
	}
	err = group.Wait()
	s.markUnserved(ctx, lists.Pick(rows, func(row bookRow) (*runRow, bool) { return row.Last, row.Last != nil }), now, workersChecked)
	if err != nil && !errors.Is(err, runs.ErrNoAttributes) {
		return "Some last runs are not known: " + err.Error()
	}
	if left > 0 {
		return fmt.Sprintf("The last runs of %s are not among the %d newest runs; their pages show them.", terminal.Count(left, "playbook"), newestRuns)
	}
	return ""
}

func newLastRun(run runs.Found, now time.Time) *runRow {
	return &runRow{
		Run: run, Path: runPath(run.WorkflowID), Status: run.Status, Started: agoText(run.StartedAt, now), Rows: newRowsCell(run.Rows), Late: lateText(run, now),
		ByPerson: run.Status == interpreter.RetryPending && run.NeedsPerson(),
	}
}

// input is a value of a workload in a form.
type input struct {
	ID, Key, Name, Type, Value string
	Rows                       int
}

func bookPath(name string) string { return "/playbooks/" + url.PathEscape(name) }

func (s *Server) playbooksPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Playbooks", "/playbooks"
	names := s.Library.Names()
	shown := struct {
		Rows []bookRow
		Left int
		Note string
		// Folder is the name of the folder, and Command the one that shows the playbooks of another; "" if unknown.
		Folder, Command string
		Other           string // another folder that has playbooks, "" for none
	}{Left: max(0, len(names)-shownBooks), Folder: s.Library.Folder, Other: s.Library.Other}
	if s.StartedWith != "" {
		shown.Command = s.StartedWith + " --playbooks " + terminal.ShellWord(cmp.Or(s.Library.Other, "FOLDER"))
	}
	for _, name := range names[:min(len(names), shownBooks)] {
		row := bookRow{Name: name, Path: bookPath(name)}
		if book, err := s.Library.Read(name); err != nil {
			row.Verdict, row.Invalid = "cannot be read", true
		} else {
			row.Verdict, row.Invalid = book.verdict(), book.Invalid
			row.addDescription(book.Playbook)
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Note = s.addLastRuns(r.Context(), shown.Rows, v.frame.At)
	s.writePage(w, v, http.StatusOK, "playbooks", shown)
	return nil
}

// readBook reads the playbook of a request.
func (s *Server) readBook(r *http.Request) (string, Book, error) {
	name := r.PathValue("name")
	if !s.Library.Has(name) {
		return name, Book{}, &pageError{http.StatusNotFound, "There is no such playbook in the folder."}
	}
	book, err := s.Library.Read(name)
	return name, book, err
}

// bookView is the content of a playbook's page.
type bookView struct {
	Name, Description, Path string
	File                    string // where Name is that of metadata, "" where it is that of the file
	Problems                []string
	Errors                  int // among them; the others are warnings
	Invalid                 bool
	Graph                   *graphView
	Inputs                  []input
	Partition               *partitionInput // nil for a playbook without partitions
	CanStart                bool
	Fault                   string
	Runs                    []*runRow
	Bars                    *barsView // nil for fewer than two runs
	Rows                    *rowsView // of the run RowsOf, nil where none has said it
	RowsOf                  string
	Fresh                   *freshness // nil where no run has completed lately
	Partitions              *calendar  // nil for a playbook without
}

func (s *Server) playbookPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	name, book, err := s.readBook(r)
	if err != nil {
		return err
	}
	return s.showBook(w, r, v, name, book, nil, "")
}

// showBook shows a playbook with typed values, and what is wrong with them.
func (s *Server) showBook(w http.ResponseWriter, r *http.Request, v *visit, name string, book Book, typed url.Values, fault string) error {
	shown := &bookView{
		Name: name, Path: bookPath(name), Problems: book.Problems, Errors: book.Errors, Invalid: book.Invalid, Fault: fault, CanStart: v.person.Operator && !book.Invalid,
	}
	if book.Playbook != nil {
		shown.Description = book.Playbook.Description
		if own := terminal.OneLine(book.Playbook.Name); own != "" && own != name {
			shown.Name, shown.File = own, name+".yaml"
		}
		shown.Graph = drawnGraph(book.Playbook, nil, nil)
		shown.Inputs = inputsOf(book.Playbook, typed)
		shown.Partition = partitionInputOf(book.Playbook, typed, v.frame.At)
		listed, err := s.Runs.Page(r.Context(), runs.Filter{Playbook: book.Playbook.Name, Children: book.Playbook.Partitions != nil}, shownBars, nil)
		if err != nil && !errors.Is(err, runs.ErrNoAttributes) {
			return err
		}
		shown.Rows, shown.RowsOf = s.lastRows(r.Context(), listed.Runs, v.frame.At)
		shown.Fresh = s.freshOf(r.Context(), book.Playbook, listed.Runs, v.frame.At)
		shown.Partitions = s.calendarOf(r.Context(), book.Playbook, listed.Runs, v.person, v.frame.At)
		rows := lists.Map(listed.Runs, func(run runs.Found) *runRow { return newLastRun(run, v.frame.At) })
		s.markUnserved(r.Context(), rows, v.frame.At, workersChecked)
		shown.Runs, shown.Bars = rows[:min(len(rows), lastRuns)], newBars(rows, v.frame.At)
	}
	status := http.StatusOK
	if fault != "" {
		status = http.StatusUnprocessableEntity
	}
	v.frame.Title, v.frame.Section = shown.Name, "/playbooks"
	s.writePage(w, v, status, "playbook", shown)
	return nil
}

// inputsOf returns the inputs for the values of a workload. Values of keys whose names suggest secrets are not shown.
func inputsOf(book *playbook.Playbook, typed url.Values) []input {
	hidden, _ := render.MaskSecrets(book.Workload).(map[string]any)
	var all []input
	for i, key := range playbook.SortedKeys(book.Workload) {
		value := book.Workload[key]
		one := input{ID: fmt.Sprintf("input-%d", i), Key: key, Name: inputPrefix + key, Type: "text", Value: inputText(value)}
		switch value.(type) {
		case bool:
			one.Type = "boolean"
		case map[string]any, []any:
			one.Type, one.Rows = "long", min(8, 1+strings.Count(one.Value, "\n"))
		}
		if text, isText := value.(string); isText && hidden[key] != text {
			one.Type, one.Value = "secret", ""
		}
		if typed != nil && one.Type != "secret" {
			one.Value = typed.Get(one.Name)
		}
		all = append(all, one)
	}
	return all
}

// inputText returns a value for an input field: a text unchanged, others as JSON.
func inputText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case nil:
		return ""
	case map[string]any, []any:
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return ""
		}
		return string(text)
	}
	return expression.Text(value)
}

// readInputs returns the typed values that differ from the playbook's workload.
func readInputs(book *playbook.Playbook, typed url.Values) (map[string]any, error) {
	workload := map[string]any{}
	for _, key := range playbook.SortedKeys(book.Workload) {
		was, text := book.Workload[key], strings.ReplaceAll(typed.Get(inputPrefix+key), "\r\n", "\n")
		switch was := was.(type) {
		case bool:
			if now := text == "true"; now != was {
				workload[key] = now
			}
			continue
		case string:
			hidden, _ := render.MaskSecrets(map[string]any{key: was}).(map[string]any)
			if secret := hidden[key] != was; text != was && (!secret || text != "") {
				workload[key] = text
			}
			continue
		}
		if text == inputText(was) {
			continue
		}
		value, err := expression.Decode([]byte(text))
		switch {
		case err == nil:
			workload[key] = value
		case was == nil:
			workload[key] = text
		default:
			return nil, fmt.Errorf("%s: %q is not JSON; a text needs double quotes", key, terminal.Shorten(text, 60))
		}
	}
	return workload, nil
}

// startRun starts a run of a playbook with the values of a form.
func (s *Server) startRun(w http.ResponseWriter, r *http.Request, v *visit) error {
	name, book, err := s.readBook(r)
	if err != nil {
		return err
	}
	if book.Playbook == nil || book.Invalid {
		return &pageError{http.StatusConflict, "The playbook has problems, so it cannot be run."}
	}
	workload, err := readInputs(book.Playbook, r.PostForm)
	id := ""
	if err == nil {
		err = s.changes.make(v, audit.Start, audit.ActionTarget{Playbook: name}, func(target *audit.ActionTarget) (audit.ActionOutcome, error) {
			var failed error
			with := StartForm{Workload: workload, Partition: strings.TrimSpace(r.PostForm.Get(partitionField))}
			id, failed = s.Library.Start(r.Context(), name, with, ChangedBy{By: v.person.Name, Reason: strings.TrimSpace(r.PostForm.Get("reason"))})
			target.Run = id
			return audit.Done, failed
		})
	}
	if _, unlogged := errors.AsType[*pageError](err); unlogged {
		return err
	}
	if err != nil {
		return s.showBook(w, r, v, name, book, r.PostForm, toSentence(terminal.Shorten(err.Error(), 500)))
	}
	s.redirectTo(w, r, v, runPath(id), flash{Text: "The run has started."})
	return nil
}
