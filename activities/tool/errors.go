package tool

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"reprise/internal/base/egress"
	"reprise/interpreter"
)

// MaxErrorBody bounds how many bytes of an error's body are stored in history, which large
// error pages would fill. A longer body becomes text with its middle cut out.
const MaxErrorBody = 16 << 10

// MaxMessage bounds messages, in bytes. Other programs may have written them, and they are in
// histories, logs, memos and lists.
const MaxMessage = 4 << 10

// Error is how a tool says what went wrong; the zero value of every field is
// allowed. It becomes `error` in the playbook's expressions.
type Error struct {
	Kind    interpreter.Kind  // interpreter.Kind…; "" is tool
	Class   interpreter.Class // interpreter.Class…; "" is retryable: an error that says nothing
	Message string            // "" is Err's text
	Type    string            // finer than Kind: econnrefused, an SQLSTATE, the name of an exception
	Status  int               // HTTP status, 0 for none
	// RetryAfter is the wait that the other side requested, nil when it did not.
	RetryAfter *time.Duration
	// Headers are the headers of a failed answer, with lower-case names; what carries
	// credentials is left out of the history, and the rest is bounded.
	Headers map[string]string
	// Answer is the failed response besides its status and headers; nil if there was no
	// response.
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

// Errorf returns an error of kind tool and class final: repeating the attempt
// cannot help, yet a policy may say otherwise.
func Errorf(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error(), Err: errors.Unwrap(err)}
}

// ConfigErrorf returns a final error about the worker's configuration or a field
// the tool cannot work with; it ends the call without asking the policies.
func ConfigErrorf(format string, args ...any) *Error {
	e := Errorf(format, args...)
	e.Final = true
	return e
}

// TooLargeErrorf returns the error of data that is too large to be passed on.
func TooLargeErrorf(format string, args ...any) *Error {
	return &Error{
		Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf(format, args...), Final: true,
	}
}

// TypeSourceChanged is the type of the error of a source that is another one than the one of which a part was read.
const TypeSourceChanged = "source_changed"

// TypeEgressDenied is the type of the error of an address that the operator's rules exclude.
const TypeEgressDenied = "egress_denied"

// UnreachableError returns the error of a request or a session that has reached nobody: kind connection, retryable unless the operator's
// rules exclude the address. message is what was attempted and why it failed.
func UnreachableError(message string, err error) *Error {
	e := &Error{Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: ConnectionType(err), Message: message, Err: err}
	if e.Type == TypeEgressDenied {
		e.Class, e.Final = interpreter.ClassFinal, true
	}
	return e
}

// ConnectionText explains the short name that ConnectionType returns, for messages.
func ConnectionText(kind string) string {
	switch kind {
	case "dns":
		return "its name cannot be resolved"
	case "econnrefused":
		return "connection refused"
	case "econnreset":
		return "reset by the other side"
	case "eof":
		return "closed by the other side"
	}
	return kind
}

// ConnectionType returns the short name of a network failure, such as dns or econnrefused; "" if err
// is none.
func ConnectionType(err error) string {
	var (
		dns         *net.DNSError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		denied      *egress.DeniedError
	)
	switch {
	case errors.As(err, &denied):
		return TypeEgressDenied
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "econnrefused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "econnreset"
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &record), errors.As(err, &alert):
		return "tls"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "eof"
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return "timeout"
	}
	return ""
}

// TokenWaitError is the error of an attempt that ended while it waited for the token of its connection.
type TokenWaitError struct {
	Connection string
	Err        error // of the attempt's context
}

func (e *TokenWaitError) Error() string {
	return fmt.Sprintf("it waited for a token of connection %q: %v", e.Connection, e.Err)
}

// Unwrap returns why the attempt ended.
func (e *TokenWaitError) Unwrap() error { return e.Err }
