package activities

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// MaxErrorBody is how many bytes of an error's body go to the history; what is
// longer is cut and becomes text.
const MaxErrorBody = 16 << 10

// maxMessage bounds messages, which other programs may have written.
const maxMessage = 4 << 10

// Error is how a tool tells what went wrong; the zero value of every field is
// allowed. It becomes `error` in the playbook's expressions.
type Error struct {
	Kind    interpreter.Kind  // interpreter.Kind…; "" is tool
	Class   interpreter.Class // interpreter.Class…; "" is retryable: an error that says nothing
	Message string            // "" is Err's text
	Type    string            // finer than Kind: econnrefused, an SQLSTATE, the name of an exception
	Status  int               // HTTP status, 0 for none
	// RetryAfter is how long the other side asked to wait, nil when it did not.
	RetryAfter *time.Duration
	// Headers are those of a failed answer, with lower-case names; what carries
	// credentials is left out of the history, and the rest is bounded.
	Headers map[string]string
	// Answer is what an answer that failed tells beside Status and Headers, nil where
	// none has come.
	Answer *interpreter.ToolMeta
	Body   any // what the other side said, canonical; at most MaxErrorBody is kept
	// Final ends the call without asking the policies: the worker or the
	// playbook must be changed first, such as for a connection nobody configured.
	Final bool
	Err   error // the cause, for errors.Is; its text is used without a Message
}

// Error gives the message, without kind and class.
func (e *Error) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Err != nil:
		return e.Err.Error()
	}
	return "the tool failed and gave no reason"
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// toolErrorf is an error of kind tool and class final: repeating the attempt
// cannot help, yet a policy may say otherwise.
func toolErrorf(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error(), Err: errors.Unwrap(err)}
}

// configErrorf is a final error about the worker's configuration or a field
// the tool cannot work with; it ends the call without asking the policies.
func configErrorf(format string, args ...any) *Error {
	e := toolErrorf(format, args...)
	e.Final = true
	return e
}

// tooLargef is the error of data that is too large to be passed on.
func tooLargef(format string, args ...any) *Error {
	return &Error{
		Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf(format, args...), Final: true,
	}
}

// errorObject is err as it goes to the history. Secrets are masked.
func errorObject(err error, in interpreter.ToolInput, secrets *attemptSecrets) *interpreter.ErrorObject {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error(), Err: err}
	}
	object := &interpreter.ErrorObject{
		Kind: cmp.Or(e.Kind, interpreter.KindTool), Class: cmp.Or(e.Class, interpreter.ClassRetryable),
		Message: maskedText(e.Error(), maxMessage, secrets),
		Status:  e.Status, Type: maskedText(e.Type, interpreter.MaxErrorType, secrets), Attempt: in.Attempt, Page: in.Page, Final: e.Final,
	}
	if e.RetryAfter != nil {
		seconds := e.RetryAfter.Seconds()
		object.RetryAfter = &seconds
	}
	if in.Sends != "" {
		failedToSend(object)
	}
	object.Headers = keptHeaders(e.Headers, secrets)
	if e.Answer != nil {
		object.Answer = maskedAnswer(*e.Answer, secrets)
	}
	object.Body = expression.Of(maskedBody(e.Body, secrets))
	return object
}

// maskedAnswer is the meta of a failed answer as it goes to the history.
func maskedAnswer(answer interpreter.ToolMeta, secrets *attemptSecrets) *interpreter.ToolMeta {
	masked := interpreter.ToolMeta{
		Status: answer.Status, Headers: keptHeaders(answer.Headers, secrets), URL: secrets.Text(answer.URL),
	}
	for _, rel := range slices.Sorted(maps.Keys(answer.Links)) {
		if masked.Links == nil {
			masked.Links = map[string]string{}
		}
		masked.Links[secrets.Text(rel)] = secrets.Text(answer.Links[rel])
	}
	return &masked
}

// failedToSend makes the failure of a request that of the webhook which sends it.
func failedToSend(object *interpreter.ErrorObject) {
	switch object.Kind {
	case interpreter.KindHTTP:
	case interpreter.KindConnection, interpreter.KindTimeout:
		object.Type = cmp.Or(object.Type, string(object.Kind))
	default:
		return
	}
	object.Kind = interpreter.KindWebhookFailure
}

// beyond is how many times longer than what is kept a text may be before its
// secrets are masked: what is masked becomes shorter.
const beyond = 4

// cutOff is the beginning of a text that is cut again. What masks it knows a piece
// of a secret at its end.
func cutOff(text string, limit int) string { return text[:min(len(text), limit)] }

// maskedText is at most limit bytes of a text, without secrets.
func maskedText(text string, limit int, secrets *attemptSecrets) string {
	return cutText(secrets.Text(cutOff(text, beyond*limit)), limit)
}

// maskedBody is a body as it goes to the history, without secrets.
func maskedBody(body any, secrets *attemptSecrets) any {
	if body == nil {
		return nil
	}
	return cutBody(secrets.Value(cutBody(body, beyond*MaxErrorBody, cutOff)), MaxErrorBody, cutText)
}

// cutBody keeps a body of at most limit bytes as it is and turns a
// longer one into the beginning of its text.
func cutBody(body any, limit int, cut func(string, int) string) any {
	if body == nil {
		return nil
	}
	canonical, err := expression.Canonical(body)
	if err != nil {
		return cut(fmt.Sprint(body), limit)
	}
	text, isText := canonical.(string)
	if !isText {
		encoded, err := expression.Encode(canonical)
		if err != nil {
			return cut(fmt.Sprint(body), limit)
		}
		if len(encoded) <= limit {
			return canonical
		}
		text = string(encoded)
	}
	return cut(text, limit)
}
