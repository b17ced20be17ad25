package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/interpreter"
)

const (
	// shownLanes bounds the visits of steps that are drawn, and shownIterations the iterations of one visit.
	shownLanes, shownIterations = 60, 30
	// shownShapes bounds the attempts and waits that are drawn for one visit or iteration.
	shownShapes = 150
	// mostTimelineEvents and longestTimeline bound reading histories for the timeline: a person waits for the page.
	mostTimelineEvents, longestTimeline = 20_000, 8 * time.Second
	// leastWidth is the width of something without duration, in percent.
	leastWidth = 0.4
)

// timeline shows when the steps of a run, their attempts and their waits were open.
type timeline struct {
	From, To time.Time
	Took     string
	Lanes    []*lane
	Left     int // visits that are not drawn
	Note     string
	Live     bool
	// Path is the path of the page with attempts, waits and iterations.
	Path string

	run          string
	known        map[string]*lane
	withAttempts bool // the attempts of iterations are read too
}

// lane is a visit of a step, or one of its iterations.
type lane struct {
	Name, Path  string
	Status      interpreter.Status // "" until its end or its state is known
	X, W        float64            // in percent; W is 0 until it is known
	Text        string             // how long it was open
	Shapes      []shape
	ShapesLeft  int
	Rows        []*lane // its iterations
	RowsLeft    int
	IsIteration bool
}

// shape is a drawn attempt or wait.
type shape struct {
	Class, Title, Path string
	X, W               float64
}

// tick is a time on the axis, relative to the start.
type tick struct {
	X    float64
	Text string
}

// newTimeline returns the timeline of the steps of a run; nil if none has started.
func newTimeline(status *runs.Status) *timeline {
	t := timelineOf(status)
	for _, step := range status.Steps {
		if step.StartedAt.IsZero() {
			continue
		}
		lane := t.laneOf(step.Step, step.Visit)
		if lane == nil {
			continue
		}
		lane.Status = step.Status
		t.spanLane(lane, step.StartedAt, cmp.Or(step.EndedAt, t.To))
	}
	if len(t.Lanes) == 0 {
		return nil
	}
	return t
}

func timelineOf(status *runs.Status) *timeline {
	t := &timeline{
		From: status.StartedAt, To: cmp.Or(status.EndedAt, status.At), Live: !status.Ended(), Path: runPath(status.WorkflowID) + "/timeline",
		run: status.WorkflowID, known: map[string]*lane{},
	}
	if t.To.Sub(t.From) < time.Millisecond {
		t.To = t.From.Add(time.Millisecond)
	}
	t.Took = terminal.Duration(t.To.Sub(t.From))
	return t
}

// percentAt returns the position of a time, in percent.
func (t *timeline) percentAt(when time.Time) float64 {
	return min(100, max(0, 100*float64(when.Sub(t.From))/float64(t.To.Sub(t.From))))
}

func (t *timeline) placeSpan(from, to time.Time) (x, width float64) {
	x = min(t.percentAt(from), 100-leastWidth)
	return x, max(leastWidth, t.percentAt(to)-x)
}

// spanLane sets when a lane was open.
func (t *timeline) spanLane(l *lane, from, to time.Time) {
	l.X, l.W = t.placeSpan(from, to)
	l.Text = terminal.Duration(to.Sub(from))
}

// laneOf returns the lane of a visit; nil if there are too many.
func (t *timeline) laneOf(step string, visit int) *lane {
	name := step
	if visit > 1 {
		name += fmt.Sprintf("#%d", visit)
	}
	if known := t.known[name]; known != nil {
		return known
	}
	if len(t.Lanes) == shownLanes {
		t.Left++
		return nil
	}
	found := &lane{Name: name, Path: stepPath(t.run, step)}
	t.Lanes, t.known[name] = append(t.Lanes, found), found
	return found
}

// rowOf returns the lane of an iteration; nil if there are too many.
func (t *timeline) rowOf(of *lane, span stats.Span) *lane {
	event := span.Event
	name := fmt.Sprintf("%s[%d]", of.Name, *event.Index)
	if known := t.known[name]; known != nil {
		return known
	}
	if len(of.Rows) == shownIterations {
		if span.Of == stats.Iteration {
			of.RowsLeft++
		}
		return nil
	}
	found := &lane{Name: strconv.Itoa(*event.Index), Path: eventsPath(t.run, event.Step, event.Index), IsIteration: true}
	of.Rows, t.known[name] = append(of.Rows, found), found
	return found
}

// addSpan adds a span.
func (t *timeline) addSpan(span stats.Span) {
	event := span.Event
	of := t.laneOf(event.Step, event.Visit)
	if of == nil {
		return
	}
	if event.Index != nil {
		if span.Of == stats.Iteration && t.isUncertain(span) {
			of.RowsLeft++
			return
		}
		if of = t.rowOf(of, span); of == nil {
			return
		}
	}
	switch span.Of {
	case stats.Step, stats.Iteration:
		of.Status = cmp.Or(event.Status, span.Ended, interpreter.Running)
		t.spanLane(of, span.From, span.To)
	case stats.Attempt, stats.Wait:
		if len(of.Shapes) == shownShapes {
			of.ShapesLeft++
			return
		}
		of.Shapes = append(of.Shapes, t.shapeOf(span))
	}
}

// isUncertain reports whether an open iteration may have ended already: those that share a child report their ends when the child
// ends, and only its history has their attempts.
func (t *timeline) isUncertain(span stats.Span) bool {
	return span.Open && span.Event.IsShared && !t.withAttempts
}

// shapeOf draws an attempt or a wait.
func (t *timeline) shapeOf(span stats.Span) shape {
	event := span.Event
	s := shape{Class: "wait", Path: eventsPath(t.run, event.Step, event.Index) + "#" + eventID(event)}
	s.X, s.W = t.placeSpan(span.From, span.To)
	took := terminal.Duration(span.To.Sub(span.From))
	if span.Of == stats.Wait {
		s.Title = "wait"
		if event.Reason != "" {
			s.Title += " (" + event.Reason + ")"
		}
		s.Title += ": " + took
		return s
	}
	s.Class, s.Title = "attempt", fmt.Sprintf("attempt %d", event.Attempt)
	if event.AttemptTo > event.Attempt {
		s.Title = fmt.Sprintf("attempts %d–%d", event.Attempt, event.AttemptTo)
	}
	if event.Page > 0 {
		s.Title += fmt.Sprintf(", page %d", event.Page)
	}
	if event.Sink != "" {
		s.Title += ", " + event.Sink
	}
	if s.Title += ": " + took; event.Error != nil {
		s.Class = "attempt failed"
		s.Title += ", " + terminal.Shorten(event.Error.Message, 120)
	}
	return s
}

// Ticks returns the times on the axis.
func (t *timeline) Ticks() []tick {
	const most = 6
	whole := t.To.Sub(t.From)
	every := whole
	for _, step := range []time.Duration{
		time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second,
		2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
	} {
		if every = step; whole/step <= most {
			break
		}
	}
	var ticks []tick
	for at := time.Duration(0); at <= whole && len(ticks) <= most+1; at += every {
		x := 100 * float64(at) / float64(whole)
		if x > 94 && at > 0 {
			break // its text would be beyond the end
		}
		ticks = append(ticks, tick{x, tickText(at)})
	}
	return ticks
}

// tickText formats a time relative to the start, without units that are 0.
func tickText(at time.Duration) string {
	switch {
	case at == 0:
		return "0"
	case at < time.Second:
		return at.String()
	case at%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", at/(24*time.Hour))
	case at%time.Hour == 0:
		return fmt.Sprintf("%dh", at/time.Hour)
	case at%time.Minute == 0:
		return fmt.Sprintf("%dm", at/time.Minute)
	}
	return at.String()
}

// eventsPath returns the path of the page with the events of a step or an iteration.
func eventsPath(run, step string, index *int) string {
	query := url.Values{"step": {step}}
	if index != nil {
		query.Set("index", strconv.Itoa(*index))
	}
	return runPath(run) + "/events?" + query.Encode()
}

// eventID returns the anchor of an attempt on the page of events.
func eventID(event runs.Event) string {
	id := fmt.Sprintf("attempt-%d-%d", event.Visit, event.Attempt)
	if event.Index != nil {
		id = fmt.Sprintf("attempt-%d-%d-%d", event.Visit, *event.Index, event.Attempt)
	}
	return id
}

// errEnough stops reading events.
var errEnough = errors.New("enough events")

// fewIterations reports whether a run has iterations, but few enough to read all their attempts.
func (t *timeline) fewIterations() bool {
	const most = 50
	rows := 0
	for _, drawn := range t.Lanes {
		rows += len(drawn.Rows) + drawn.RowsLeft
	}
	return rows > 0 && rows <= most
}

// readTimeline reads the events of a run.
func (s *Server) readTimeline(ctx context.Context, t *timeline, found runs.Found, filter runs.EventFilter) error {
	read, began := 0, time.Now()
	spans := stats.NewSpans(t.addSpan)
	_, err := s.Runs.Events(ctx, found, filter, func(event runs.Event) error {
		if read++; read > mostTimelineEvents || time.Since(began) > longestTimeline {
			return errEnough
		}
		spans.AddEvent(event)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		t.Note = fmt.Sprintf("Only the first %d events are drawn. starter report draws all of them.", read-1)
	case err != nil:
		return err
	}
	spans.Close(t.To)
	return nil
}

// timelinePage shows the attempts, waits and iterations of a run. With scripts enabled, the page of the run includes
// it.
func (s *Server) timelinePage(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	status := &runs.Status{Found: found, At: v.frame.At}
	t := timelineOf(status)
	if err := s.readTimeline(r.Context(), t, found, runs.EventFilter{}); err != nil {
		return err
	}
	if t.fewIterations() { // so the attempts within them are few
		t = timelineOf(status)
		t.withAttempts = true
		if err := s.readTimeline(r.Context(), t, found, runs.EventFilter{Attempts: true}); err != nil {
			return err
		}
	}
	for _, drawn := range t.Lanes {
		slices.SortStableFunc(drawn.Rows, func(x, y *lane) int {
			return cmp.Or(cmp.Compare(len(x.Name), len(y.Name)), cmp.Compare(x.Name, y.Name))
		})
	}
	shown := struct {
		Run      runs.Found
		Timeline *timeline
	}{found, t}
	v.frame.Title, v.frame.Section, v.frame.Live = "Timeline · "+render.RunTitle(found), "/", !found.Ended()
	s.writePage(w, v, http.StatusOK, "timeline", shown)
	return nil
}

// eventRow is an event in the list.
type eventRow struct {
	ID       string // of the row; "" for what nothing leads to
	At       time.Time
	Name     string
	Text     string
	Child    string // workflow ID of the run that the attempt is, "" for others
	IsFailed bool
}

// eventsView is the content of the list of events.
type eventsView struct {
	Run         runs.Found
	Step        string
	Index       string
	Rows        []eventRow
	More        bool
	AllOfTheRun string
	Names       runNames
}

// eventsPage lists the events of a run without those in its iterations, or all events of a step or an iteration.
func (s *Server) eventsPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	const most = 300
	shown := eventsView{Run: found, Step: r.URL.Query().Get("step"), Index: r.URL.Query().Get("index"), AllOfTheRun: runPath(found.WorkflowID) + "/events", Names: newRunNames(r.Context(), s.Runs, found)}
	filter := runs.EventFilter{Step: shown.Step}
	if shown.Index != "" {
		index, err := strconv.Atoi(shown.Index)
		if err != nil || index < 0 || shown.Step == "" {
			return &pageError{http.StatusBadRequest, "An iteration is named by its step and its index: a number from 0."}
		}
		filter.Index = &index
	}
	ids := map[string]bool{}
	_, err = s.Runs.Events(r.Context(), found, filter, func(event runs.Event) error {
		if len(shown.Rows) == most {
			shown.More = true
			return errEnough
		}
		row := eventRow{At: event.At, Name: event.Event, Text: render.DescribeEvent(event), Child: event.Child, IsFailed: event.Error != nil}
		if id := eventID(event); event.Kind().Of == runs.OfAttempt && !ids[id] {
			row.ID, ids[id] = id, true
		}
		shown.Rows = append(shown.Rows, row)
		return nil
	})
	if err != nil && !shown.More {
		return err
	}
	v.frame.Title, v.frame.Section = "Events · "+render.RunTitle(found), "/"
	s.writePage(w, v, http.StatusOK, "events", shown)
	return nil
}
