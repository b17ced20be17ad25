package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// This file converts errors of Temporal to errors of playbooks.

// DecodeDetails decodes the details of a workflow or activity that failed or was cancelled; false if there are none.
func DecodeDetails(err error, into any) bool {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok && application.HasDetails() {
		return application.Details(into) == nil
	}
	if cancelled, ok := errors.AsType[*temporal.CanceledError](err); ok && cancelled.HasDetails() {
		return cancelled.Details(into) == nil
	}
	return false
}

// IsCancelled reports whether err comes from a cancel.
func IsCancelled(err error) bool {
	var cancelled *temporal.CanceledError
	return errors.As(err, &cancelled)
}

// IsTimeout reports whether err is a timeout of Temporal's. Then it is unknown what the activity has done.
func IsTimeout(err error) bool {
	var timeout *temporal.TimeoutError
	return errors.As(err, &timeout)
}

// UnsentError returns the error of gate.Send about an input that was too large to be sent; false for another error.
func UnsentError(err error) (*interpreter.ErrorObject, bool) {
	return errors.AsType[*interpreter.ErrorObject](err)
}

// IsOwnCancel reports whether err is only the cancel of the workflow itself, so that nothing is known about the
// outcome it waited for.
func IsOwnCancel(ctx workflow.Context, err error) bool {
	_, ours := UnsentError(err)
	return ctx.Err() != nil && !ours
}

// ChildError returns the error for a child workflow that ended without reporting a result: it was terminated, or
// timed out.
func ChildError(err error) *interpreter.ErrorObject {
	if failure, ours := UnsentError(err); ours {
		return failure
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "child_workflow", Message: err.Error(),
	}
}

// AttemptError returns the error of an attempt whose activity ended with err: the tool's failure, or an error
// derived from the end of the activity.
func AttemptError(err error) *interpreter.ErrorObject {
	if failure, ours := UnsentError(err); ours {
		return failure
	}
	if IsCancelled(err) {
		return &interpreter.ErrorObject{
			Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "cancelled",
		}
	}
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		var object interpreter.ErrorObject
		if application.HasDetails() && application.Details(&object) == nil && object.Kind != "" {
			return &object
		}
		return &interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
			Type: application.Type(), Message: application.Message(),
		}
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		return interpreter.WorkerLostError()
	}
	if timeout != nil {
		return &interpreter.ErrorObject{
			Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
			Message: "the attempt exceeded its time limit",
		}
	}
	if errors.Is(err, converter.ErrUnableToDecode) { // the next attempt would return the same
		return &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error()}
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Message: err.Error(),
	}
}

// NewCallResult returns a call result with the failure; for nil a success.
func NewCallResult(failure *interpreter.ErrorObject) interpreter.CallResult {
	if failure == nil {
		return interpreter.CallResult{Status: interpreter.StatusSuccess}
	}
	return interpreter.CallResult{Status: interpreter.StatusError, Error: failure}
}

// EndOf converts the end of a child run to the outcome of the attempt that started it: its result, or its failure.
// ended is false if the child run was cancelled, which is not an outcome.
func EndOf(id string, result Result, err error) (outcome interpreter.Outcome, ended bool) {
	if err != nil {
		return interpreter.Outcome{Err: playError(id, err), Rows: rowsOf(err)}, !IsCancelled(err)
	}
	switch result.Status {
	case interpreter.Completed, interpreter.Partial:
		outcome = interpreter.Outcome{Data: result.Result.Data, Partial: result.Status == interpreter.Partial, Rows: result.Rows}
		if n := len(result.Warnings); n > 0 {
			outcome.Warnings = []string{fmt.Sprintf("the run that it started has %s: %s", source.Count(n, "warning"), id)}
		}
		return outcome, true
	case interpreter.Skipped: // its playbook demands that it is skipped, which is not a failure
		return interpreter.Outcome{Warnings: []string{fmt.Sprintf("the run that it started was skipped: %s", id)}}, true
	case interpreter.Cancelled:
		return interpreter.Outcome{Err: playError(id, temporal.NewCanceledError()), Rows: result.Rows}, false
	}
	failure := cmp.Or(result.Error, &interpreter.ErrorObject{Class: interpreter.ClassRetryable, Message: "it gave no reason"})
	return interpreter.Outcome{Err: runFailed(id, failure), Rows: result.Rows}, true
}

// rowsOf returns what a failed or cancelled run did to data; nil if its error does not include that.
func rowsOf(err error) *interpreter.Rows {
	var (
		failed    *temporal.ApplicationError
		cancelled *temporal.CanceledError
		result    Result
	)
	switch {
	case errors.As(err, &failed) && failed.HasDetails():
		err = failed.Details(&result)
	case errors.As(err, &cancelled) && cancelled.HasDetails():
		err = cancelled.Details(&result)
	}
	if err != nil {
		return nil
	}
	return result.Rows
}

// runFailed returns the failure of a run, for the step that started it. If the cause is in a deeper child run, the
// error names that one and not the runs in between.
func runFailed(id string, cause *interpreter.ErrorObject) *interpreter.ErrorObject {
	in, message, shown := id, cause.ShortMessage(), cause.ShrunkError()
	if below, _ := cause.Body.Data.(map[string]any); cause.Kind == interpreter.KindPlaybook && below != nil {
		deepest, _ := below["failed_in"].(string)
		text, _ := below["cause"].(string)
		if deepest != "" && text != "" {
			in, message = deepest, text
		}
		flat := *shown
		flat.Body = expression.Value{}
		shown = &flat
	}
	text := fmt.Sprintf("the run %s failed: %s", id, message)
	if in != id {
		text = fmt.Sprintf("the run %s failed, in %s: %s", id, in, message)
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: cause.Class, Status: cause.Status, Final: cause.Final, Type: string(cause.Kind), Message: text,
		URL: cause.URL,
		Body: expression.Of(map[string]any{
			"workflow_id": id, "status": string(interpreter.Failed), "error": shown.Value(), "failed_in": in, "cause": message,
		}),
	}
}

// playError returns the failure of a child run that ended without a result: it was terminated, timed out, or could
// not be started.
func playError(id string, err error) *interpreter.ErrorObject {
	if failure, ours := UnsentError(err); ours {
		return failure
	}
	failure := &interpreter.ErrorObject{Kind: interpreter.KindPlaybook, Class: interpreter.ClassRetryable}
	var application *temporal.ApplicationError
	status := interpreter.Failed
	switch {
	case IsCancelled(err):
		failure.Class, failure.Type, status = interpreter.ClassFinal, string(interpreter.KindCancelled), interpreter.Cancelled
		failure.Message = fmt.Sprintf("the run %s was cancelled", id)
	case errors.As(err, &application):
		// Temporal rejected the start, and would do so again.
		failure.Class, failure.Type = interpreter.ClassFinal, application.Type()
		failure.Final = slices.Contains([]string{InvalidPlaybook, interpreter.UnknownPlaybook, InvalidInput}, application.Type())
		failure.Message = fmt.Sprintf("the run %s failed: %s", id, application.Message())
	default:
		failure.Type = "child_workflow"
		failure.Message = fmt.Sprintf("the run %s ended without a result: %v", id, err)
	}
	failure.Body = expression.Of(map[string]any{"workflow_id": id, "status": string(status)})
	return failure
}

// CancelledError returns the failure of an attempt that was cancelled.
func CancelledError() *interpreter.ErrorObject { return AttemptError(temporal.NewCanceledError()) }

// FailedOutcome returns the outcome of an attempt that could not start its child run, with a message for people.
func FailedOutcome(class interpreter.Class, format string, args ...any) interpreter.Outcome {
	return interpreter.Outcome{Err: &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: class, Message: fmt.Sprintf(format, args...),
	}}
}

// NotContinuedError returns the failure of work of an earlier run that cannot be continued now; a later run may be
// able to.
func NotContinuedError(why string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: call.TypeNotContinued,
		Message: why + "; it is not sent again, because it may already have been sent",
	}
}
