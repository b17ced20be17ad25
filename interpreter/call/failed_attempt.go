package call

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// FailedAttempt describes a failed attempt and what was decided about it, for logs.
type FailedAttempt struct {
	// Ended says that the failure ended the call; otherwise another attempt follows.
	Ended bool
	Retry int    // number of the retry that follows, from 1; 0 if the call has ended
	Where string // the call's place in the playbook
	Step  string
	Visit int
	Index *int   // index of the iteration, nil without a loop
	Sink  string // place of the sink, "" for the call of a step
	// OperationKey is the key of the request; "" if the call restarts.
	OperationKey string
	Next         string // description of what follows, "" if the call has ended
	Error        *interpreter.ErrorObject
}

// loggedBody bounds the part of an error's body that is logged, in characters.
const loggedBody = 4000

// Message returns the log message.
func (f *FailedAttempt) Message() string {
	if f.Ended {
		return "attempt failed"
	}
	return "attempt failed, will retry"
}

// Fields returns key-value pairs for a structured log.
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

// LogFields returns the key-value pairs that identify an attempt in a log; empty values are omitted.
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

// bodyText returns the logged part of an error's body: the end of a traceback, the beginning of anything else.
func bodyText(body any) string {
	trace, isTrace := expression.MapMember(body, "traceback").(string)
	if !isTrace {
		text := []rune(expression.Text(body))
		return string(text[:min(len(text), loggedBody)])
	}
	text := []rune(trace)
	return string(text[max(0, len(text)-loggedBody):])
}
