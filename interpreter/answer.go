package interpreter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/interpreter/expression"
)

// Answer is what a person or another system answers to an attempt that awaits it: of tool
// webhook or approval (docs/concepts/answers.md). Kept in workflow history.
type Answer struct {
	AnswerTo

	Verb AnswerVerb `json:"verb"`
	// Result is the result of a webhook that is complete.
	Result expression.Value `json:"result,omitzero"`
	// Message and Details say why an attempt has failed; Message also goes with
	// progress. Retryable false says that no other attempt would help.
	Message   string           `json:"message,omitempty"`
	Details   expression.Value `json:"details,omitzero"`
	Retryable *bool            `json:"retryable,omitempty"`
	// Done and Total are the progress; a Total of 0 is unknown.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Option and Form are a person's answer to an approval; By and Comment say
	// who answers and why.
	Option  string         `json:"option,omitempty"`
	Form    map[string]any `json:"form,omitempty"`
	By      string         `json:"by,omitempty"`
	Comment string         `json:"comment,omitempty"`
	// ID shows the sender whether an AnswerReceipt is about this answer or about the
	// same one before. It may be any text.
	ID string `json:"id,omitempty"`
}

// AnswerTo says which attempt an answer is for. What is left out is not compared,
// but one attempt must be meant.
type AnswerTo struct {
	Step    string `json:"step,omitempty"`
	Visit   int    `json:"visit,omitempty"`
	Index   *int   `json:"index,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Key is the attempt key, which is all of the above.
	Key string `json:"key,omitempty"`
}

// Matches reports whether an address is one of the attempt at a full one.
func (a AnswerTo) Matches(at AnswerTo) bool {
	return a.MatchesCall(at) && (a.Attempt == 0 || a.Attempt == at.Attempt) && (a.Key == "" || a.Key == at.Key)
}

// MatchesCall reports whether an address is one of the call of an attempt, in this
// attempt or another.
func (a AnswerTo) MatchesCall(at AnswerTo) bool {
	return (a.Step == "" || a.Step == at.Step) && (a.Visit == 0 || a.Visit == at.Visit) &&
		(a.Index == nil || at.Index != nil && *a.Index == *at.Index)
}

// AnswerVerb is what an answer does.
type AnswerVerb string

// The verbs of answers.
const (
	AnswerComplete AnswerVerb = "complete" // the attempt has succeeded
	AnswerFail     AnswerVerb = "fail"     // the attempt has failed
	AnswerProgress AnswerVerb = "progress" // it is still running, and its time begins anew
	// AnswerOversized stands for an answer that is too large to be read. It is
	// always refused.
	AnswerOversized AnswerVerb = "oversized"
)

// AnswerReceipt says which attempt an answer was accepted for.
type AnswerReceipt struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index,omitempty"`
	Attempt int    `json:"attempt"`
	// ID is the ID of the accepted answer: an earlier one if the same answer had arrived
	// before.
	ID string `json:"id,omitempty"`
}

// Address is the attempt, without its key.
func (t AnswerReceipt) Address() AnswerTo {
	return AnswerTo{Step: t.Step, Visit: t.Visit, Index: t.Index, Attempt: t.Attempt}
}

// Bounds of what an answer may hold, in bytes.
const (
	// maxAnswerText bounds the message and the comment of an answer, in bytes. A holder of a token may answer, and the answer is in history, in summaries and on the page.
	maxAnswerText = 4 << 10
	// maxAnswerBy bounds the name, the option and the ID of an answer, in bytes each.
	maxAnswerBy = 500
	// maxDetails bounds the details of an answer that fails, in bytes of JSON, as those of an
	// HTTP answer that failed are.
	maxDetails = 16 << 10
)

// Types of errors with which an answer is refused.
const (
	// AnswerRefused is the code of an answer that is refused because of its content.
	AnswerRefused = "answer_refused"
	// AnswerLate is an answer to an attempt that is over.
	AnswerLate = "answer_late"
	// AnswerUnknown is an answer to nothing that this workflow knows of.
	AnswerUnknown = "answer_unknown"
	// AnswerElsewhere is an answer for another workflow, whose ID is the detail
	// of the error.
	AnswerElsewhere = "answer_elsewhere"
)

// AnswerError says why an answer is refused; Type is one of those above.
type AnswerError struct {
	Type    string
	Message string
	// WorkflowID is the ID of AnswerElsewhere.
	WorkflowID string
}

// AnsweredAt is the ID of the workflow that awaits the answer instead, if the error says so;
// else "".
func AnsweredAt(err error) string {
	if refused, ok := errors.AsType[*AnswerError](err); ok {
		return refused.WorkflowID
	}
	return ""
}

func (e *AnswerError) Error() string { return e.Message }

// RefusedAnswer is the error for an answer that is refused because of its content.
func RefusedAnswer(format string, args ...any) error {
	return &AnswerError{Type: AnswerRefused, Message: fmt.Sprintf(format, args...)}
}

// OversizedAnswer is the error for an answer that is larger than it may be.
func OversizedAnswer(most int) error {
	return RefusedAnswer("an answer may have %d bytes; store larger data elsewhere, and answer with its location", most)
}

// Check returns an error for an answer that nothing can accept: without a known verb, or with
// too much of something.
func (a Answer) Check() error {
	switch a.Verb {
	case AnswerComplete, AnswerFail, AnswerProgress:
		return cmp.Or(a.checkPlace(), a.checkSizes(), a.checkVerb(), a.checkForeign())
	case AnswerOversized:
		return OversizedAnswer(MaxInlinePayload)
	}
	return RefusedAnswer("an answer is complete, fail or progress, not %q", a.Verb)
}

// checkPlace finds numbers that no attempt has.
func (a Answer) checkPlace() error {
	if a.Visit < 0 || a.Attempt < 0 || a.Index != nil && *a.Index < 0 {
		return RefusedAnswer("visits and attempts count from 1, and an index from 0")
	}
	return nil
}

// checkSizes returns an error for values that are too large to keep.
func (a Answer) checkSizes() error {
	switch {
	case len(a.Message) > maxAnswerText, len(a.Comment) > maxAnswerText:
		return RefusedAnswer("a message or a comment may have %d bytes", maxAnswerText)
	case len(a.By) > maxAnswerBy, len(a.ID) > maxAnswerBy, len(a.Option) > maxAnswerBy:
		return RefusedAnswer("by, option and id may have %d bytes each", maxAnswerBy)
	case EncodedSize(a.Details) > maxDetails:
		return RefusedAnswer("details may have %d bytes", maxDetails)
	}
	return nil
}

// checkVerb finds what its verb does not say.
func (a Answer) checkVerb() error {
	switch {
	case a.Verb == AnswerFail && a.Message == "":
		return RefusedAnswer("fail needs a message that says why")
	case a.Verb == AnswerProgress && (a.Done < 0 || a.Total < 0):
		return RefusedAnswer("done and total must not be negative")
	case a.Verb == AnswerProgress && a.Total > 0 && a.Done > a.Total:
		return RefusedAnswer("done is %d, which is more than the total of %d", a.Done, a.Total)
	}
	return nil
}

// checkForeign finds what belongs to another verb.
func (a Answer) checkForeign() error {
	switch {
	case a.Verb != AnswerComplete && (a.Result.Data != nil || a.Option != "" || len(a.Form) > 0):
		return RefusedAnswer("%s has no result", a.Verb)
	case a.Verb != AnswerFail && (a.Details.Data != nil || a.Retryable != nil):
		return RefusedAnswer("%s has no details and no retryable", a.Verb)
	}
	return nil
}

// UnmarshalJSON keeps the numbers of a form exact.
func (a *Answer) UnmarshalJSON(text []byte) error {
	type plain Answer
	exact := struct {
		*plain
		Form expression.Value `json:"form,omitzero"`
	}{plain: (*plain)(a)}
	if err := json.Unmarshal(text, &exact); err != nil {
		return err
	}
	form, isMap := exact.Form.Data.(map[string]any)
	if exact.Form.Data != nil && !isMap {
		return fmt.Errorf("form must be a map, not a %s", expression.TypeName(exact.Form.Data))
	}
	a.Form = form
	return nil
}

// SentBytes is the size of the answer when it is sent to a workflow, with the JSON escapes of
// the SDK. 0 if it cannot be sent.
func (a Answer) SentBytes() int {
	encoded, err := json.Marshal(a)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Digest identifies an answer among those to the same attempt. A sender that says the same
// again does so with another ID.
func (a Answer) Digest() string {
	retryable := any(nil)
	if a.Retryable != nil {
		retryable = *a.Retryable
	}
	return expression.Hash(string(a.Verb), a.Result.Data, a.Message, a.Details.Data, retryable, a.Option, a.Form, a.By, a.Comment)
}

// ReportedProgress is progress that the other side reports for an awaited attempt. It survives
// retries. Kept with call.State.
type ReportedProgress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total,omitempty"` // 0 is not known
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// String is the progress in a few words.
func (r *ReportedProgress) String() string {
	text := fmt.Sprintf("%d done", r.Done)
	if r.Total > 0 {
		text = fmt.Sprintf("%d of %d", r.Done, r.Total)
	}
	if r.Message != "" {
		text += ", " + r.Message
	}
	return text
}
