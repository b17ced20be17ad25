package call

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/incremental"
)

// Todo is one thing that is left to do in a call: exactly one field is set. A list of them has
// one of two forms, either of them after the sink of a page: an attempt, which may have to
// wait, be held, or be awaited after it was sent; or sinks, the dead letter last, and the end.
// Kept with State.
type Todo struct {
	Attempt *PendingAttempt         `json:"attempt,omitempty"`
	Await   *await.Awaited          `json:"await,omitempty"`
	Wait    *interpreter.Wait       `json:"wait,omitempty"`
	Hold    *interpreter.Hold       `json:"hold,omitempty"`
	Sink    *pendingSink            `json:"sink,omitempty"`
	State   *watermark.Pending      `json:"state,omitempty"`
	End     *interpreter.CallResult `json:"end,omitempty"`
}

// PendingAttempt is an attempt that is due. Kept with State.
type PendingAttempt struct {
	// Request is the one of the next page, while the sink of the page before is to
	// be written; then it becomes the state's.
	Request *request.Request `json:"request,omitempty"`
	// Slice is the slice of time that begins with the request; nil if the request belongs to the current one.
	Slice *incremental.Slice `json:"slice,omitempty"`
}

// pendingSink is a sink that is due. Kept with State.
type pendingSink struct {
	sink.Choice
	// State is the state of the sink's call if another host has driven it.
	State *State `json:"state,omitempty"`
}

// sinkTodo are sinks that have to run.
func sinkTodo(chosen ...sink.Choice) []Todo {
	todo := make([]Todo, len(chosen))
	for i, choice := range chosen {
		todo[i].Sink = &pendingSink{Choice: choice}
	}
	return todo
}

// moveTodo is a move of the state of the step, nothing for nil.
func moveTodo(move *incremental.Move) []Todo {
	if move == nil {
		return nil
	}
	return []Todo{{State: &watermark.Pending{Move: move}}}
}

// hasBegun reports whether anything of the call has happened.
func (s *State) hasBegun() bool { return len(s.Todo) > 0 }

// nextTodo returns the next Todo; the zero value if the call has not begun.
func (s *State) nextTodo() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[0]
}

// lastTodo is the attempt or the end that follows all else if nothing fails.
func (s *State) lastTodo() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[len(s.Todo)-1]
}

// heldBy is why the call is held, nil where it is not.
func (s *State) heldBy() *interpreter.Hold { return s.nextTodo().Hold }

// pendingWait returns the wait that the call is in by itself, nil for none.
func (s *State) pendingWait() *interpreter.Wait {
	switch head := s.nextTodo(); {
	case head.Wait != nil:
		return head.Wait
	case head.Hold != nil:
		wait := head.Hold.Wait(s.Failure())
		return &wait
	}
	return nil
}

// requestAgain asks for the same request again, after a wait where there is one.
func (s *State) requestAgain(wait *interpreter.Wait) { s.Todo = attemptAfter(wait, nil) }

// attemptAfter is an attempt that is still to do, of another request where that is
// not nil.
func attemptAfter(wait *interpreter.Wait, next *request.Request) []Todo {
	todo := Todo{Attempt: &PendingAttempt{Request: next}}
	if wait == nil {
		return []Todo{todo}
	}
	return []Todo{{Wait: wait}, todo}
}

// behindPage continues with what had to wait for the sink of a page: the request of the next page, or the failure with which the
// call ends. While the sink is still due it does nothing.
func (s *State) behindPage() {
	if sink := s.nextTodo().Sink; sink != nil && sink.Page {
		return
	}
	switch last := s.lastTodo(); {
	case last.Attempt != nil && last.Attempt.Request != nil:
		s.Requests.Use(*last.Attempt.Request)
		s.RequestAttempts, s.Lost = 0, 0
		if slice := last.Attempt.Slice; slice != nil {
			s.Watermark = s.Watermark.In(slice)
		}
		s.replaceLast(Todo{Attempt: &PendingAttempt{}})
	case last.End != nil && last.End.Failed() && s.Last.Error == nil:
		s.Last.Error = last.End.Error
	}
}

// replaceLast replaces the last attempt or end by another one.
func (s *State) replaceLast(todo Todo) {
	s.Todo = slices.Clone(s.Todo)
	s.Todo[len(s.Todo)-1] = todo
}

// addWarnings adds warnings to the result of the call.
func (s *State) addWarnings(warnings ...string) {
	if len(warnings) == 0 {
		return
	}
	if end := s.lastTodo().End; end != nil {
		result := *end
		result.Warnings = slices.Concat(result.Warnings, warnings)
		s.replaceLast(Todo{End: &result})
		return
	}
	s.Warnings = slices.Concat(s.Warnings, warnings)
}

// warnOnce is warn for what is found again and again.
func (s *State) warnOnce(warning string) {
	if !slices.Contains(s.Warnings, warning) {
		s.addWarnings(warning)
	}
}

// Failure is the failure of the last attempt, or of a poll that waits for people; nil for
// none.
func (s *State) Failure() *interpreter.ErrorObject {
	if hold := s.nextTodo().Hold; hold != nil && hold.Failure != nil {
		return hold.Failure
	}
	return s.Last.Error
}

// isBeyond reports whether the call has come further than an earlier state of it: it has made an attempt, its sink has begun, or
// something else is next.
func (s *State) isBeyond(before State) bool {
	head, was := s.nextTodo(), before.nextTodo()
	return s.Attempts != before.Attempts || s.Written != before.Written ||
		(head.Attempt == nil) != (was.Attempt == nil) || head.Sink != nil && head.Sink.State != nil
}

// dropHead drops what is done.
func (s *State) dropHead() { s.Todo = s.Todo[1:] }
