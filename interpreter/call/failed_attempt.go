package call

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// FailedAttempt is what was decided about an attempt that failed, for logs.
type FailedAttempt struct {
	// Ended says that the failure ended the call; else there will be another
	// attempt.
	Ended bool
	Retry int    // which retry of the request follows, from 1; 0 where the call has ended
	Where string // of the call
	Step  string
	Visit int
	Index *int   // of the iteration, nil without a loop
	Sink  string // its place in the playbook, "" for a step's own call
	// OperationKey is the key of the request; "" where the call has begun again.
	OperationKey string
	Next         string // what follows, "" where the call has ended
	Error        *interpreter.ErrorObject
}

// loggedBody bounds what a log gets of an error's body, in characters.
const loggedBody = 4000

// Message is the attempt and what follows it in a line.
func (f *FailedAttempt) Message() string {
	if f.Ended {
		return "attempt failed"
	}
	return "attempt failed, will retry"
}

// Fields are the same as pairs for a structured log.
func (f *FailedAttempt) Fields() []any {
	fields := append([]any{"call", f.Where}, LogFields(f.Step, f.Visit, f.Index, f.Sink, f.Error.Page, f.Error.Attempt, f.OperationKey)...)
	fields = append(fields, "kind", string(f.Error.Kind), "error", f.Error.Message)
	if f.Error.URL != "" {
		fields = append(fields, "url", f.Error.URL)
	}
	if f.Next != "" {
		return append(fields, "next", f.Next)
	}
	if body := f.Error.Body.Data; body != nil {
		fields = append(fields, "body", bodyText(body))
	}
	return fields
}

// LogFields say which attempt a record of a log is about; what is nil or "" is
// left out.
func LogFields(step string, visit int, index *int, sink string, page, attempt int, operation string) []any {
	fields := []any{"step", step, "visit", visit, "page", page, "attempt", attempt}
	if index != nil {
		fields = append(fields, "index", *index)
	}
	if sink != "" {
		fields = append(fields, "sink", sink)
	}
	if operation != "" {
		fields = append(fields, "operation_key", operation)
	}
	return fields
}

// bodyText is an error's body in a log: of a traceback the end, of anything else
// the beginning.
func bodyText(body any) string {
	trace, isTrace := expression.Member(body, "traceback").(string)
	if !isTrace {
		text := []rune(expression.Text(body))
		return string(text[:min(len(text), loggedBody)])
	}
	text := []rune(trace)
	return string(text[max(0, len(text)-loggedBody):])
}
