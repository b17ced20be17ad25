package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// Errors of Temporal, in the words of playbooks.

// DetailsOf reads the details of a workflow or activity that failed or was cancelled.
func DetailsOf(err error, into any) bool {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok && application.HasDetails() {
		return application.Details(into) == nil
	}
	if cancelled, ok := errors.AsType[*temporal.CanceledError](err); ok && cancelled.HasDetails() {
		return cancelled.Details(into) == nil
	}
	return false
}

func isCancelled(err error) bool {
	var cancelled *temporal.CanceledError
	return errors.As(err, &cancelled)
}

// isOurs returns the error of what was not sent, because it is too large.
func isOurs(err error) (*interpreter.ErrorObject, bool) {
	return errors.AsType[*interpreter.ErrorObject](err)
}

// abandoned reports whether nothing came back because the workflow is cancelled.
func abandoned(ctx workflow.Context, err error) bool {
	_, ours := isOurs(err)
	return ctx.Err() != nil && !ours
}

// childError describes a child workflow that ended without saying how it went: it
// was terminated, or timed out.
func childError(err error) *interpreter.ErrorObject {
	if failure, ours := isOurs(err); ours {
		return failure
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "child_workflow", Message: err.Error(),
	}
}

// AttemptError is the error of an attempt whose activity ended with err, as its call
// gets it: that of the tool, or what the end of the activity means.
func AttemptError(err error) *interpreter.ErrorObject {
	if failure, ours := isOurs(err); ours {
		return failure
	}
	if isCancelled(err) {
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
		return interpreter.WorkerLost()
	}
	if timeout != nil {
		return &interpreter.ErrorObject{
			Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
			Message: "the attempt did not end within its time limit",
		}
	}
	if errors.Is(err, converter.ErrUnableToDecode) { // the next attempt would answer the same
		return &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error()}
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Message: err.Error(),
	}
}

// pauseRateLimitTimeout bounds how long the other attempts may take to be paused.
const pauseRateLimitTimeout = 5 * time.Second

// RefusedMark marks in the history that a policy has made a failure of the answer to an
// attempt, which no other event shows. Kept in workflow history.
type RefusedMark struct {
	Refused string                   `json:"refused"` // the step
	Index   *int                     `json:"index,omitempty"`
	Attempt int                      `json:"attempt"`
	Error   *interpreter.ErrorObject `json:"error"` // without what the answer held
}

// IgnoredMark marks in the history that a policy has ignored the failure of a sink, which then counts as
// written. Kept in workflow history.
type IgnoredMark struct {
	Ignored string `json:"ignored"` // the place of the sink
	Index   *int   `json:"index,omitempty"`
}

// ignored records that a policy of a sink has ignored its failure, which no other event shows.
func (d *driver) ignored(ctx workflow.Context, failure *interpreter.ErrorObject) {
	config := d.call.Config()
	if failure == nil || config.Sink == nil || !d.call.Finished() || d.call.Result().Failed() {
		return
	}
	recordMarker(ctx, IgnoredMark{Ignored: config.Place(), Index: config.Index})
}

// ruled records that a policy has made a failure of the last answer, and pauses
// the other attempts under its rate limit where a policy has read in the outcome that they
// are to wait. The call itself waits in any case. input is nil where the attempt was answered from outside.
func (d *driver) ruled(ctx workflow.Context, input *interpreter.ToolInput) {
	view := d.call.View()
	if view.Refused != nil {
		brief := view.Refused.Brief()
		recordMarker(ctx, RefusedMark{Refused: d.call.Config().Step.Name, Index: d.call.Config().Index, Attempt: view.Attempts, Error: &brief})
	}
	if input == nil {
		return
	}
	in, pauses := input.PausesRateLimit(view.OthersWait)
	if !pauses {
		return
	}
	to := toLocal(interpreter.PauseRateLimitActivity, pauseRateLimitTimeout, "others wait for "+input.Step)
	if _, err := send[struct{}](ctx, to, in, "the rate limit of "+input.Step); err != nil {
		logger(ctx).Warn("cannot pause the other attempts under the rate limit", "error", err)
	}
}
