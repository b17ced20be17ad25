package interpreter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/interpreter/expression"
)

// AnswerUpdate accepts an Answer and returns an AnswerReceipt. The name is part of histories, so it never changes.
const AnswerUpdate = "answer"

// Answer is the answer of a person or another system to an attempt of tool webhook or approval
// (docs/concepts/answers.md). Kept in workflow history.
type Answer struct {
	AnswerTo

	Verb AnswerVerb `json:"verb"` // what the answer does to the attempt
	// Result is the result of a completed webhook.
	Result expression.Value `json:"result,omitzero"`
	// Message and Details say why an attempt failed; Message may also accompany progress. Retryable false says that
	// another attempt would not help.
	Message   string           `json:"message,omitempty"`
	Details   expression.Value `json:"details,omitzero"`
	Retryable *bool            `json:"retryable,omitempty"`
	// Done and Total are the progress; a Total of 0 means unknown.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Option and Form are a person's answer to an approval; By and Comment say who answered and why.
	Option  string         `json:"option,omitempty"`
	Form    map[string]any `json:"form,omitempty"`
	By      string         `json:"by,omitempty"`
	Comment string         `json:"comment,omitempty"`
	// ID lets the sender detect whether an AnswerReceipt is for this answer or for an identical earlier one. It may
	// be any text.
	ID string `json:"id,omitempty"`
}

// AnswerTo identifies the attempt that an answer is for. Empty fields are not compared, but exactly one attempt
// must match.
type AnswerTo struct {
	Step    string `json:"step,omitempty"`
	Visit   int    `json:"visit,omitempty"`   // of the step, from 1
	Index   *int   `json:"index,omitempty"`   // of the iteration in its loop, from 0; nil without a loop
	Attempt int    `json:"attempt,omitempty"` // of the call, from 1
	// Key is the attempt key, which alone identifies the attempt.
	Key string `json:"key,omitempty"`
}

// Matches reports whether a, which may be partial, refers to the attempt with the full address at.
func (a AnswerTo) Matches(at AnswerTo) bool {
	return a.MatchesCall(at) && (a.Attempt == 0 || a.Attempt == at.Attempt) && (a.Key == "" || a.Key == at.Key)
}

// MatchesCall reports whether a refers to the call of the attempt at, in any attempt.
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
	AnswerProgress AnswerVerb = "progress" // it is still running, and its deadline is extended
	// AnswerOversized replaces the verb of an answer that is too large to be read. It is always refused.
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

// AttemptAddress is the attempt, without its key.
func (t AnswerReceipt) AttemptAddress() AnswerTo {
	return AnswerTo{Step: t.Step, Visit: t.Visit, Index: t.Index, Attempt: t.Attempt}
}

// Bounds of an answer.
const (
	// maxAnswerText bounds the message and the comment of an answer, in bytes. Any holder of a token may answer,
	// and the answer is in history, in summaries and on the page of the run.
	maxAnswerText = 4 << 10
	// maxAnswerBy bounds the name, the option and the ID of an answer, in bytes each.
	maxAnswerBy = 500
	// maxDetails bounds the details of a failure, in bytes of JSON, like those of a failed HTTP response.
	maxDetails = 16 << 10
)

// Types of errors about answers.
const (
	// AnswerRefused means that the content of the answer is not acceptable.
	AnswerRefused = "answer_refused"
	// AnswerLate means that the attempt is over.
	AnswerLate = "answer_late"
	// AnswerUnknown means that the workflow knows no such attempt.
	AnswerUnknown = "answer_unknown"
	// AnswerElsewhere means that another workflow accepts the answer; its ID is the detail of the error.
	AnswerElsewhere = "answer_elsewhere"
)

// AnswerError says why an answer was refused; Type is one of the types above.
type AnswerError struct {
	Type    string
	Message string
	// WorkflowID is the ID of the workflow that accepts the answer, for AnswerElsewhere.
	WorkflowID string
}

// AnsweredAt returns the ID of the workflow that accepts the answer instead, if the error is of type
// AnswerElsewhere; otherwise "".
func AnsweredAt(err error) string {
	if refused, ok := errors.AsType[*AnswerError](err); ok {
		return refused.WorkflowID
	}
	return ""
}

func (e *AnswerError) Error() string { return e.Message }

// RefusedAnswer returns the error for an answer whose content is not acceptable.
func RefusedAnswer(format string, args ...any) error {
	return &AnswerError{Type: AnswerRefused, Message: fmt.Sprintf(format, args...)}
}

// OversizedAnswer returns the error for an answer larger than most bytes.
func OversizedAnswer(most int) error {
	return RefusedAnswer("an answer may have %d bytes; store larger data elsewhere, and answer with its location", most)
}

// Check returns an error for an answer that no attempt can accept: with an unknown verb, fields of another verb, or
// values that are too large.
func (a Answer) Check() error {
	switch a.Verb {
	case AnswerComplete, AnswerFail, AnswerProgress:
		return cmp.Or(a.checkPlace(), a.checkSizes(), a.checkVerb(), a.checkForeign())
	case AnswerOversized:
		return OversizedAnswer(MaxInlinePayload)
	}
	return RefusedAnswer("an answer is complete, fail or progress, not %q", a.Verb)
}

// checkPlace returns an error for numbers that no attempt has.
func (a Answer) checkPlace() error {
	if a.Visit < 0 || a.Attempt < 0 || a.Index != nil && *a.Index < 0 {
		return RefusedAnswer("visits and attempts count from 1, and an index from 0")
	}
	return nil
}

// checkSizes returns an error for values that are too large.
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

// checkVerb returns an error if a field required by the verb is missing or invalid.
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

// checkForeign returns an error for fields that belong to another verb.
func (a Answer) checkForeign() error {
	switch {
	case a.Verb != AnswerComplete && (a.Result.Data != nil || a.Option != "" || len(a.Form) > 0):
		return RefusedAnswer("%s has no result", a.Verb)
	case a.Verb != AnswerFail && (a.Details.Data != nil || a.Retryable != nil):
		return RefusedAnswer("%s has no details and no retryable", a.Verb)
	}
	return nil
}

// UnmarshalJSON decodes the answer, and keeps the numbers of a form exact.
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

// SentBytes returns the size of the answer when it is sent to a workflow, with the JSON escapes of the SDK; 0 if it
// cannot be encoded.
func (a Answer) SentBytes() int {
	encoded, err := json.Marshal(a)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Digest identifies an answer among those to the same attempt. The ID is part of it: a sender that repeats an
// answer on purpose uses another ID.
func (a Answer) Digest() string {
	retryable := any(nil)
	if a.Retryable != nil {
		retryable = *a.Retryable
	}
	return expression.ShortDigest(string(a.Verb), a.Result.Data, a.Message, a.Details.Data, retryable, a.Option, a.Form, a.By, a.Comment)
}

// ReportedProgress is progress reported for an awaited attempt. It survives retries. Kept with call.State.
type ReportedProgress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total,omitempty"` // 0 means unknown
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// String describes the progress in a few words.
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
