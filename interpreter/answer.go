package interpreter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Answer is what somebody outside says of an attempt that waits for them: of tool
// webhook or approval (language.md, section answers). Kept in workflow history.
type Answer struct {
	AnswerTo

	Verb AnswerVerb `json:"verb"`
	// Result is that of a webhook that is complete.
	Result expression.Value `json:"result,omitzero"`
	// Message and Details say why an attempt has failed; Message also goes with
	// progress. Retryable false says that no other attempt would help.
	Message   string           `json:"message,omitempty"`
	Details   expression.Value `json:"details,omitzero"`
	Retryable *bool            `json:"retryable,omitempty"`
	// Done and Total are how far it has come; a Total of 0 is not known.
	Done  int64 `json:"done,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Option and Form are a person's answer to an approval, By and Comment who
	// gives it and why.
	Option  string         `json:"option,omitempty"`
	Form    map[string]any `json:"form,omitempty"`
	By      string         `json:"by,omitempty"`
	Comment string         `json:"comment,omitempty"`
	// ID tells who asks whether what Taken says is about this answer or about the
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

// Means reports whether an address is one of the attempt at a full one.
func (a AnswerTo) Means(at AnswerTo) bool {
	return a.MeansCall(at) && (a.Attempt == 0 || a.Attempt == at.Attempt) && (a.Key == "" || a.Key == at.Key)
}

// MeansCall reports whether an address is one of the call of an attempt, in this
// attempt or another.
func (a AnswerTo) MeansCall(at AnswerTo) bool {
	return (a.Step == "" || a.Step == at.Step) && (a.Visit == 0 || a.Visit == at.Visit) &&
		(a.Index == nil || at.Index != nil && *a.Index == *at.Index)
}

// AnswerVerb is what an answer does.
type AnswerVerb string

// The verbs of answers.
const (
	AnswerComplete AnswerVerb = "complete" // the attempt has succeeded
	AnswerFail     AnswerVerb = "fail"     // the attempt has failed
	AnswerProgress AnswerVerb = "progress" // it goes on, and its time begins anew
	// AnswerOversized stands for an answer that is too large to be looked at. It is
	// always refused.
	AnswerOversized AnswerVerb = "oversized"
)

// Taken says what became of an answer that was taken.
type Taken struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index,omitempty"`
	Attempt int    `json:"attempt"`
	// ID is that of the answer which was taken: another one where the same had been
	// said before.
	ID string `json:"id,omitempty"`
}

// To is the attempt, without its key.
func (t Taken) To() AnswerTo {
	return AnswerTo{Step: t.Step, Visit: t.Visit, Index: t.Index, Attempt: t.Attempt}
}

// Bounds of what an answer may hold, in bytes.
const (
	maxAnswerText = 4 << 10
	maxAnswerBy   = 500
	maxDetails    = 16 << 10 // as is kept of the body of an HTTP answer that failed
)

// Types of errors with which an answer is refused.
const (
	// AnswerRefused is an answer that cannot be taken as it is.
	AnswerRefused = "answer_refused"
	// AnswerLate is an answer to an attempt that is over.
	AnswerLate = "answer_late"
	// AnswerUnknown is an answer to nothing that this workflow knows of.
	AnswerUnknown = "answer_unknown"
	// AnswerElsewhere is an answer that another workflow takes, whose ID is the detail
	// of the error.
	AnswerElsewhere = "answer_elsewhere"
)

// AnswerError says why an answer is refused; Type is one of those above.
type AnswerError struct {
	Type    string
	Message string
	// WorkflowID is that of AnswerElsewhere.
	WorkflowID string
}

// AnsweredAt is the ID of the workflow that takes an answer, where the error says
// that another one does; else "".
func AnsweredAt(err error) string {
	var refused *AnswerError
	if errors.As(err, &refused) {
		return refused.WorkflowID
	}
	return ""
}

func (e *AnswerError) Error() string { return e.Message }

func refused(format string, args ...any) error {
	return &AnswerError{Type: AnswerRefused, Message: fmt.Sprintf(format, args...)}
}

func oversized(most int) error {
	return refused("an answer may have %d bytes; keep what is larger elsewhere, and answer with where that is", most)
}

// Check finds what no answer may hold.
func (a Answer) Check() error {
	switch a.Verb {
	case AnswerComplete, AnswerFail, AnswerProgress:
		return cmp.Or(a.checkPlace(), a.checkSizes(), a.checkVerb(), a.checkForeign())
	case AnswerOversized:
		return oversized(MaxInlinePayload)
	}
	return refused("an answer is complete, fail or progress, not %q", a.Verb)
}

// checkPlace finds numbers that no attempt has.
func (a Answer) checkPlace() error {
	if a.Visit < 0 || a.Attempt < 0 || a.Index != nil && *a.Index < 0 {
		return refused("visits and attempts count from 1, and an index from 0")
	}
	return nil
}

// checkSizes finds what is too large to be kept.
func (a Answer) checkSizes() error {
	switch {
	case len(a.Message) > maxAnswerText, len(a.Comment) > maxAnswerText:
		return refused("a message or a comment may have %d bytes", maxAnswerText)
	case len(a.By) > maxAnswerBy, len(a.ID) > maxAnswerBy, len(a.Option) > maxAnswerBy:
		return refused("by, option and id may have %d bytes each", maxAnswerBy)
	case EncodedSize(a.Details) > maxDetails:
		return refused("details may have %d bytes", maxDetails)
	}
	return nil
}

// checkVerb finds what its verb does not say.
func (a Answer) checkVerb() error {
	switch {
	case a.Verb == AnswerFail && a.Message == "":
		return refused("fail needs a message that says why")
	case a.Verb == AnswerProgress && (a.Done < 0 || a.Total < 0):
		return refused("done and total must not be negative")
	case a.Verb == AnswerProgress && a.Total > 0 && a.Done > a.Total:
		return refused("done is %d, which is more than the total of %d", a.Done, a.Total)
	}
	return nil
}

// checkForeign finds what belongs to another verb.
func (a Answer) checkForeign() error {
	switch {
	case a.Verb != AnswerComplete && (a.Result.Data != nil || a.Option != "" || len(a.Form) > 0):
		return refused("%s has no result", a.Verb)
	case a.Verb != AnswerFail && (a.Details.Data != nil || a.Retryable != nil):
		return refused("%s has no details and no retryable", a.Verb)
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
		return fmt.Errorf("form is a %s and no map", expression.TypeName(exact.Form.Data))
	}
	a.Form = form
	return nil
}

// Sent is how many bytes the answer takes on its way to a workflow: with what JSON of
// the SDK escapes. 0 is one that cannot be sent.
func (a Answer) Sent() int {
	encoded, err := json.Marshal(a)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Digest tells an answer from another one to the same attempt. Who says the same
// again says it with another ID.
func (a Answer) Digest() string {
	retryable := any(nil)
	if a.Retryable != nil {
		retryable = *a.Retryable
	}
	return hash(string(a.Verb), a.Result.Data, a.Message, a.Details.Data, retryable, a.Option, a.Form, a.By, a.Comment)
}

// Awaited is an attempt that somebody outside answers. Kept with CallState.
type Awaited struct {
	Since time.Time `json:"since"`
	// Until is when its time is over, zero for never; progress sets it anew.
	Until time.Time `json:"until,omitzero"`
	// Limit is what it has from Since, and from each progress; 0 is no limit.
	Limit time.Duration `json:"limit,omitempty"`
}

// Wait is the attempt as a wait that others see.
func (a Awaited) Wait(reported *Reported) Wait {
	summary := "awaits an answer"
	if !a.Until.IsZero() {
		summary += " until " + a.Until.UTC().Format(time.RFC3339)
	}
	if reported != nil {
		summary += ": " + reported.String()
	}
	return Wait{Reason: ReasonAnswer, Summary: summary}
}

// Reported is how far what is awaited has come, as the other side tells. It
// survives retries. Kept with CallState.
type Reported struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total,omitempty"` // 0 is not known
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// String is the progress in a few words.
func (r *Reported) String() string {
	text := fmt.Sprintf("%d done", r.Done)
	if r.Total > 0 {
		text = fmt.Sprintf("%d of %d", r.Done, r.Total)
	}
	if r.Message != "" {
		text += ", " + r.Message
	}
	return text
}

// Awaits is the attempt of the call that somebody outside answers, nil for none.
func (c *Call) Awaits() *Awaited { return c.state.head().Await }

// Answered reports whether the attempt under way has its answer.
func (c *Call) Answered() bool { return c.state.Answer != nil }

// Takes reports whether an answer is for the attempt of the call that is under way.
// sent says that it is being made, though nobody awaits it yet.
func (c *Call) Takes(to AnswerTo, sent bool) bool {
	if c.Awaits() == nil && !sent {
		return false
	}
	return to.Means(c.To())
}

// CheckAnswer says why an answer to the attempt under way cannot be taken.
func (c *Call) CheckAnswer(answer Answer) error {
	if c.Answered() {
		return &AnswerError{Type: AnswerLate, Message: fmt.Sprintf("attempt %d of %s has its answer", c.state.Attempts+1, c.config.name())}
	}
	return c.checkAnswer(answer)
}

// checkAnswer is CheckAnswer for an attempt that may have its answer.
func (c *Call) checkAnswer(answer Answer) error {
	if err := answer.Check(); err != nil {
		return err
	}
	if most := c.config.Limits.PayloadCap(); EncodedSize(answer) > most {
		return oversized(most)
	}
	if c.traits().AsksPeople {
		return c.checkApproval(answer)
	}
	if answer.Option != "" || len(answer.Form) > 0 {
		return refused("step %s asks for no approval, so there is no option to choose; complete it with a result", c.config.Step.Name)
	}
	return nil
}

// Answer takes an answer that CheckAnswer has nothing against.
func (c *Call) Answer(answer Answer, now time.Time) Taken {
	if answer.Verb == AnswerProgress {
		c.state.Reported = &Reported{Done: answer.Done, Total: answer.Total, Message: answer.Message, At: now}
		if awaited := c.Awaits(); awaited != nil && awaited.Limit > 0 {
			longer := *awaited
			longer.Until = now.Add(awaited.Limit)
			c.state.Todo = []Todo{{Await: &longer}, {Attempt: &PendingAttempt{}}}
		}
	} else {
		c.state.Answer = &answer
	}
	return Taken{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, ID: answer.ID,
	}
}

// To is the attempt that is under way or due.
func (c *Call) To() AnswerTo {
	return AnswerTo{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, Key: c.attemptKey(),
	}
}

// Due is the number of the attempt that is under way or due.
func (c *Call) Due() int { return c.state.Attempts + 1 }

// Page is the page under way.
func (c *Call) Page() int { return c.page() }

// Answerer is who has answered the attempt under way, "" for nobody who says so.
func (c *Call) Answerer() string {
	if c.state.Answer == nil {
		return ""
	}
	return c.state.Answer.By
}

// Asks reports whether the attempts of the call are answered from outside.
func (c *Call) Asks() bool { return c.traits().Awaits }

// Sends reports whether the attempt that is due sends a request before it is
// awaited.
func (c *Call) Sends() bool {
	_, sends := c.state.Request.Fields[fieldOnStart]
	return sends
}

// maxSending bounds the request with which an attempt begins that is then awaited.
const maxSending = 30 * time.Second

// attemptLimit bounds what an activity does of an attempt.
func (c *Call) attemptLimit() time.Duration {
	limit := timeoutOf(c.action, c.tool)
	if c.Asks() && (limit == 0 || limit > maxSending) {
		return maxSending
	}
	return limit
}

// awaitLimit bounds the time until the answer, and between reports of progress; 0
// is no bound.
func (c *Call) awaitLimit() time.Duration {
	return timeoutOf(c.action, c.toolName())
}

// callback is what requests name where the answer is to be sent. The worker puts
// the address in its place when it sends them: a token is a secret, and history
// keeps none.
func callback(operation string) map[string]any {
	members := make(map[string]any, len(playbook.CallbackMembers))
	for _, name := range playbook.CallbackMembers {
		members[name] = CallbackPlace(operation, name)
	}
	return members
}

// CallbackPlace is the text that stands for a member of callback until a request
// is sent. Who does not know the operation key cannot write it.
func CallbackPlace(operation, member string) string {
	return "reprise_callback_" + operation + "_" + member
}

// Cancels is the request that tells the other side that the attempt under way is
// cancelled; false where there is none.
func (c *Call) Cancels(now time.Time) (ToolInput, bool) {
	if _, told := c.state.Request.Fields[fieldOnCancel]; !told {
		return ToolInput{}, false
	}
	input, err := c.attempt(now)
	input.Sends = fieldOnCancel
	if input.IdempotencyKey != "" {
		input.IdempotencyKey += ":" + fieldOnCancel // or the other side takes it for on_start again
	}
	return input, err == nil
}

// overdue is the outcome of an attempt whose time is over.
func (c *Call) overdue(now time.Time) Outcome {
	if c.traits().AsksPeople {
		if data := c.unapproved(now); data != nil {
			return Outcome{Data: data}
		}
	}
	awaited := c.Awaits()
	message := fmt.Sprintf("step %q: no answer within %s", c.config.Step.Name, awaited.Limit)
	if reported := c.state.Reported; reported != nil && reported.At.After(awaited.Since) {
		message += " of the last report: " + reported.String()
	}
	return Outcome{Err: &ErrorObject{Kind: KindTimeout, Class: ClassRetryable, Message: message}}
}

// await has the call wait for an answer to the attempt that has just been sent.
func (c *Call) await(outcome Outcome, now time.Time) {
	awaited := Awaited{Since: now, Limit: c.awaitLimit()}
	if awaited.Limit > 0 {
		awaited.Until = now.Add(awaited.Limit)
	}
	c.state.Last.Meta = outcome.Meta
	c.state.Todo = []Todo{{Await: &awaited}, {Attempt: &PendingAttempt{}}}
}

// TakeAnswer goes on with the answer that has come, or without one where the time
// of the attempt is over. It gives the failure of the attempt, nil for none.
func (c *Call) TakeAnswer(now time.Time) *ErrorObject {
	outcome := c.overdue(now)
	if c.state.Answer != nil {
		outcome = c.answered(*c.state.Answer, now)
	}
	outcome.Meta = c.state.Last.Meta
	c.state.Todo = c.state.Todo[1:]
	c.state.Answer = nil
	c.attempted(outcome, now)
	return outcome.Err
}

// answered is the outcome of an attempt that has its answer.
func (c *Call) answered(answer Answer, now time.Time) Outcome {
	switch {
	case answer.Verb == AnswerFail:
		failure := &ErrorObject{Kind: KindExplicit, Class: ClassRetryable, Message: answer.Message, Body: answer.Details}
		if answer.Retryable != nil && !*answer.Retryable {
			failure.Class = ClassFinal
		}
		return Outcome{Err: failure}
	case c.traits().AsksPeople:
		return Outcome{Data: c.approved(answer, now)}
	}
	return Outcome{Data: answer.Result.Data}
}
