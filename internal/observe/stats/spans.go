package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// Kinds of spans.
const (
	Attempt   = "attempt" // several pages that were fetched together are one
	Wait      = "wait"
	Iteration = "iteration"
	Step      = "step" // a visit of it
)

// Span is a time during which something was running.
type Span struct {
	Of       string
	From, To time.Time
	// Event is the event that ended the span, or the one that began it if Open is set. For a wait it is the one that
	// describes it.
	Event runs.Event
	Open  bool
	// Ended is how an open iteration ended whose end is not reported yet, and To when; "" for others.
	Ended interpreter.Status
	// Failures and Retries are the numbers of failed and repeated attempts of an open item.
	Failures, Retries int
}

// SpanBuilder converts the events of one run, in order, to spans. It holds only what is running.
type SpanBuilder struct {
	emit  func(Span)
	items map[item]*openItem
}

// item identifies an iteration or a step visit.
type item struct {
	step  string
	visit int
	index int // -1 of a step
}

// openItem is what is known about an item that has not ended.
type openItem struct {
	began *runs.Event
	last  *runs.Event      // the event with which the iteration has ended, if its end is not reported yet
	calls map[string]*call // by the place of their sink, "" of the item's own
}

type call struct {
	attempt, wait *runs.Event
	made          int // attempts
	failed        int // of them
	retries       int // attempts that were made again after a failure
}

// NewSpans returns a builder that calls emit with every span when it has ended.
func NewSpans(emit func(Span)) *SpanBuilder {
	return &SpanBuilder{emit: emit, items: map[item]*openItem{}}
}

func itemOf(event runs.Event) item {
	of := item{event.Step, event.Visit, -1}
	if event.Index != nil {
		of.index = *event.Index
	}
	return of
}

// AddEvent applies an event. Events without a step, such as notices of the run, have no span.
func (s *SpanBuilder) AddEvent(event runs.Event) {
	if event.Step == "" {
		return
	}
	kind := event.Kind()
	if event.Ended != "" && kind.Phase != runs.Begins {
		s.itemOf(event).last = &event
	}
	switch kind.Phase {
	case runs.Begins:
		s.beginSubject(event, kind.Of)
	case runs.Ends:
		s.endSubject(event, kind.Of)
	}
}

// beginSubject applies the beginning of a subject.
func (s *SpanBuilder) beginSubject(event runs.Event, of runs.Subject) {
	switch of {
	case runs.OfStep, runs.OfIteration:
		s.itemOf(event).began = &event
	case runs.OfAttempt:
		call := s.callOf(event)
		s.endWait(call, event.At)
		call.attempt, call.made = &event, max(event.Attempt, event.AttemptTo)
		if event.IsRetry {
			call.retries++
		}
	case runs.OfWait:
		call := s.callOf(event)
		s.endWait(call, event.At)
		call.wait = &event
	}
}

// endSubject applies the end of a subject.
func (s *SpanBuilder) endSubject(event runs.Event, of runs.Subject) {
	switch of {
	case runs.OfAttempt:
		call := s.callOf(event)
		from := event.At.Add(-toDuration(event.Duration))
		to := call.sentAt(from, event.At)
		s.endWait(call, event.At)
		call.attempt = nil
		if event.Error != nil {
			call.failed++
		}
		s.emit(Span{Of: Attempt, From: from, To: to, Event: event})
	case runs.OfIteration:
		s.endItem(event, Iteration)
	case runs.OfStep:
		if event.Event == runs.StepResult && event.Stats != nil && event.Status == interpreter.Failed {
			return // the terminal failure of the loop comes behind it
		}
		s.endItem(event, Step)
	}
}

// Close ends the open spans: the run has ended, or is no longer read.
func (s *SpanBuilder) Close(at time.Time) {
	all := slices.SortedFunc(maps.Keys(s.items), func(x, y item) int {
		return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(x.visit, y.visit), cmp.Compare(x.index, y.index))
	})
	for _, of := range all {
		state := s.items[of]
		for _, call := range state.calls {
			to := at
			if call.attempt != nil {
				to = call.sentAt(call.attempt.At, laterOf(call.attempt.At, at))
			}
			s.endWait(call, at)
			if call.attempt != nil {
				s.emit(Span{Of: Attempt, From: call.attempt.At, To: to, Event: *call.attempt, Open: true})
			}
		}
		if state.began == nil {
			continue
		}
		span := Span{Of: Step, From: state.began.At, To: laterOf(state.began.At, at), Event: *state.began, Open: true}
		if of.index >= 0 {
			span.Of = Iteration
		}
		if last := state.last; last != nil {
			span.To, span.Ended = laterOf(span.From, last.At), last.Ended
		}
		if own := state.calls[""]; own != nil {
			span.Event.Attempts, span.Failures, span.Retries = own.made, own.failed, own.retries
		}
		s.emit(span)
	}
	clear(s.items)
}

// sentAt returns when a request that awaits an answer from outside was sent; for other attempts, their end. Waiting
// for people does not count as work.
func (c *call) sentAt(from, to time.Time) time.Time {
	if c.wait == nil || c.wait.Event != runs.AnswerAwaited || c.wait.At.After(to) {
		return to
	}
	return laterOf(from, c.wait.At)
}

func (s *SpanBuilder) itemOf(event runs.Event) *openItem {
	of := itemOf(event)
	if s.items[of] == nil {
		s.items[of] = &openItem{calls: map[string]*call{}}
	}
	return s.items[of]
}

func (s *SpanBuilder) callOf(event runs.Event) *call {
	of := s.itemOf(event)
	if of.calls[event.Sink] == nil {
		of.calls[event.Sink] = &call{}
	}
	return of.calls[event.Sink]
}

// endWait ends the wait of a call: when it was due, or earlier if it was cut short.
func (s *SpanBuilder) endWait(of *call, at time.Time) {
	wait := of.wait
	if of.wait = nil; wait == nil {
		return
	}
	to := laterOf(wait.At, at)
	span := Span{Of: Wait, From: wait.At, To: to, Event: *wait}
	if !wait.NextRetryAt.IsZero() && wait.NextRetryAt.Before(to) {
		span.To = wait.NextRetryAt
	}
	s.emit(span)
}

// endItem ends an item and everything in it.
func (s *SpanBuilder) endItem(event runs.Event, kind string) {
	of := itemOf(event)
	state := s.items[of]
	span := Span{Of: kind, From: event.At.Add(-toDuration(event.Duration)), To: event.At, Event: event}
	if state != nil {
		for _, call := range state.calls {
			s.endWait(call, event.At)
		}
		if state.began != nil {
			span.From = state.began.At
		}
		delete(s.items, of)
	}
	s.emit(span)
}

func laterOf(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
