package interpreter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/source"
)

// ExpressionError converts an error of rendering or evaluating to the final error of the call, with the place in
// the playbook.
func ExpressionError(book *playbook.Playbook, where string, err error) *ErrorObject {
	message := where + ": " + err.Error()
	if eval, ok := errors.AsType[*playbook.EvalError](err); ok {
		message = where + ": " + eval.Message
		if book != nil && eval.Pos.Line > 0 {
			message += fmt.Sprintf(" (%s:%s)", book.File.Name, eval.Pos)
		}
	}
	return &ErrorObject{Kind: KindExpression, Class: ClassFinal, Message: message}
}

// ShortText describes the error in a few words, for summaries and tables. Temporal's UI renders summaries as
// Markdown, so a type that a tool chose must not become a link.
func (e *ErrorObject) ShortText() string {
	switch {
	case e == nil:
		return ""
	case e.Status != 0:
		return fmt.Sprintf("HTTP %d", e.Status)
	case e.Kind == KindResponse && e.Type == "":
		return string(e.Kind) + " " + plainText(source.CutText(e.Message, shortMessage))
	case e.Type != "":
		return string(e.Kind) + " " + plainText(e.Type)
	}
	return string(e.Kind)
}

// shortMessage is the number of characters that a summary shows of a message from a playbook.
const shortMessage = 60

// plainText replaces characters that have a meaning in Markdown.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("[]<>!`*|", r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// FailedAt returns when the last attempt of a failed call ended.
func (r CallResult) FailedAt() time.Time {
	if r.Error != nil && !r.Error.At.IsZero() {
		return r.Error.At
	}
	return r.Meta.EndedAt
}

// The statuses of an envelope (docs/concepts/runs.md#results); that of a loop may also be Partial.
const (
	StatusSuccess Status = "success"
	StatusError   Status = "error"
)

// Outcome is the outcome of one attempt: data, an error, or that it was put off. Kept in workflow history if an
// activity returns it.
type Outcome struct {
	Data any
	Meta ToolMeta
	Err  *ErrorObject // nil if the attempt succeeded
	// PutOff is set if the attempt was not made yet; then no other field is.
	PutOff *PutOff
	// Partial says that the data comes from a run that ended as partial_success.
	Partial bool
	// Warnings are about a successful attempt, shown after the step's name. They are not stored.
	Warnings []string
	// Partition is the key of the partition that a child run loaded, if its step names one; "" for none. It is not stored.
	Partition string
	// Rows counts what a child run did to data if the attempt started one, whether it failed or not; for other
	// attempts see Meta. It is not stored.
	Rows *Rows
}

// outcomeJSON is the stored form of an outcome.
type outcomeJSON struct {
	Data  expression.Value `json:"data,omitzero"`
	Meta  ToolMeta         `json:"meta,omitzero"`
	Error *ErrorObject     `json:"error,omitempty"`
	// PutOff and Partial are those of the Outcome.
	PutOff  *PutOff `json:"put_off,omitempty"`
	Partial bool    `json:"partial,omitempty"`
}

// MarshalJSON writes the outcome with canonical data.
func (o Outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal(outcomeJSON{Data: expression.Of(o.Data), Meta: o.Meta, Error: o.Err, PutOff: o.PutOff, Partial: o.Partial})
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Outcome) UnmarshalJSON(data []byte) error {
	var encoded outcomeJSON
	if err := json.Unmarshal(data, &encoded); err != nil {
		return err
	}
	*o = Outcome{Data: encoded.Data.Data, Meta: encoded.Meta, Err: encoded.Error, PutOff: encoded.PutOff, Partial: encoded.Partial}
	return nil
}

// Failed reports whether the attempt failed.
func (o Outcome) Failed() bool { return o.Err != nil }

// PutOff says what an attempt that was not made yet waits for. It is not a failure, and does not count as an
// attempt. Kept in workflow history.
type PutOff struct {
	// Turn is the slot of a rate limit that the attempt waits for; it has left the limiter's queue until then.
	Turn *ratelimit.Reservation `json:"turn,omitempty"`
	// Hold is the pause of the run or step.
	Hold *Hold `json:"hold,omitempty"`
}

// CallResult is the final result of a call, an iteration or a loop; kept in workflow history.
type CallResult struct {
	Status   Status           `json:"status"` // success, partial_success or error
	Data     expression.Value `json:"data,omitzero"`
	Error    *ErrorObject     `json:"error,omitempty"` // nil unless the status is error
	Meta     CallMeta         `json:"meta"`
	Warnings []string         `json:"warnings,omitempty"`
	// Cut is set if a successful call, or an iteration of a loop, lacks pages because its policy was exhausted.
	Cut *Cut `json:"cut,omitempty"`
	// LoopWarning counts the failed iterations of a loop; "" for none. The run repeats it as a warning.
	LoopWarning string `json:"loop_warning,omitempty"`
	// SinkErrors are failures of sinks after the call itself had failed.
	SinkErrors []ErrorObject `json:"sink_errors,omitempty"`
}

// Cut says how a policy was exhausted before a call had all pages. Index is the iteration of a loop, nil otherwise.
// Kept in workflow history.
type Cut struct {
	Index *int        `json:"index,omitempty"`
	Error ErrorObject `json:"error"`
}

// CallMeta is the meta of an envelope; kept in workflow history.
type CallMeta struct {
	Attempts  int  `json:"attempts"` // made for the whole call, pages and retries included
	Pages     int  `json:"pages"`
	Truncated bool `json:"truncated,omitempty"` // it lacks pages, because a policy was exhausted
	// Incomplete says that the call has not read everything, for a reason other than truncation.
	Incomplete bool      `json:"incomplete,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	Tool       ToolMeta  `json:"tool,omitzero"` // of the last response
	// Incremental describes the state that the step keeps between runs; nil for none.
	Incremental *CallIncremental `json:"incremental,omitempty"`
	// LeftOut counts what the call's tables did not accept, nil if they accepted everything.
	LeftOut *RowCounts `json:"left_out,omitempty"`
	// Rows counts what the call, with its pages and sinks, did to data; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// CallIncremental describes what a call did with its state; kept in workflow history.
type CallIncremental struct {
	State  string                 `json:"state"` // its name
	Type   incremental.CursorType `json:"type,omitempty"`
	Format string                 `json:"format,omitempty"` // the format of incremental.Form
	// From is the cursor from which the call read, Watermark the watermark after the call.
	From      incremental.Cursor `json:"from,omitzero"`
	Watermark incremental.Cursor `json:"watermark,omitzero"`
	Rows      int                `json:"rows"`
	// Moved says that the call has moved the watermark.
	Moved bool `json:"moved,omitempty"`
	// Before is the watermark before the call, which may be later than From by the lag; zero if unknown.
	Before incremental.Cursor `json:"before,omitzero"`
	// States is the number of states of a loop, otherwise 0. State, From and Watermark are then those of the state
	// with the lowest watermark, while Rows and Moved describe all of them.
	States int `json:"states,omitempty"`
	// Pending are moves, of this state or those of a loop, that are made once the run has completed, because the
	// call writes nothing; nil if they were made with its writes.
	Pending []incremental.Moves `json:"pending,omitempty"`
}

func (i *CallIncremental) exprValue() map[string]any {
	value := map[string]any{"state": i.State, "from": i.From.Value.Data, "watermark": i.Watermark.Value.Data, "rows": i.Rows}
	if i.States > 0 {
		value["states"] = i.States
	}
	return value
}

// withStates adds the states of an iteration, or of a shard, to those of the loop, and returns the sum.
func (i *CallIncremental) withStates(of *CallIncremental) *CallIncremental {
	if of == nil {
		return i
	}
	all := *of
	all.Pending, all.States = nil, max(of.States, 1)
	if i == nil {
		return &all
	}
	all.Pending = i.Pending
	if of.Watermark.IsZero() || !i.Watermark.IsZero() && bytes.Compare(i.Watermark.Position, of.Watermark.Position) <= 0 {
		all.State, all.From, all.Before, all.Watermark = i.State, i.From, i.Before, i.Watermark
	}
	all.Rows += i.Rows
	all.States += i.States
	all.Moved = all.Moved || i.Moved
	return &all
}

// addPending adds moves that are made at the end of the run.
func (i *CallIncremental) addPending(of *CallIncremental) {
	if of != nil {
		i.Pending = incremental.JoinMoves(i.Pending, of.Pending)
	}
}

// Failed reports whether the result is a failure.
func (r CallResult) Failed() bool { return r.Status == StatusError }

// Envelope returns the result for expressions: {status, data, error, meta}.
func (r CallResult) Envelope() map[string]any {
	return map[string]any{
		"status": string(r.Status),
		"data":   r.Data.Data,
		"error":  r.Error.Value(),
		"meta":   r.Meta.exprValue(),
	}
}

func (m CallMeta) exprValue() map[string]any {
	meta := map[string]any{
		"attempts":   m.Attempts,
		"pages":      m.Pages,
		"truncated":  m.Truncated,
		"started_at": expression.TimeText(m.StartedAt),
		"ended_at":   expression.TimeText(m.EndedAt),
	}
	if m.Tool.Status != 0 {
		meta["status"] = m.Tool.Status
	}
	if m.Tool.Headers != nil {
		meta["headers"] = textMap(m.Tool.Headers)
	}
	if m.Tool.Links != nil {
		meta["links"] = textMap(m.Tool.Links)
	}
	if m.Tool.URL != "" {
		meta["url"] = m.Tool.URL
	}
	if m.Incremental != nil {
		meta["incremental"] = m.Incremental.exprValue()
	}
	if m.LeftOut != nil {
		meta["discarded_values"], meta["discarded_rows"] = m.LeftOut.DiscardedValues, m.LeftOut.DiscardedRows
		meta["rejected_rows"], meta["rounded_values"] = m.LeftOut.RejectedRows, m.LeftOut.RoundedValues
		meta["rounded_keys"], meta["older_rows"] = m.LeftOut.RoundedKeys, m.LeftOut.OlderRows
		meta["unwritten_rows"], meta["undeleted_rows"] = m.LeftOut.UnwrittenRows, m.LeftOut.UndeletedRows
	}
	return meta
}

func textMap(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for _, key := range playbook.SortedKeys(texts) {
		values[key] = texts[key]
	}
	return values
}

// Value returns the error for expressions; nil for no error, so that `error is defined` distinguishes failures from
// successes.
func (e *ErrorObject) Value() any {
	if e == nil {
		return nil
	}
	value := map[string]any{
		"kind":      string(e.Kind),
		"class":     string(e.Class),
		"message":   e.Message,
		"attempt":   e.Attempt,
		"page":      e.Page,
		"exhausted": e.Exhausted,
		"body":      e.Body.Data,
		"collected": e.Collected.Data,
	}
	if e.Status != 0 {
		value["status"] = e.Status
	}
	if e.Type != "" {
		value["type"] = e.Type
	}
	if e.Headers != nil {
		value["headers"] = textMap(e.Headers)
	}
	if e.URL != "" {
		value["url"], value["params"] = e.URL, e.Params.Data
	}
	if e.Policy != 0 {
		value["policy"] = e.Policy
	}
	if e.RetryAfter != nil {
		seconds, err := expression.Canonical(*e.RetryAfter)
		if err == nil {
			value["retry_after"] = seconds
		}
	}
	return value
}

// AnswerMeta returns the meta of a failed response.
func (e *ErrorObject) AnswerMeta() ToolMeta {
	meta := *e.Answer
	meta.Status = cmp.Or(meta.Status, e.Status)
	if meta.Headers == nil {
		meta.Headers = e.Headers
	}
	return meta
}

// IsFinal reports whether a retry cannot help.
func (e *ErrorObject) IsFinal() bool { return e.Final || e.Class == ClassFinal }

// PoliciesDecide reports whether policies may rule on the error. Other errors end the call at once, because a retry
// cannot help.
func (e *ErrorObject) PoliciesDecide() bool {
	if e.Final {
		return false
	}
	switch e.Kind {
	case KindExpression, KindIncremental, KindPayloadTooLarge, KindSink, KindCancelled, KindRepeat:
		return false
	}
	return true
}

// ClassifyHTTP returns the class of a response status of 400 or more
// (docs/appendix/errors.md): rate_limited for 429 and for 403 and
// 503 that are Limited, retryable for 408, 425 and the other 5xx, final for the
// rest.
func ClassifyHTTP(status int, limited bool) Class {
	switch {
	case status == http.StatusTooManyRequests:
		return ClassRateLimited
	case limited && (status == http.StatusForbidden || status == http.StatusServiceUnavailable):
		return ClassRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return ClassRetryable
	}
	return ClassFinal
}

// retryableStates are prefixes of SQLSTATE codes for which a retry may help: the classes connection exception,
// transaction rollback, insufficient resources and operator intervention, and the states of a lock not available in
// time and of a transaction idle for too long (PostgreSQL manual, appendix A).
var retryableStates = []string{"08", "40", "53", "57", "55P03", "25P03"}

// protocolViolation is 08P01, which also occurs when a statement gets parameters that it does not have. It belongs
// to the connection class, but is permanent.
const protocolViolation = "08P01"

// ClassifySQLState returns the class of an SQLSTATE code.
func ClassifySQLState(code string) Class {
	if code == protocolViolation {
		return ClassFinal
	}
	for _, prefix := range retryableStates {
		if strings.HasPrefix(code, prefix) {
			return ClassRetryable
		}
	}
	return ClassFinal
}
