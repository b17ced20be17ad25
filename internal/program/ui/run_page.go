package ui

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/graph"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/serve"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

const (
	// shownGraph bounds the drawing of the steps, in bytes.
	shownGraph = 150 << 10
	// shownValue bounds the shown input and result, in bytes.
	shownValue = 12 << 10
	// shownLines bounds the shown lines of a playbook.
	shownLines = 600
	// shownSteps bounds the listed steps.
	shownSteps = 200
)

// runView is the content of a run's page.
type runView struct {
	Run         runs.Found
	Status      *runs.Status
	Verdict     string
	Where       string // it failed, "" for nowhere
	Fault       string
	Cause       *render.Cause // nil where nothing has failed
	Now         string
	Late        string // by how much it is late
	NoWorker    bool   // no worker responds
	ByPerson    bool   // only a person can continue it
	StartWorker string // the command that starts one, "" where one responds
	FailedPath  string // of the page of its failed iterations, "" where at most one has failed
	NeedsReason bool   // a button needs a reason on this page
	Steps       []stepRow
	Rows        *rowsView // nil where nothing was counted
	StepsLeft   int
	Awaited     []awaitedRow
	StartedBy   string
	Graph       *graphView
	Timeline    *timeline
	Input       string
	Result      string
	Cut         bool // the input, or the result, is longer
	Lines       []sourceLine
	LinesLeft   int
	Actions     []action
	Notes       []string
	Relations   []relation
	Warnings    []string // that say more than the failure does
	Temporal    string   // link into its UI
	HasLog      bool
	Commands    []string
}

// stepRow is a visit of a step in the list.
type stepRow struct {
	Name, Path, Tool string
	Status           interpreter.Status
	ByPerson         bool // only a person can continue it
	Now, Error       string
	Took             string
	Progress         *progress
	Child            string
	Rows             *rowsView // on the page of the step
}

// awaitedRow is an attempt that is answered from outside.
type awaitedRow struct {
	Name, Text string
	Question   string
	Command    string
	Answer     string // address of the page that answers it
}

// sourceLine is a line of a playbook.
type sourceLine struct {
	Number int
	Text   string
	Failed bool
}

// findRun returns the run of a request.
func (s *Server) findRun(r *http.Request) (runs.Found, error) {
	id, runID := r.PathValue("id"), r.FormValue("run")
	if len(id) > 1000 || len(runID) > 100 {
		return runs.Found{}, &pageError{http.StatusNotFound, "There is no such run."}
	}
	found, err := s.Runs.Find(r.Context(), id, runID)
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, runs.ErrNotFound), errors.As(err, new(*runs.AmbiguousError)):
		return found, &pageError{http.StatusNotFound, "There is no run " + id + "."}
	}
	return found, err
}

// readStatus reads the status of a run.
func (s *Server) readStatus(ctx context.Context, run runs.Found, now time.Time) (*runs.Status, error) {
	status, err := s.patientReader(run, now, 0).Status(ctx, run, now)
	if err == nil && !run.Ended() {
		s.silences.noteAnswer(run, now, !status.IsSilent())
	}
	return status, err
}

func (s *Server) runPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	shown := &runView{Run: found}
	var input protocol.Input
	var book *playbook.Playbook
	var result *protocol.Result
	var group errgroup.Group
	group.Go(func() (err error) {
		shown.Status, err = s.readStatus(r.Context(), found, v.frame.At)
		return err
	})
	group.Go(func() error {
		var unread error
		if input, unread = s.Runs.Input(r.Context(), found.WorkflowID, found.LastRunID()); unread == nil {
			book, unread = (&runs.Run{Input: input}).Book()
		}
		if unread != nil {
			shown.Notes = append(shown.Notes, "The playbook of the run cannot be read: "+unread.Error())
		}
		return nil
	})
	group.Go(func() error {
		result = s.readResult(r.Context(), found)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	shown.describeRun(v.frame.At, book)
	shown.setValues(input, result)
	marked := 0
	if result != nil {
		ended := render.EndedRun{WorkflowID: found.WorkflowID, Result: *result, Book: book, ReadChild: ending.ChildReader(r.Context(), s.Runs)}
		if shown.Cause = ended.Cause(); shown.Cause != nil {
			marked = shown.Cause.Marked
		}
	}
	if !found.Ended() {
		shown.Cause = render.WaitingCause(shown.Status)
	}
	if shown.Cause != nil { // which says it at length
		shown.Warnings = slices.DeleteFunc(shown.Warnings, func(warning string) bool { return strings.HasSuffix(warning, shown.Cause.Message) })
	}
	shown.drawRun(book, input.Source, input.Workload.Data, marked)
	shown.Actions = s.runActions(shown.Status, v.person)
	shown.NeedsReason = needsReason(shown.Actions)
	shown.Relations = s.relatedRuns(r.Context(), shown.Status)
	shown.HasLog = s.Log != nil
	if s.TemporalUI != nil && (s.Temporal == nil || v.person.Owner) {
		shown.Temporal = s.TemporalUI(found.WorkflowID, found.LastRunID())
	}
	v.frame.Title, v.frame.Section, v.frame.Live = render.RunTitle(found), "/", !found.Ended()
	s.writePage(w, v, http.StatusOK, "run", shown)
	return nil
}

// readResult returns the result of an ended run; nil if unknown.
func (s *Server) readResult(ctx context.Context, found runs.Found) *protocol.Result {
	if !found.Ended() {
		return nil
	}
	result, err := ending.WaitForResult(ctx, s.Client.GetWorkflow(ctx, found.WorkflowID, found.LastRunID()))
	if err != nil {
		return nil
	}
	return &result
}

// describeRun sets the texts that describe the run.
func (v *runView) describeRun(now time.Time, book *playbook.Playbook) {
	status := v.Status
	v.Verdict = verdictText(status, now)
	if status.Control.Paused || status.Queue != nil || status.Stalled != "" || len(status.Steps) == 0 { // else the steps say it
		v.Now = render.NowText(status)
	}
	v.Late, v.NoWorker, v.ByPerson = lateText(status.Found, now), status.HeldBy == runs.HeldByNoWorker, needsPerson(status)
	v.StartedBy = render.Attribution(status.Started)
	v.Notes = append(v.Notes, status.Notes...)
	if status.Error != nil {
		v.Fault = terminal.Shorten(status.Error.Message, 1000)
		v.Where = failedIn(status, book)
	}
	v.Rows = newRowsView(status.Rows, status, status.Steps)
	for _, step := range status.Steps[:min(len(status.Steps), shownSteps)] {
		row := newStepRow(status, step, book)
		if row.Error == terminal.Shorten(v.Fault, 300) {
			row.Error = "" // it is shown above
		}
		v.Steps = append(v.Steps, row)
		if step.Awaits != nil {
			v.Awaited = append(v.Awaited, awaitedText(status.WorkflowID, step.Step, nil, step.Awaits, now))
		}
		for _, below := range step.Awaited {
			v.Awaited = append(v.Awaited, awaitedText(cmp.Or(below.Run, status.WorkflowID), below.Step, below.Index, &below.AwaitedDetails, now))
		}
	}
	v.Warnings = render.GroupWarnings(status.FurtherWarnings)
	v.StepsLeft = len(status.Steps) - len(v.Steps)
	v.Commands = render.HelpCommands(status)
	if v.NoWorker && len(v.Commands) > 0 {
		v.StartWorker, v.Commands = v.Commands[0], v.Commands[1:]
	}
	if status.Ended() && status.DeadLetters > 1 {
		v.FailedPath = failedPath(status.WorkflowID)
	}
}

func awaitedText(id, step string, index *int, awaits *interpreter.AwaitedDetails, now time.Time) awaitedRow {
	to := interpreter.AnswerTo{Step: step, Index: index}
	question := render.DescribeProgress(awaits)
	if awaits.Approval != nil {
		question = serve.QuestionTitle(awaits.Approval)
	}
	return awaitedRow{
		Name: render.AttemptName(to), Text: render.DescribeAwaited(awaits, now), Question: question,
		Command: render.AnswerCommand(id, step, index, awaits), Answer: "/inbox?" + url.Values{"run": {id}}.Encode(),
	}
}

// verdictText describes the status of a run in a sentence.
func verdictText(status *runs.Status, now time.Time) string {
	since := terminal.Duration(cmp.Or(status.EndedAt, now).Sub(status.StartedAt))
	failed, all := 0, 0
	for _, step := range status.Steps {
		if step.Loop != nil {
			failed, all = failed+step.Loop.Failed, all+step.Loop.Total
		}
	}
	what := ""
	if failed > 0 {
		what = fmt.Sprintf("; %d of %s failed", failed, terminal.Count(all, "iteration"))
	}
	switch status.Status {
	case interpreter.Completed:
		return "Completed in " + since + what + broughtText(status) + "."
	case interpreter.Partial:
		return "Partial success in " + since + what + "."
	case interpreter.Failed:
		return "Failed after " + since + what + "."
	case interpreter.Cancelled:
		if status.Cancel != nil {
			what += "," + render.Attribution(*status.Cancel)
		}
		return "Cancelled after " + since + what + "."
	case interpreter.Skipped:
		return "Skipped: its concurrency key was taken."
	}
	for held, sentence := range map[string]string{
		runs.HeldByNoWorker: "No worker responds.", runs.HeldByStore: "The payload store fails.", runs.HeldByTask: "Workers cannot continue the run.",
	} {
		if status.HeldBy == held {
			return sentence + " The run started " + since + " ago."
		}
	}
	if status.Status == interpreter.Running {
		return "Running for " + since + what + "."
	}
	return openVerdict(status, now) + " The run started " + since + " ago" + what + "."
}

// openVerdict describes in a sentence what an open run is waiting for, and until when.
func openVerdict(status *runs.Status, now time.Time) string {
	word, since := status.Status.DisplayWord(), ""
	if !status.Since.IsZero() {
		since = " for " + terminal.Duration(now.Sub(status.Since))
	}
	switch next := nextRetry(status); {
	case needsPerson(status):
		if word = render.NeedsPerson; since != "" {
			since = "; waiting" + since
		}
	case status.Status != interpreter.RetryPending || next.IsZero():
	case next.After(now):
		since += "; the next attempt starts in " + terminal.Duration(next.Sub(now).Round(time.Second))
	default:
		since += "; the next attempt is due"
	}
	return strings.ToUpper(word[:1]) + word[1:] + since + "."
}

// nextRetry returns when the first of a run's waiting steps is retried; zero if no time is known.
func nextRetry(status *runs.Status) (next time.Time) {
	for _, step := range status.Steps {
		if step.Status == interpreter.RetryPending {
			next = interpreter.EarlierTime(next, step.NextRetryAt)
		}
	}
	return next
}

// needsPerson reports whether a run waits to retry, and some step of it until a person decides.
func needsPerson(status *runs.Status) bool {
	return status.Status == interpreter.RetryPending && slices.ContainsFunc(status.Steps, func(step runs.Step) bool {
		return !step.Status.Ended() && step.HeldBy == runs.HeldByPerson
	})
}

// failedIn describes the step whose failure ended the run, and its line.
func failedIn(status *runs.Status, book *playbook.Playbook) string {
	for _, step := range slices.Backward(status.Steps) {
		if step.Status != interpreter.Failed || step.Handled {
			continue
		}
		if of := stepOf(book, step.Step); of != nil && !of.NamePos.IsZero() {
			return fmt.Sprintf("step %s, line %d", step.Step, of.NamePos.Line)
		}
		return "step " + step.Step
	}
	return ""
}

func stepOf(book *playbook.Playbook, name string) *playbook.Step {
	if book == nil {
		return nil
	}
	return book.Step(name)
}

// isByPerson reports whether only a person can continue a step or an iteration that would otherwise wait to retry.
func isByPerson(item runs.Item) bool {
	return item.Status == interpreter.RetryPending && item.HeldBy == runs.HeldByPerson
}

func newStepRow(status *runs.Status, step runs.Step, book *playbook.Playbook) stepRow {
	row := stepRow{Name: step.Step, Path: stepPath(status.WorkflowID, step.Step), Status: step.Status, ByPerson: isByPerson(step.Item), Child: step.Child}
	if step.Visit > 1 {
		row.Name += fmt.Sprintf("#%d", step.Visit)
	}
	if of := stepOf(book, step.Step); of != nil && of.Action != nil {
		row.Tool, _ = of.Action.ToolName()
	}
	if !step.StartedAt.IsZero() {
		row.Took = terminal.Duration(cmp.Or(step.EndedAt, status.EndedAt, status.At).Sub(step.StartedAt))
	}
	if step.Error != nil && step.Status != interpreter.Completed {
		row.Error = terminal.Shorten(step.Error.Message, 300)
	}
	switch {
	case step.Loop != nil && step.Loop.Total > 0:
		row.Progress, row.Now = progressOf(step), render.CountsText(step)
	case !step.Status.Ended() && !step.StartedAt.IsZero():
		if row.Now = render.StepNow(step, status); step.Error != nil {
			row.Error = ""
		}
	case step.Pages > 1:
		row.Now = terminal.Count(step.Pages, "page")
		if repeated := step.Attempt - step.Pages; repeated > 0 {
			row.Now += fmt.Sprintf(" in %d attempts", step.Attempt)
		}
	case step.Attempt > 1:
		row.Now = terminal.Count(step.Attempt, "attempt")
	}
	return row
}

// setValues sets the run's input and result.
func (v *runView) setValues(input protocol.Input, result *protocol.Result) {
	cut := false
	if input.Workload.Data != nil {
		v.Input, cut = render.MaskedJSON(input.Workload.Data, shownValue)
	}
	if result != nil && result.Result.Data != nil {
		var more bool
		v.Result, more = render.MaskedJSON(result.Result.Data, shownValue)
		cut = cut || more
	}
	v.Cut = cut
}

// drawRun draws the graph, the timeline and the playbook. The failed step is marked in the playbook, and the line of
// its code if it is known.
func (v *runView) drawRun(book *playbook.Playbook, source string, workload any, marked int) {
	v.Timeline = newTimeline(v.Status)
	failed := 0
	if book != nil {
		v.Graph = drawnGraph(book, v.Status, workload)
		for _, step := range v.Status.Steps {
			if of := book.Step(step.Step); of != nil && step.Status == interpreter.Failed && !step.Handled {
				failed = of.NamePos.Line
			}
		}
	}
	lines := strings.Split(strings.TrimRight(source, "\n"), "\n")
	if source == "" {
		return
	}
	first := 0
	if len(lines) > shownLines && failed > shownLines/2 {
		first = min(failed-shownLines/2, len(lines)-shownLines)
	}
	last := min(len(lines), first+shownLines)
	for i := first; i < last; i++ {
		v.Lines = append(v.Lines, sourceLine{Number: i + 1, Text: terminal.EscapeInvisible(cutLine(lines[i])), Failed: i+1 == failed || i+1 == marked})
	}
	v.LinesLeft = len(lines) - len(v.Lines)
}

// graphView is the graph of a playbook, or of a run of it, as pictures.
type graphView struct {
	Picture template.URL
	// Folded is set if the picture has rows of steps folded: Whole has every step then, "" if that is too large to draw, and Steps
	// is how many these are.
	Folded bool
	Whole  template.URL
	Steps  int
}

// drawnGraph draws a playbook, or a run of it; nil if that is too large.
func drawnGraph(book *playbook.Playbook, status *runs.Status, workload any) *graphView {
	whole := graph.New(book, status, &graph.Children{Workload: workload})
	folded := whole.Fold()
	drawn := &graphView{Picture: pictureOf(folded), Steps: len(book.Steps), Folded: folded != whole}
	if drawn.Folded {
		drawn.Whole = pictureOf(whole)
	}
	if drawn.Picture == "" {
		return nil
	}
	return drawn
}

// pictureOf returns a graph as a picture; "" if it is too large.
func pictureOf(g *graph.Diagram) template.URL {
	drawing := g.SVG()
	if len(drawing) > shownGraph {
		return ""
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(drawing))) //nolint:gosec // ours, shown as a picture
}

// cutLine cuts a line of a playbook.
func cutLine(line string) string {
	const shown = 300
	if letters := []rune(line); len(letters) > shown {
		return string(letters[:shown]) + "…"
	}
	return line
}
