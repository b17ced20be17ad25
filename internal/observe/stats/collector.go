package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/cost"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

const (
	// mostSlow is how many of the slowest items are kept: stats reads histories of any length in bounded memory.
	mostSlow = 10
	// mostAlike bounds the kinds of errors and failures that are distinguished. A message that contains a number
	// creates a kind for each iteration.
	mostAlike = 100
	// shownIndexes is how many iterations a failure group lists.
	shownIndexes = 5
	// mostMessage bounds the message by which failures are grouped, in bytes, because one is stored for each group.
	mostMessage = 1000
	// mostSteps bounds the steps of all playbooks together: figures of a namespace may include any number of
	// playbooks.
	mostSteps = 10_000
)

// bars are the lower ends of the histogram's bars.
var bars = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 21, 51, 101}

// Collector sums up runs, one after another.
type Collector struct {
	stats    Stats
	spans    *SpanBuilder
	see      func(Span)
	attempts []int // by bars
	errors   map[ErrorCount]*ErrorCount
	waits    map[string]*Waits
	steps    map[stepKey]*Figures
	order    []*Figures
	failures map[string]*FailureGroup
	grouped  []*FailureGroup
	ended    int // items
	current  *RunSummary
	child    bool            // the current run is the child of another
	known    map[string]bool // run IDs
	children []runs.Event    // the starts of child runs that were not read yet
	notes    map[string]int  // of child runs, and how many have each
	noted    []string        // these notes, in their order
	rows     rowCounts       // of the current run
	inside   map[string]bool // run IDs of runs that another one has started
	marks    map[markKey]int // where watermarks are among those of the figures
}

// stepKey identifies the figures of a step.
type stepKey struct {
	playbook, step string
	child          bool
}

// NewCollector returns an empty collector. If see is not nil, it is called with every span of the runs, but not with
// those of their child runs.
func NewCollector(see func(Span)) *Collector {
	return &Collector{
		see: see, attempts: make([]int, len(bars)), errors: map[ErrorCount]*ErrorCount{}, waits: map[string]*Waits{},
		steps: map[stepKey]*Figures{}, failures: map[string]*FailureGroup{},
		known: map[string]bool{}, notes: map[string]int{}, inside: map[string]bool{}, marks: map[markKey]int{},
	}
}

// BeginRun sets the run that the following events belong to.
func (c *Collector) BeginRun(run runs.Found) {
	c.beginRun(run, false)
	c.stats.Runs = append(c.stats.Runs, *c.current)
	c.current = &c.stats.Runs[len(c.stats.Runs)-1]
}

// BeginChild sets the child run that the following events belong to.
func (c *Collector) BeginChild(run runs.Found) {
	c.beginRun(run, true)
	c.stats.ChildRuns.Runs++
	if !run.Ended() {
		c.stats.ChildRuns.Running++
	}
}

func (c *Collector) beginRun(run runs.Found, child bool) {
	c.known[run.RunID], c.child = true, child
	c.current = &RunSummary{
		WorkflowID: run.WorkflowID, RunID: run.RunID, Playbook: run.Playbook, Status: run.Status,
		StartedAt: run.StartedAt, EndedAt: run.EndedAt,
	}
	c.spans, c.rows = NewSpans(c.addSpan), rowCounts{open: map[item]*interpreter.Rows{}}
}

// NextChild returns the start of a child run that has not been read, and how many are left after it. more is false if
// all have been read.
func (c *Collector) NextChild() (start runs.Event, left int, more bool) {
	for len(c.children) > 0 {
		start, c.children = c.children[0], c.children[1:]
		c.inside[start.ChildRunID] = true
		if !c.known[start.ChildRunID] {
			return start, len(c.children), true
		}
	}
	return start, 0, false
}

// CountUnread counts a child run that the server has deleted.
func (c *Collector) CountUnread() { c.stats.ChildRuns.Unread++ }

// AddEvent applies an event of the run.
func (c *Collector) AddEvent(event runs.Event) {
	c.current.Events++
	if event.ChildRunID != "" && event.Event == runs.ActionStarted {
		c.children = append(c.children, runs.Event{Child: event.Child, ChildRunID: event.ChildRunID})
	}
	c.spans.AddEvent(event)
	c.addRows(event)
}

// SeenCounts returns how many events of the run were added, and how many items of all runs have ended.
func (c *Collector) SeenCounts() (seen, ended int) { return c.current.Events, c.ended }

// EndRun ends the current run; an open run is read up to now.
func (c *Collector) EndRun(now time.Time, notes ...string) {
	run := c.current
	if run.At = run.EndedAt; run.EndedAt.IsZero() {
		run.At = now
	}
	c.spans.Close(run.At)
	c.endRows()
	for _, note := range notes {
		if !c.child {
			c.stats.Notes = append(c.stats.Notes, run.WorkflowID+": "+note)
			continue
		}
		if c.notes[note]++; c.notes[note] == 1 {
			c.noted = append(c.noted, note)
		}
	}
}

// AddCost adds what histories of the runs cost.
func (c *Collector) AddCost(of cost.Cost) { c.stats.Cost = c.stats.Cost.Plus(of) }

// addSpan adds a span.
func (c *Collector) addSpan(span Span) {
	if c.see != nil && !c.child {
		c.see(span)
	}
	figures, took := c.figuresOf(span.Event.Step), span.To.Sub(span.From).Seconds()
	switch span.Of {
	case Attempt:
		figures.countAttempts(span.Event, took)
		if failure := span.Event.Error; failure != nil {
			if alike := c.errorCount(failure); alike != nil {
				alike.Attempts++
			}
		}
	case Wait:
		c.addWait(figures, span.Event.Reason, took)
	default:
		c.addItem(figures, span)
	}
}

// figuresOf returns the figures of a step. Beyond mostSteps, steps share the figures of a step without a name.
func (c *Collector) figuresOf(step string) *Figures {
	key := stepKey{c.current.Playbook, step, c.child}
	if c.steps[key] == nil && len(c.order) >= mostSteps {
		key = stepKey{}
	}
	if c.steps[key] == nil {
		c.steps[key] = &Figures{Playbook: key.playbook, Step: key.step, InChildRuns: key.child}
		c.order = append(c.order, c.steps[key])
	}
	return c.steps[key]
}

func (c *Collector) errorCount(failure *interpreter.ErrorObject) *ErrorCount {
	key := ErrorCount{Class: failure.Class, Kind: failure.Kind, Status: failure.Status}
	if c.errors[key] == nil {
		if len(c.errors) >= mostAlike {
			key = ErrorCount{Kind: "others"}
		}
		if c.errors[key] == nil {
			copied := key
			c.errors[key] = &copied
		}
	}
	return c.errors[key]
}

func (c *Collector) addWait(figures *Figures, reason string, took float64) {
	if c.waits[reason] == nil {
		c.waits[reason] = &Waits{Reason: reason}
	}
	c.waits[reason].Waits++
	c.waits[reason].Seconds += took
	figures.WaitSeconds += took
	if interpreter.Reason(reason) == interpreter.ReasonRateLimited || interpreter.Reason(reason) == interpreter.ReasonTurn {
		figures.LimitSeconds += took
	}
}

// addItem adds an iteration or a step visit.
func (c *Collector) addItem(figures *Figures, span Span) {
	event := span.Event
	slow := Slow{
		WorkflowID: c.current.WorkflowID, Step: event.Step, Visit: event.Visit, Index: event.Index, Attempts: event.Attempts,
		Seconds: roundMillis(cmp.Or(event.Duration, span.To.Sub(span.From).Seconds())), Status: cmp.Or(event.Status, interpreter.Running),
	}
	if span.Of == Iteration {
		c.stats.SlowestIterations = addSlow(c.stats.SlowestIterations, slow)
	} else {
		c.stats.SlowestSteps = addSlow(c.stats.SlowestSteps, slow)
		figures.Visits++
		if event.Stats != nil || figures.looped {
			return // its iterations are the items
		}
	}
	if span.Of == Iteration || event.Attempts > 0 || event.Error != nil {
		figures.looped = figures.looped || span.Of == Iteration
		c.countEnd(figures, span)
	}
}

// countEnd counts how an item ended.
func (c *Collector) countEnd(figures *Figures, span Span) {
	event := span.Event
	figures.Items++
	if span.Open {
		figures.countOpen(span)
		return
	}
	c.ended++
	failures := max(0, event.Attempts-event.Pages)
	retries := failures
	switch event.Status.LoopTally() {
	case interpreter.TallyCancelled:
		figures.Cancelled++
		figures.Retries += max(0, failures-1)
		return
	case interpreter.TallyFailed:
		figures.Failed++
		retries = max(0, failures-1)
		c.addFailure(event)
	default:
		figures.Success++
		if retries == 0 {
			figures.FirstTry++
		}
		at, found := slices.BinarySearch(bars, retries+1)
		if !found {
			at--
		}
		c.attempts[at]++
	}
	figures.countRetries(retries)
}

// countAttempts counts one attempt, or those of pages that were fetched together.
func (f *Figures) countAttempts(event runs.Event, took float64) {
	f.AttemptSeconds += took
	if event.Child != "" {
		f.ChildRuns++
		f.childSeconds += took
		return
	}
	f.AttemptsMade += max(1, event.AttemptTo-event.Attempt+1)
}

// countOpen counts a running item: what has happened to it, not what may happen.
func (f *Figures) countOpen(span Span) {
	f.Open++
	if span.Failures > 0 {
		f.missed++
	}
	f.countRetries(span.Retries)
}

func (f *Figures) countRetries(retries int) {
	f.Retries += retries
	if retries > 0 {
		f.Retried++
	}
}

// addFailure adds a failed item.
func (c *Collector) addFailure(event runs.Event) {
	failure := cmp.Or(event.Error, &interpreter.ErrorObject{})
	c.errorCount(failure).Items++
	key := FailureGroup{Playbook: c.current.Playbook, Step: event.Step, InChildRuns: c.child, Class: failure.Class, Kind: failure.Kind, Status: failure.Status}
	of := c.failures[key.groupID()]
	if of == nil {
		if len(c.grouped) >= mostAlike {
			c.stats.FailuresLeft++
			return
		}
		key.Message = failure.Message[:min(len(failure.Message), mostMessage)]
		key.Message = strings.ToValidUTF8(key.Message, "")
		of = &key
		c.failures[key.groupID()] = of
		c.grouped = append(c.grouped, of)
	}
	of.Items++
	if event.Index != nil && len(of.Indexes) < shownIndexes {
		of.Indexes = append(of.Indexes, *event.Index)
	}
}

func (f FailureGroup) groupID() string {
	return fmt.Sprintf("%q %q %t %q %q %d", f.Playbook, f.Step, f.InChildRuns, f.Class, f.Kind, f.Status)
}

// addSlow inserts an item in the list of the slowest; of equally slow ones it keeps the first.
func addSlow(slowest []Slow, slow Slow) []Slow {
	at, _ := slices.BinarySearchFunc(slowest, slow, func(x, y Slow) int {
		if x.Seconds >= y.Seconds {
			return -1
		}
		return 1
	})
	slowest = slices.Insert(slowest, at, slow)
	return slowest[:min(len(slowest), mostSlow)]
}

// Stats returns the figures so far.
func (c *Collector) Stats() Stats {
	s := c.stats
	s.Attempts, s.Errors, s.Waits, s.Steps, s.Failures = []Bar{}, []ErrorCount{}, []Waits{}, []Figures{}, []FailureGroup{}
	s.SlowestSteps, s.SlowestIterations = append([]Slow{}, s.SlowestSteps...), append([]Slow{}, s.SlowestIterations...)
	s.Notes = append([]string{}, s.Notes...)
	for _, note := range c.noted {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s", terminal.Count(c.notes[note], "child run"), note))
	}
	for i, from := range bars {
		bar := Bar{From: from, Items: c.attempts[i]}
		if i+1 < len(bars) {
			bar.To = bars[i+1] - 1
		}
		if bar.Items > 0 {
			s.Attempts = append(s.Attempts, bar)
		}
	}
	for _, alike := range c.errors {
		s.Errors = append(s.Errors, *alike)
	}
	slices.SortFunc(s.Errors, func(x, y ErrorCount) int {
		return cmp.Or(cmp.Compare(y.Attempts, x.Attempts), cmp.Compare(y.Items, x.Items),
			cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Status, y.Status), cmp.Compare(x.Class, y.Class))
	})
	for _, waits := range c.waits {
		s.Waits = append(s.Waits, Waits{waits.Reason, waits.Waits, roundMillis(waits.Seconds)})
	}
	slices.SortFunc(s.Waits, func(x, y Waits) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Reason, y.Reason))
	})
	s.Rows, s.Watermarks = c.allRows(), slices.Clone(s.Watermarks)
	for _, figures := range c.order {
		s.Steps = append(s.Steps, figures.withRates())
		s.AttemptsMade += figures.AttemptsMade
		s.AttemptSeconds += figures.AttemptSeconds - figures.childSeconds
		s.WaitSeconds += figures.WaitSeconds
		s.LimitSeconds += figures.LimitSeconds
	}
	if all := s.AttemptSeconds + s.WaitSeconds; all > 0 {
		s.LimitShare = roundTo(s.LimitSeconds/all, 10_000)
	}
	s.AttemptSeconds, s.WaitSeconds = roundMillis(s.AttemptSeconds), roundMillis(s.WaitSeconds)
	s.LimitSeconds = roundMillis(s.LimitSeconds)
	for _, failure := range c.grouped {
		s.Failures = append(s.Failures, *failure)
	}
	slices.SortStableFunc(s.Failures, func(x, y FailureGroup) int { return cmp.Compare(y.Items, x.Items) })
	return s
}

// withRates returns the figures with their rates.
func (f *Figures) withRates() Figures {
	copied := *f
	copied.AttemptSeconds, copied.WaitSeconds = roundMillis(f.AttemptSeconds), roundMillis(f.WaitSeconds)
	copied.LimitSeconds = roundMillis(f.LimitSeconds)
	ended := f.Success + f.Failed
	copied.Reliability, copied.RetryRate = shareOf(f.FirstTry, ended+f.missed), shareOf(f.Retried, ended+f.missed)
	copied.SuccessRate = shareOf(f.Success, ended)
	return copied
}

// shareOf returns n/all, rounded; nil if all is 0.
func shareOf(n, all int) *float64 {
	if all == 0 {
		return nil
	}
	x := roundTo(float64(n)/float64(all), 10_000)
	return &x
}

func roundMillis(seconds float64) float64 { return roundTo(seconds, 1000) }

func roundTo(x, by float64) float64 { return math.Round(x*by) / by }
