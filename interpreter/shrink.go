package interpreter

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// What is too large to cross a boundary is cut down to a size before it does.
// Here is what each thing goes without first, and what it says of that. Counts,
// statuses and messages stay; sizes are bytes of JSON, see EncodedSize.

// MaxFailureDetails is what Temporal surely keeps of a failure's details, in bytes. It drops
// larger details, and the run would end without saying why.
const MaxFailureDetails = 100_000

// bulky is the size from which data is left out of an error that has to be small.
const bulky = 2000

// warningRoom is more than the size of a warning that says what was left out.
const warningRoom = 200

// Measure returns the size of a value that is about to cross a boundary, and the
// error of one that cannot, because it is larger than most.
func Measure(v any, most int, what string) (int, *ErrorObject) {
	size := EncodedSize(v)
	return size, CheckSize(size, most, what)
}

// CheckSize returns the error of what has more bytes than may cross a boundary.
func CheckSize(size, most int, what string) *ErrorObject {
	if size <= most {
		return nil
	}
	return tooLarge(fmt.Sprintf("%s has %d bytes, more than the %d that a payload may have; "+
		"write rows with a sink instead of returning them", what, size, most))
}

func tooLarge(message string) *ErrorObject {
	return &ErrorObject{Kind: KindPayloadTooLarge, Class: ClassFinal, Message: message}
}

// TooLargeResult replaces the result of an iteration that is too large.
func TooLargeResult(result CallResult, step *playbook.Step, message string) CallResult {
	return CallResult{
		Status: StatusError, Error: tooLarge(message), Meta: result.Meta,
		Warnings: append(result.Warnings, Unwritten(step)...),
	}
}

// ShortMessage is the error's message without the end of one that is very long.
func (e *ErrorObject) ShortMessage() string {
	const shown = 2000
	return source.Cut(e.Message, shown)
}

// BriefError is the error without what answers held.
func (e *ErrorObject) BriefError() ErrorObject {
	small := *e
	small.Message, small.Headers, small.Body, small.Collected = e.ShortMessage(), nil, expression.Value{}, expression.Value{}
	small.URL, small.Params = "", expression.Value{} // the message has the address
	return small
}

// ShrunkError is an error without its bulky data: what was collected, the body, or
// both. Headers and params go first: a loop may have many errors with a few of them each.
func (e *ErrorObject) ShrunkError() *ErrorObject {
	if e == nil {
		return nil
	}
	small := *e
	small.Headers, small.Params = nil, expression.Value{}
	if EncodedSize(small) <= bulky {
		return &small
	}
	small.Message = small.ShortMessage()
	parts := []struct {
		value *expression.Value
		note  string
	}{
		{&small.Collected, " (the collected data is too large to keep)"},
		{&small.Body, " (the body is too large to keep)"},
	}
	if EncodedSize(small.Body) > EncodedSize(small.Collected) {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if EncodedSize(small.Collected)+EncodedSize(small.Body) > bulky {
			*part.value = expression.Value{}
			small.Message += part.note
		}
	}
	return &small
}

// ShrinkResult makes sure that a call's result has at most most bytes. An error goes
// without its bulk, and data that is too large is a failure that says so; what is
// the result in words.
func (r *CallResult) ShrinkResult(what string, most int) {
	_, failure := Measure(r, most, what)
	if failure == nil {
		return
	}
	if !r.Failed() {
		r.Status, r.Error, r.Data = StatusError, failure, expression.Value{}
		return
	}
	r.Error = r.Error.ShrunkError()
	if EncodedSize(r) > most {
		r.Data = expression.Value{} // of a call whose sink failed
	}
}

// Shrink makes sure that a loop's result has at most most bytes. What failed
// iterations had collected is left out first; a loop whose results are too large
// fails and says so.
func (l *LoopResult) Shrink(step string, most int) {
	if EncodedSize(l) <= most {
		return
	}
	for i := range l.Errors {
		l.Errors[i].Error = l.Errors[i].Error.ShrunkError()
	}
	_, failure := Measure(l, most, "the result of loop "+step)
	if failure == nil {
		return
	}
	if pending := l.dropPending(); pending > most/2 {
		failure = tooLarge(fmt.Sprintf("the states of loop %s have %d bytes, and its result can keep %d until the run ends; "+
			"write to a table of postgres or sqlite, which stores any number of states beside its rows: loop: {…, sink: {tool: postgres, …}}", step, pending, most))
	}
	l.Results = make([]expression.Value, len(l.Results))
	l.Budget = failure
	if EncodedSize(l) > most {
		l.cutErrors(step, most)
	}
}

// dropPending gives up moves that wait for the end of the run, of a loop that fails, and gives their
// size.
func (l *LoopResult) dropPending() int {
	if l.Incremental == nil || l.Incremental.Pending == nil {
		return 0
	}
	size, without := EncodedSize(l.Incremental.Pending), *l.Incremental
	without.Pending = nil
	l.Incremental = &without
	return size
}

// cutErrors keeps as many errors of a loop as surely have room; the stats still
// count all of them.
func (l *LoopResult) cutErrors(step string, most int) {
	all := len(l.Errors)
	l.Errors = l.Errors[:errorsWithin(l.Errors, 0, most/2)]
	l.Warnings = []string{fmt.Sprintf("step %s: of %d errors, only the first %d are kept; "+
		"see the child workflows for the others", step, all, len(l.Errors))}
}

// errorsWithin is how many of the errors, from the first, take at most room bytes, with
// so many more for each.
func errorsWithin(errors []LoopError, between, room int) int {
	size := 0
	for i, failure := range errors {
		if size += EncodedSize(failure) + between; size > room {
			return i
		}
	}
	return len(errors)
}

// aroundResult is more bytes than an output of one call has around its result.
const aroundResult = 1000

// Shrink makes sure that the output has at most most bytes: a result that is
// too large becomes a failure that says so, and bulky error data is left out.
func (o *CallsOutput) Shrink(step *playbook.Step, most int) {
	if step.Loop == nil {
		for i := range o.Iterations {
			o.Iterations[i].Result.ShrinkResult("the result of step "+step.Name, most-aroundResult)
		}
		return
	}
	share := (most - MaxFailureDetails) / max(len(o.Iterations), 1)
	for i := range o.Iterations {
		result := &o.Iterations[i].Result
		result.Meta.Tool = ToolMeta{} // headers, which no loop's result has
		if result.Failed() {
			result.Data = expression.Value{} // of a call whose sink failed; neither has a loop's result that
		}
		if size := EncodedSize(result.Data); size > share {
			*result = TooLargeResult(*result, step, fmt.Sprintf("the result of iteration %d has %d bytes, more than the %d that it may have; "+
				"write rows with a sink and return less", o.Iterations[i].Index, size, share))
		}
		if EncodedSize(result.Error) > MaxFailureDetails {
			result.Error = result.Error.ShrunkError()
		}
	}
	if EncodedSize(o) <= most {
		return
	}
	for i := range o.Iterations {
		o.Iterations[i].Result.Error = o.Iterations[i].Result.Error.ShrunkError()
	}
}
