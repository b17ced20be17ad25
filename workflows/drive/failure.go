package drive

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// pauseRateLimitTimeout bounds the activity that pauses other attempts under a rate limit.
const pauseRateLimitTimeout = 5 * time.Second

// recordIgnored records that a policy ignored the failure of a sink, which no other event shows.
func (d *Driver) recordIgnored(ctx workflow.Context, failure *interpreter.ErrorObject) {
	config := d.Call.Config()
	if failure == nil || config.Sink == nil || !d.Call.Finished() || d.Call.Result().Failed() {
		return
	}
	gate.RecordMarker(ctx, protocol.IgnoredMark{Ignored: config.StepOrSink(), Index: config.Index})
}

// recordRuled records that a policy turned the last response into a failure. It also pauses other attempts under
// the rate limit if a policy read a requested wait from the outcome; the call itself waits in any case. input is
// nil if the attempt was answered from outside.
func (d *Driver) recordRuled(ctx workflow.Context, input *interpreter.ToolInput) {
	view := d.Call.View()
	if view.Refused != nil {
		brief := view.Refused.BriefError()
		gate.RecordMarker(ctx, protocol.RefusedMark{Refused: d.Call.Config().Step.Name, Index: d.Call.Config().Index, Attempt: view.Attempts, Error: &brief})
	}
	if input == nil {
		return
	}
	in, pauses := input.PausesRateLimit(view.OthersWait)
	if !pauses {
		return
	}
	to := gate.ToLocal(interpreter.PauseRateLimitActivity, pauseRateLimitTimeout, "others wait for "+input.Step)
	if _, err := gate.Send[struct{}](ctx, to, in, "the rate limit of "+input.Step); err != nil {
		gate.Logger(ctx).Warn("cannot pause the other attempts under the rate limit", "error", err)
	}
}
