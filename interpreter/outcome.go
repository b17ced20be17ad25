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

// ExpressionError turns an error of rendering or evaluating into the final
// error of the call, with the place in the playbook.
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

// ShortText is the error in a few words, for summaries and tables. Temporal's UI reads
// summaries as Markdown; a type that a tool made up is no link there.
func (e *ErrorObject) ShortText() string {
	switch {
	case e == nil:
		return ""
	case e.Status != 0:
		return fmt.Sprintf("HTTP %d", e.Status)
	case e.Kind == KindResponse && e.Type == "":
		return string(e.Kind) + " " + plainText(source.Cut(e.Message, shortMessage))
	case e.Type != "":
		return string(e.Kind) + " " + plainText(e.Type)
	}
	return string(e.Kind)
}

// shortMessage is how many characters a summary has of a message that a playbook made.
const shortMessage = 60

// plainText is a text in which Markdown finds no link and no format.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("[]<>!`*|", r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// FailedAt is when the last attempt of a failed call ended.
func (r CallResult) FailedAt() time.Time {
	if r.Error != nil && !r.Error.At.IsZero() {
		return r.Error.At
	}
	return r.Meta.EndedAt
}

// The statuses of an envelope (docs/concepts/runs.md#results); that of a loop may be
// Partial.
const (
	StatusSuccess Status = "success"
	StatusError   Status = "error"
)

// Outcome is what one attempt gave: data, or an error, or that it was put off. Kept in
// workflow history where an activity returns it.
type Outcome struct {
	Data any
	Meta ToolMeta
	Err  *ErrorObject
	// PutOff is set where the attempt was not made yet; nothing else is then.
	PutOff *PutOff
	// Partial says that the data come from a run that ended as partial_success.
	Partial bool
	// Warnings about a successful attempt, shown after the step's name. They are not stored.
	Warnings []string
	// Rows is what a child run did to data if the attempt started one, whether it failed or not; for other attempts
	// see Meta. It is not stored.
	Rows *Rows
}

// outcomeJSON is how an outcome is kept.
type outcomeJSON struct {
	Data  expression.Value `json:"data,omitzero"`
	Meta  ToolMeta         `json:"meta,omitzero"`
	Error *ErrorObject     `json:"error,omitempty"`
	// PutOff and Partial are copied from the Outcome.
	PutOff  *PutOff `json:"put_off,omitempty"`
	Partial bool    `json:"partial,omitempty"`
}

// MarshalJSON writes the outcome with canonical data.
func (o Outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal(outcomeJSON{Data: expression.Of(o.Data), Meta: o.Meta, Error: o.Err, PutOff: o.PutOff, Partial: o.Partial})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Outcome) UnmarshalJSON(data []byte) error {
	var kept outcomeJSON
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	*o = Outcome{Data: kept.Data.Data, Meta: kept.Meta, Err: kept.Error, PutOff: kept.PutOff, Partial: kept.Partial}
	return nil
}

// Failed reports whether the attempt failed.
func (o Outcome) Failed() bool { return o.Err != nil }

// PutOff says what an attempt that was not made yet waits for, and until when. It is no
// failure, and does not count as an attempt. Kept in workflow history.
type PutOff struct {
	// Turn is the turn of a rate limit: the attempt has given up its place until it comes.
	Turn *ratelimit.Reservation `json:"turn,omitempty"`
	// Hold is the hold of a run or a step which is paused.
	Hold *Hold `json:"hold,omitempty"`
}

// CallResult is the final outcome of a call, an iteration or a loop; kept in
// workflow history.
type CallResult struct {
	Status   Status           `json:"status"` // success, partial_success or error
	Data     expression.Value `json:"data,omitzero"`
	Error    *ErrorObject     `json:"error,omitempty"`
	Meta     CallMeta         `json:"meta"`
	Warnings []string         `json:"warnings,omitempty"`
	// Cut is set where a call that succeeded lacks pages because its policy was exhausted, or an iteration of a
	// loop does.
	Cut *Cut `json:"cut,omitempty"`
	// LoopWarning says how many iterations of a loop failed, "" for none. It is a warning of the run.
	LoopWarning string `json:"loop_warning,omitempty"`
	// SinkErrors are failures of sinks after the call's own failure.
	SinkErrors []ErrorObject `json:"sink_errors,omitempty"`
}

// Cut says how a policy was exhausted before a call had all pages. Index is the iteration of a loop, nil elsewhere.
// Kept in workflow history.
type Cut struct {
	Index *int        `json:"index,omitempty"`
	Error ErrorObject `json:"error"`
}

// CallMeta is the meta of an envelope; kept in workflow history.
type CallMeta struct {
	Attempts  int  `json:"attempts"`
	Pages     int  `json:"pages"`
	Truncated bool `json:"truncated,omitempty"`
	// Incomplete says that the call has not read everything, for another reason than
	// truncation.
	Incomplete bool      `json:"incomplete,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	Tool       ToolMeta  `json:"tool,omitzero"` // of the last answer
	// Incremental describes the state that the step keeps between runs; nil for none.
	Incremental *CallIncremental `json:"incremental,omitempty"`
	// LeftOut counts what the call's tables did not accept, nil if they accepted everything.
	LeftOut *RowCounts `json:"left_out,omitempty"`
	// Rows is what the call, its pages and its sinks did to data; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
}

// CallIncremental is what a call did with its state; kept in workflow history.
type CallIncremental struct {
	State  string                 `json:"state"`
	Type   incremental.CursorType `json:"type,omitempty"`
	Format string                 `json:"format,omitempty"` // that of incremental.Form
	// From is where the call read from, Watermark the state's watermark after it.
	From      incremental.Cursor `json:"from,omitzero"`
	Watermark incremental.Cursor `json:"watermark,omitzero"`
	Rows      int                `json:"rows"`
	// Moved says that the call has moved the watermark.
	Moved bool `json:"moved,omitempty"`
	// Before is where the state was before the call, which may be ahead of From by its lag; zero where that is not known.
	Before incremental.Cursor `json:"before,omitzero"`
	// States counts the states of a loop, 0 elsewhere. State, From and Watermark then describe
	// the state with the lowest watermark, Rows and Moved all of them.
	States int `json:"states,omitempty"`
	// Pending move the watermark, or those of a loop, once the run has ended as completed, where
	// nothing is written; nil where that is done.
	Pending []incremental.Moves `json:"pending,omitempty"`
}

func (i *CallIncremental) exprValue() map[string]any {
	value := map[string]any{"state": i.State, "from": i.From.Value.Data, "watermark": i.Watermark.Value.Data, "rows": i.Rows}
	if i.States > 0 {
		value["states"] = i.States
	}
	return value
}

// withStates adds what an iteration, or a shard of the loop, did to its states to what the loop
// knows of all.
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

// addPending adds the moves that wait for the end of the run.
func (i *CallIncremental) addPending(of *CallIncremental) {
	if of != nil {
		i.Pending = incremental.JoinMoves(i.Pending, of.Pending)
	}
}

// Failed reports whether the result is a failure.
func (r CallResult) Failed() bool { return r.Status == StatusError }

// Envelope is the result as expressions see it: {status, data, error, meta}.
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
		meta["unwritten_rows"] = m.LeftOut.UnwrittenRows
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

// Value is the error as expressions see it; nil for no error, so that
// `error is defined` distinguishes failures from successes.
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

// AnswerMeta is the meta of an answer that failed.
func (e *ErrorObject) AnswerMeta() ToolMeta {
	meta := *e.Answer
	meta.Status = cmp.Or(meta.Status, e.Status)
	if meta.Headers == nil {
		meta.Headers = e.Headers
	}
	return meta
}

// IsFinal reports whether trying again cannot help.
func (e *ErrorObject) IsFinal() bool { return e.Final || e.Class == ClassFinal }

// PoliciesDecide reports whether policies may decide about the error. The other
// kinds end the call at once: trying again cannot help.
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

// retryableStates are the SQLSTATE classes that may pass when tried again:
// connection exceptions, transaction rollbacks, insufficient resources and
// operator intervention, and of their states a lock that was not available in time, and
// a transaction that was silent for too long
// (PostgreSQL manual, appendix A).
var retryableStates = []string{"08", "40", "53", "57", "55P03", "25P03"}

// protocolViolation is 08P01: a statement that takes no parameters was given
// some. It belongs to the connection class and yet is permanent.
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
