package call

import (
	"slices"
	"time"

	"reprise/interpreter"
)

// Todo is one thing that a call has still to do: the one field that is set. Two
// rows of them are possible, each behind the sink of a page or without it: an
// attempt, which may have to wait or be held, or which has been sent and is awaited;
// or sinks, the dead letter last, and the end. Kept with State.
type Todo struct {
	Attempt *PendingAttempt         `json:"attempt,omitempty"`
	Await   *Awaited                `json:"await,omitempty"`
	Wait    *interpreter.Wait       `json:"wait,omitempty"`
	Hold    *interpreter.Hold       `json:"hold,omitempty"`
	Sink    *pendingSink            `json:"sink,omitempty"`
	State   *PendingState           `json:"state,omitempty"`
	End     *interpreter.CallResult `json:"end,omitempty"`
}

// PendingAttempt is an attempt that has to be made. Kept with State.
type PendingAttempt struct {
	// Request is the one of the next page, while the sink of the page before is to
	// be written; then it becomes that of the state.
	Request *Request `json:"request,omitempty"`
}

// pendingSink is a sink that has to run: by the number of its policy, from
// Config.After, or Config.DeadLetter. Kept with State.
type pendingSink struct {
	Policy     int  `json:"policy,omitempty"`
	Page       bool `json:"page,omitempty"`
	After      int  `json:"after,omitempty"`
	DeadLetter bool `json:"dead_letter,omitempty"`
	// Do is what it does to the rows that it has staged; the zero value writes rows.
	Do interpreter.StagingStep `json:"do,omitempty"`
	// State is how far its call has come, where that was carried while it waited.
	State *State `json:"state,omitempty"`
}

// head is what comes next; nothing where the call has not begun.
func (s *State) head() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[0]
}

// last is what the call comes to without a failure: an attempt or the end.
func (s *State) last() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[len(s.Todo)-1]
}

// held is why the call is held, nil where it is not.
func (s *State) held() *interpreter.Hold { return s.head().Hold }

// wait is what the call waits for by itself, nil for nothing.
func (s *State) wait() *interpreter.Wait {
	switch head := s.head(); {
	case head.Wait != nil:
		return head.Wait
	case head.Hold != nil:
		wait := head.Hold.Wait(s.Failure())
		return &wait
	}
	return nil
}

// again asks for the same request again, after a wait where there is one.
func (s *State) again(wait *interpreter.Wait) { s.Todo = attemptAfter(wait, nil) }

// attemptAfter is an attempt that is still to do, of another request where that is
// not nil.
func attemptAfter(wait *interpreter.Wait, request *Request) []Todo {
	todo := Todo{Attempt: &PendingAttempt{Request: request}}
	if wait == nil {
		return []Todo{todo}
	}
	return []Todo{{Wait: wait}, todo}
}

// behindPage takes up what waits for the sink of a page, unless that is due: the
// request of the next page, or the failure that the call ends with.
func (s *State) behindPage() {
	if sink := s.head().Sink; sink != nil && sink.Page {
		return
	}
	switch last := s.last(); {
	case last.Attempt != nil && last.Attempt.Request != nil:
		s.Request = *last.Attempt.Request
		s.RequestAttempts, s.Lost = 0, 0
		s.replaceLast(Todo{Attempt: &PendingAttempt{}})
	case last.End != nil && last.End.Failed() && s.Last.Error == nil:
		s.Last.Error = last.End.Error
	}
}

// replaceLast puts another attempt or end in the place of the last one.
func (s *State) replaceLast(todo Todo) {
	s.Todo = slices.Clone(s.Todo)
	s.Todo[len(s.Todo)-1] = todo
}

// endsBehindSinks moves the end of a call whose sinks are all done to a time. Until then its
// result, which the sinks see, has the time of the decision.
func (c *Call) endsBehindSinks(now time.Time) {
	if c.state.head().End == nil {
		return
	}
	result := *c.state.head().End
	result.Meta.EndedAt = now
	c.showIncremental(&result)
	c.showLeftOut(&result)
	c.state.replaceLast(Todo{End: &result})
}

// warn adds a warning to the result of the call.
func (s *State) warn(warnings ...string) {
	if len(warnings) == 0 {
		return
	}
	if end := s.last().End; end != nil {
		result := *end
		result.Warnings = slices.Concat(result.Warnings, warnings)
		s.replaceLast(Todo{End: &result})
		return
	}
	s.Warnings = slices.Concat(s.Warnings, warnings)
}
