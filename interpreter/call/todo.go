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

// Todo is one thing that a call still has to do: exactly one field is set. After the sinks of a page, if any, a
// list of them is either an attempt, possibly preceded by a wait, a hold, or an await of an attempt already sent;
// or it is sinks, the dead letter last, and the end. Kept with State.
type Todo struct {
	Attempt *PendingAttempt         `json:"attempt,omitempty"`
	Await   *await.AnswerWait       `json:"await,omitempty"`
	Wait    *interpreter.Wait       `json:"wait,omitempty"`
	Hold    *interpreter.Hold       `json:"hold,omitempty"`
	Sink    *pendingSink            `json:"sink,omitempty"`
	State   *watermark.Pending      `json:"state,omitempty"`
	End     *interpreter.CallResult `json:"end,omitempty"`
}

// PendingAttempt is a due attempt. Kept with State.
type PendingAttempt struct {
	// Request is the request of the next page, until the sink of the page before is written; then it becomes the
	// current one of the state.
	Request *request.Request `json:"request,omitempty"`
	// Slice is the slice of time that the request starts; nil if the request belongs to the current one.
	Slice *incremental.Slice `json:"slice,omitempty"`
}

// pendingSink is a due sink. Kept with State.
type pendingSink struct {
	sink.Choice
	// State is the state of the sink's call if another host has driven it.
	State *State `json:"state,omitempty"`
}

// sinkTodo returns a Todo for each chosen sink.
func sinkTodo(chosen ...sink.Choice) []Todo {
	todo := make([]Todo, len(chosen))
	for i, choice := range chosen {
		todo[i].Sink = &pendingSink{Choice: choice}
	}
	return todo
}

// moveTodo returns a Todo that moves the state of the step; none for nil.
func moveTodo(move *incremental.Move) []Todo {
	if move == nil {
		return nil
	}
	return []Todo{{State: &watermark.Pending{Move: move}}}
}

// hasBegun reports whether the call has begun.
func (s *State) hasBegun() bool { return len(s.Todo) > 0 }

// nextTodo returns the next Todo; the zero value if the call has not begun.
func (s *State) nextTodo() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[0]
}

// lastTodo returns the attempt or the end that the list ends with.
func (s *State) lastTodo() Todo {
	if len(s.Todo) == 0 {
		return Todo{}
	}
	return s.Todo[len(s.Todo)-1]
}

// currentHold returns why the call is held, nil if it is not.
func (s *State) currentHold() *interpreter.Hold { return s.nextTodo().Hold }

// pendingWait returns the wait of the call itself, not of its sink; nil for none.
func (s *State) pendingWait() *interpreter.Wait {
	switch head := s.nextTodo(); {
	case head.Wait != nil:
		return head.Wait
	case head.Hold != nil:
		wait := head.Hold.DescribeWait(s.LastFailure())
		return &wait
	}
	return nil
}

// requestAgain schedules the same request again, after wait if it is not nil.
func (s *State) requestAgain(wait *interpreter.Wait) { s.Todo = attemptAfter(wait, nil) }

// attemptAfter returns the Todo of an attempt after a wait, which may be nil; next is its request, nil for the
// current one.
func attemptAfter(wait *interpreter.Wait, next *request.Request) []Todo {
	todo := Todo{Attempt: &PendingAttempt{Request: next}}
	if wait == nil {
		return []Todo{todo}
	}
	return []Todo{{Wait: wait}, todo}
}

// continueAfterPage continues once the sinks of a page are done: with the request of the next page, or with the failure
// that ends the call. It does nothing while a sink of the page is still due.
func (s *State) continueAfterPage() {
	if sink := s.nextTodo().Sink; sink != nil && sink.Page {
		return
	}
	switch last := s.lastTodo(); {
	case last.Attempt != nil && last.Attempt.Request != nil:
		s.Requests.SetCurrent(*last.Attempt.Request)
		s.RequestAttempts, s.Lost = 0, 0
		if slice := last.Attempt.Slice; slice != nil {
			s.Watermark = s.Watermark.WithSlice(slice)
		}
		s.replaceLast(Todo{Attempt: &PendingAttempt{}})
	case last.End != nil && last.End.Failed() && s.Last.Error == nil:
		s.Last.Error = last.End.Error
	}
}

// replaceLast replaces the last Todo.
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

// warnOnce adds a warning unless the state already has it.
func (s *State) warnOnce(warning string) {
	if !slices.Contains(s.Warnings, warning) {
		s.addWarnings(warning)
	}
}

// LastFailure returns the failure of the last attempt, or of a poll that waits for people; nil for none.
func (s *State) LastFailure() *interpreter.ErrorObject {
	if hold := s.nextTodo().Hold; hold != nil && hold.Failure != nil {
		return hold.Failure
	}
	return s.Last.Error
}

// isBeyond reports whether the call has advanced since an earlier state: it has made an attempt, its sink has
// begun, or something else is next.
func (s *State) isBeyond(before State) bool {
	head, was := s.nextTodo(), before.nextTodo()
	return s.Attempts != before.Attempts || s.Written != before.Written ||
		(head.Attempt == nil) != (was.Attempt == nil) || head.Sink != nil && head.Sink.State != nil
}

// dropHead removes the first Todo, which is done.
func (s *State) dropHead() { s.Todo = s.Todo[1:] }
