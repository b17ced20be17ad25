package interpreter

import "reprise/interpreter/expression"

// Verdict is what was decided about an attempt that failed, for logs.
type Verdict struct {
	// Ended says that the failure ended the call; else there will be another
	// attempt.
	Ended bool
	Retry int    // which retry of the request follows, from 1; 0 where the call has ended
	Where string // of the call
	Index *int   // of the iteration, nil without a loop
	Next  string // what follows, "" where the call has ended
	Error *ErrorObject
}

// mostLoggedBody bounds what a log gets of an error's body, in characters.
const mostLoggedBody = 4000

// Message is the verdict in a line.
func (v *Verdict) Message() string {
	if v.Ended {
		return "an attempt failed and ended its call"
	}
	return "an attempt failed and is made again"
}

// Fields are the verdict as pairs for a structured log.
func (v *Verdict) Fields() []any {
	fields := []any{"call", v.Where, "attempt", v.Error.Attempt, "kind", v.Error.Kind, "error", v.Error.Message}
	if v.Index != nil {
		fields = append(fields, "index", *v.Index)
	}
	if v.Next != "" {
		return append(fields, "next", v.Next)
	}
	if body := v.Error.Body.Data; body != nil {
		fields = append(fields, "body", bodyText(body))
	}
	return fields
}

// bodyText is an error's body in a log: of a traceback the end, of anything else
// the beginning.
func bodyText(body any) string {
	trace, isTrace := member(body, "traceback").(string)
	if !isTrace {
		text := []rune(expression.Text(body))
		return string(text[:min(len(text), mostLoggedBody)])
	}
	text := []rune(trace)
	return string(text[max(0, len(text)-mostLoggedBody):])
}
