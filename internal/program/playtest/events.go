package playtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// runEvents collects the events of the run itself, as `starter events` shows them for a run on a server. Events of
// child runs belong to those runs. Each attempt has its own events, because how many pages one activity fetches
// depends on the machine.
type runEvents struct {
	events []runs.Event
	begun  map[string]bool // iterations
	pages  map[string]int  // successes of calls
}

func eventCall(event runs.Event) string {
	index := -1
	if event.Index != nil {
		index = *event.Index
	}
	return fmt.Sprintf("%s#%d/%d/%s", event.Step, event.Visit, index, event.Sink)
}

// addEvents records events. The first event of an iteration also starts it.
func (s *stage) addEvents(events ...runs.Event) {
	at := s.now()
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	for _, event := range events {
		event.At = at
		s.seen.happened.addEvent(event)
	}
}

func (h *runEvents) addEvent(event runs.Event) {
	if event.Index != nil {
		began := runs.Event{Event: runs.IterationStarted, At: event.At, Step: event.Step, Visit: event.Visit, Index: event.Index}
		if h.begun == nil {
			h.begun = map[string]bool{}
		}
		if key := eventCall(began); !h.begun[key] {
			h.begun[key] = true
			h.events = append(h.events, began)
		}
	}
	h.events = append(h.events, event)
}

// addAttempt records the events of an attempt.
func (s *stage) addAttempt(seen call.Observation) {
	event := runs.Event{At: s.now(), Step: seen.Step, Visit: seen.Visit, Index: seen.Index, Sink: seen.Place}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	h := &s.seen.happened
	if seen.Awaits != nil {
		event.Event = runs.AnswerAwaited
		h.addEvent(event)
	}
	if !seen.Decided {
		return
	}
	key := eventCall(event)
	if h.pages == nil {
		h.pages = map[string]int{}
	}
	event.Attempt = seen.Attempt
	if event.Page = seen.Page; seen.Place == "" {
		event.Page = h.pages[key] + 1
	}
	if last := h.lastEnd(key); last != nil && (seen.Place == "" || last.Page == seen.Page) {
		if last.Attempt == seen.Attempt {
			if last.Event == runs.ActionCompleted && seen.Error != nil { // a policy has made a failure of the answer
				last.Event, last.Error = runs.ActionError, seen.Error
				h.pages[key]--
			}
			return // decided again by another host
		}
		event.IsRetry = last.Event == runs.ActionError
	}
	begins := event
	begins.Event = runs.ActionStarted
	h.addEvent(begins)
	event.Event, event.Error, event.IsRetry = runs.ActionCompleted, seen.Error, false
	if seen.Error != nil {
		event.Event = runs.ActionError
	} else {
		h.pages[key]++
	}
	h.addEvent(event)
	if seen.Place != "" {
		h.endSink(event, seen)
	}
}

// endSink records the end of a sink or a notice. If a sink fails its call, the end of the call reports that.
func (h *runEvents) endSink(event runs.Event, seen call.Observation) {
	ignored := len(seen.Policies) > 0 && seen.Policies[len(seen.Policies)-1].Then.Ignore
	event.Attempt, event.Page = 0, 0
	switch {
	case seen.Repeats:
		return
	case seen.Error == nil, ignored:
		event.Event, event.Error = runs.SinkCompleted, nil
	case strings.HasPrefix(seen.Place, "run."), strings.Contains(seen.Place, ".on_"):
		event.Event = runs.SinkFailed
	default:
		return
	}
	h.addEvent(event)
}

// lastEnd returns the end of a call's last attempt.
func (h *runEvents) lastEnd(key string) *runs.Event {
	for i := len(h.events) - 1; i >= 0; i-- {
		event := &h.events[i]
		if (event.Event == runs.ActionCompleted || event.Event == runs.ActionError) && eventCall(*event) == key {
			return event
		}
	}
	return nil
}

// addWait records a wait of a call.
func (s *stage) addWait(mark interpreter.TimerMark, delay time.Duration) {
	if !slices.Contains(interpreter.WaitReasons(), mark.Reason) || mark.Reason == interpreter.ReasonTurn || delay <= 0 {
		return
	}
	step, _, sink := strings.Cut(mark.Call, ".")
	event := runs.Event{
		Event: runs.StepRetry, At: s.now(), Step: step, Index: mark.Index, Delay: delay.Seconds(), Reason: string(mark.Reason),
	}
	event.NextRetryAt = event.At.Add(delay)
	if sink {
		event.Sink = mark.Call
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	h := &s.seen.happened
	for i := len(h.events) - 1; i >= 0 && event.Visit == 0; i-- {
		if before := h.events[i]; before.Step == event.Step {
			event.Visit = before.Visit
		}
	}
	h.addEvent(event)
}

// eventsOf returns the events of the run from its start to its end. Events of concurrent iterations are in the order
// of the collection.
func (c *comparison) eventsOf() []runs.Event {
	c.stage.seen.mu.Lock()
	all := slices.Clone(c.stage.seen.happened.events)
	c.stage.seen.mu.Unlock()
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].Index != nil && all[to].Step == all[from].Step {
			to++
		}
		slices.SortStableFunc(all[from:to], func(x, y runs.Event) int { return *x.Index - *y.Index })
		from = max(to, from+1)
	}
	result := c.outcome.result
	end := runs.Event{Event: runs.ExecutionCompleted, Status: result.Status, Error: result.Error, Duration: c.outcome.took.Seconds(), At: c.stage.begun.Add(c.outcome.took)}
	switch result.Status {
	case interpreter.Failed:
		end.Event = runs.ExecutionFailed
	case interpreter.Cancelled:
		end.Event = runs.ExecutionCancelled
	}
	return append(append([]runs.Event{{Event: runs.ExecutionStarted, At: c.stage.begun}}, all...), end)
}

// compareEvents compares the events whose kinds the test names, in order.
func (c *comparison) compareEvents() {
	wanted := c.test.Expect.Events
	if len(wanted) == 0 {
		return
	}
	got := lists.Filter(c.eventsOf(), func(event runs.Event) bool {
		return slices.ContainsFunc(wanted, func(one *playbook.TestEvent) bool { return one.Name == event.Event })
	})
	for i, one := range wanted {
		what := fmt.Sprintf("events[%d]", i)
		if i >= len(got) {
			c.failures = append(c.failures, Failure{Pos: one.Pos, What: what, Message: fmt.Sprintf("expected %s, but no more events came:\n%s", wantedEvent(one), listEvents(got))})
			return
		}
		fields := fieldsOf(got[i])
		if one.Name == got[i].Event && coversValue(one.Fields, fields) {
			continue
		}
		message := fmt.Sprintf("expected %s, got %s:\n%s", wantedEvent(one), briefEvent(got[i]), listEvents(got))
		if one.Name == got[i].Event {
			message = showDifference(any(one.Fields), expectedPart(any(one.Fields), any(fields)))
		}
		c.failures = append(c.failures, Failure{Pos: one.Pos, What: what, Message: message})
		return
	}
	if len(got) > len(wanted) {
		c.failf("events", "events", "", "expected %d events of these kinds, got %d:\n%s", len(wanted), len(got), listEvents(got))
	}
}

// fieldsOf returns the fields of an event that a test can compare.
func fieldsOf(event runs.Event) map[string]any {
	encoded, err := json.Marshal(event)
	if err != nil {
		return nil
	}
	value, err := expression.Decode(encoded)
	if err != nil {
		return nil
	}
	return expression.MapOf(value)
}

func wantedEvent(event *playbook.TestEvent) string {
	if len(event.Fields) == 0 {
		return event.Name
	}
	return event.Name + " " + flowOf(event.Fields)
}

// briefEvent returns an event on one line, without its time.
func briefEvent(event runs.Event) string {
	fields := fieldsOf(event)
	for _, name := range []string{"event", "at", "duration", "next_retry_at", "stats"} {
		delete(fields, name)
	}
	if event.Error != nil {
		fields["error"] = event.Error.ShortText()
	}
	return source.CutText(event.Event+" "+flowOf(fields), shownBrief)
}

func listEvents(all []runs.Event) string {
	if len(all) == 0 {
		return "  none"
	}
	lines := lists.Map(all[:min(len(all), shownEntries)], func(event runs.Event) string { return "  " + briefEvent(event) })
	if more := len(all) - shownEntries; more > 0 {
		lines = append(lines, fmt.Sprintf("  … %d more", more))
	}
	return strings.Join(lines, "\n")
}

// checkEvents finds unknown names of events and of their fields.
func checkEvents(file *source.File, test *playbook.Test, known names) (found source.Diagnostics) {
	fields := eventFields()
	for _, event := range test.Expect.Events {
		if kinds := runs.KindNames(); !slices.Contains(kinds, event.Name) {
			found = append(found, newProblem(file, event.Pos, "unknown-name", "unknown event %q%s", event.Name, nearestName(event.Name, kinds)))
		}
		for _, name := range playbook.SortedKeys(event.Fields) {
			if !slices.Contains(fields, name) {
				found = append(found, newProblem(file, event.Pos, "unknown-name", "unknown event field %q%s", name, nearestName(name, fields)))
			}
		}
		if step, isText := event.Fields["step"].(string); isText && conditionOf(step) == nil && known.steps[step] == nil {
			found = append(found, newProblem(file, event.Pos, "unknown-name", "the playbook has no step %q%s", step, nearestName(step, known.allNames())))
		}
	}
	return found
}

func nearestName(name string, of []string) string {
	if near := expression.Suggest(name, of); near != "" {
		return "; did you mean \"" + near + "\"?"
	}
	return "; expected one of " + strings.Join(of, ", ")
}

// eventFields returns the names of the fields of events.
func eventFields() (names []string) {
	of := reflect.TypeFor[runs.Event]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && name != "event" {
			names = append(names, name)
		}
	}
	return names
}
