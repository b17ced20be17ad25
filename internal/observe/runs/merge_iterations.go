package runs

import (
	"fmt"
	"time"

	"reprise/workflows"
)

// frames keep what an iteration does within its start and its end. These come from the history of its
// loop, with times that may be by the clock of a worker; what it does comes from another history, with times of
// the server.
type frames map[string]*frame

// frame is an iteration that has not ended.
type frame struct {
	start *Event    // that was not emitted yet, nil for none
	last  time.Time // when it is known to have done something last
}

func frameOf(event Event) string {
	return fmt.Sprintf("%s#%d/%d", event.Step, event.Visit, *event.Index)
}

// of is the frame of an event's iteration.
func (f frames) of(event Event) *frame {
	key := frameOf(event)
	if f[key] == nil {
		f[key] = &frame{}
	}
	return f[key]
}

// queued notes an event of a workflow of a type.
func (f frames) queued(event Event, workflow string) {
	switch {
	case event.Index == nil:
	case event.Event == IterationStarted:
		f.of(event).start = &event
	case workflow == workflows.CallsWorkflowName:
		if of := f.of(event); of.last.Before(event.At) {
			of.last = event.At
		}
	}
}

// due is when an event may be emitted: the end of an iteration not before all that it has done.
func (f frames) due(it item) time.Time {
	if it.rank() > 0 {
		if of := f[frameOf(it.event)]; of != nil && it.at.Before(of.last) {
			return of.last
		}
	}
	return it.at
}

// emitted gives the events to emit where one is next: the start of its iteration first,
// which was to come later, and no start twice.
func (f frames) emitted(event Event) []Event {
	if event.Index == nil || f[frameOf(event)] == nil {
		return []Event{event}
	}
	of := f.of(event)
	start := of.start
	of.start = nil
	if kind := event.Kind(); kind.Of == OfIteration && kind.Phase == Ends {
		delete(f, frameOf(event))
	}
	switch {
	case event.Event == IterationStarted && start == nil:
		return nil
	case event.Event != IterationStarted && start != nil:
		began := *start
		began.At = event.At
		return []Event{began, event}
	}
	return []Event{event}
}
