package interpreter

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Values that exceed the size of a payload are reduced before they are sent. This file defines what each kind of
// value omits first, and how it reports that. Counts, statuses and messages are kept; sizes are bytes of JSON, see
// EncodedSize.

// MaxFailureDetails is a size of failure details, in bytes, that Temporal reliably stores. It drops larger details,
// and the run would end without an explanation.
const MaxFailureDetails = 100_000

// bulky is the size, in bytes, above which data is removed from an error that has to be small.
const bulky = 2000

// warningRoom is an upper bound for the size of a warning about removed data.
const warningRoom = 200

// MeasureSize returns the encoded size of a value, and an error if it exceeds most; what describes the value in the
// message.
func MeasureSize(v any, most int, what string) (int, *ErrorObject) {
	size := EncodedSize(v)
	return size, CheckSize(size, most, what)
}

// CheckSize returns an error if size exceeds most bytes.
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

// TooLargeResult returns the failure that replaces an iteration's result which is too large.
func TooLargeResult(result CallResult, step *playbook.Step, message string) CallResult {
	return CallResult{
		Status: StatusError, Error: tooLarge(message), Meta: result.Meta,
		Warnings: append(result.Warnings, UnwrittenWarnings(step)...),
	}
}

// ShortMessage returns the error's message, cut off if it is very long.
func (e *ErrorObject) ShortMessage() string {
	const shown = 2000
	return source.CutText(e.Message, shown)
}

// BriefError returns the error without contents of responses.
func (e *ErrorObject) BriefError() ErrorObject {
	small := *e
	small.Message, small.Headers, small.Body, small.Collected = e.ShortMessage(), nil, expression.Value{}, expression.Value{}
	small.URL, small.Params = "", expression.Value{} // the message has the address
	return small
}

// ShrunkError returns the error without large data: first headers and params, since a loop may have many errors
// with a few of them each, then collected data, the body, or both.
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

// shownBody is how many bytes of a body a query returns: its beginning, and its end, which often has the cause. A run may have
// a thousand records.
const shownBody = 1000

// ShownError returns the error for the answer to a query: as ShrunkError, but with both ends of a large body.
func (e *ErrorObject) ShownError() *ErrorObject {
	if e == nil || EncodedSize(e.Body) <= shownBody {
		return e.ShrunkError()
	}
	shown := *e
	shown.Body = expression.Of(source.CutEnds(expression.Text(e.Body.Data), shownBody))
	return shown.ShrunkError()
}

// ShrinkResult reduces a call's result to most bytes. An error loses its large data; data that is too large becomes
// a failure that says so. what describes the result in the message.
func (r *CallResult) ShrinkResult(what string, most int) {
	_, failure := MeasureSize(r, most, what)
	if failure == nil {
		return
	}
	if !r.Failed() {
		r.Status, r.Error, r.Data = StatusError, failure, expression.Value{}
		return
	}
	r.Error = r.Error.ShrunkError()
	if EncodedSize(r) > most {
		r.Data = expression.Value{} // the data of a call whose sink failed
	}
}

// Shrink reduces a loop's result to most bytes. Data collected by failed iterations is removed first; a loop whose
// results are too large fails with an error that says so.
func (l *LoopResult) Shrink(step string, most int) {
	if EncodedSize(l) <= most {
		return
	}
	for i := range l.Errors {
		l.Errors[i].Error = l.Errors[i].Error.ShrunkError()
	}
	_, failure := MeasureSize(l, most, "the result of loop "+step)
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

// dropPending removes the moves at the end of the run, because the loop fails, and returns their size.
func (l *LoopResult) dropPending() int {
	if l.Incremental == nil || l.Incremental.Pending == nil {
		return 0
	}
	size, without := EncodedSize(l.Incremental.Pending), *l.Incremental
	without.Pending = nil
	l.Incremental = &without
	return size
}

// cutErrors keeps as many errors of a loop as fit into half of most bytes; the stats still count all of them.
func (l *LoopResult) cutErrors(step string, most int) {
	all := len(l.Errors)
	l.Errors = l.Errors[:countErrorsWithin(l.Errors, 0, most/2)]
	l.Warnings = []string{fmt.Sprintf("step %s: of %d errors, only the first %d are kept; "+
		"see the child workflows for the others", step, all, len(l.Errors))}
}

// countErrorsWithin returns how many errors, from the first, fit into room bytes, with between bytes added to each.
func countErrorsWithin(errors []LoopError, between, room int) int {
	size := 0
	for i, failure := range errors {
		if size += EncodedSize(failure) + between; size > room {
			return i
		}
	}
	return len(errors)
}

// aroundResult is an upper bound for the bytes that the output of one call has in addition to its result.
const aroundResult = 1000

// Shrink reduces the output to most bytes: a result that is too large becomes a failure that says so, and large
// data of errors is removed.
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
		result.Meta.Tool = ToolMeta{} // headers, which no loop's result contains
		if result.Failed() {
			result.Data = expression.Value{} // the data of a call whose sink failed, which a loop's result does not contain either
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
