package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

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

// refused records that a policy has made a failure of the last answer, and pauses
// the other attempts under its rate limit where the answer asks for that. The call itself
// waits in any case. input is nil where the attempt was answered from outside.
func (d *driver) refused(ctx workflow.Context, input *interpreter.ToolInput) {
	failure := d.call.View().Refused
	if failure == nil {
		return
	}
	brief := failure.Brief()
	recordMarker(ctx, RefusedMark{Refused: d.call.Config().Step.Name, Index: d.call.Config().Index, Attempt: d.call.View().Attempts, Error: &brief})
	if input == nil {
		return
	}
	in, pauses := input.PausesRateLimit(failure)
	if !pauses {
		return
	}
	to := toLocal(interpreter.PauseRateLimitActivity, pauseRateLimitTimeout, "others wait for "+input.Step)
	if _, err := send[struct{}](ctx, to, in, "the rate limit of "+input.Step); err != nil {
		logger(ctx).Warn("cannot pause the other attempts under the rate limit", "error", err)
	}
}
