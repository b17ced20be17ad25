package activities

import (
	"context"
	"time"

	"reprise/interpreter"
)

// longestPause bounds, in seconds, how long the attempts under a rate limit are paused.
const longestPause = 365 * 24 * 3600

// PauseRateLimit is the local activity with which a workflow pauses the attempts under a
// rate limit, where a response that reports success asks clients to wait. A call that an
// activity hosts pauses them there.
func (c *Catalogue) PauseRateLimit(ctx context.Context, in interpreter.PauseRateLimitInput) error {
	if limit := c.pacer.limitOf(in.Attempt); limit != nil {
		c.pacer.pause(ctx, *limit, time.Duration(min(in.Seconds, longestPause)*float64(time.Second)))
	}
	return nil
}

// pauseRateLimit pauses the other attempts under the rate limit where a policy makes
// such a failure of a response.
func (h *hostedCall) pauseRateLimit(ctx context.Context, input interpreter.ToolInput) {
	if in, pauses := input.PausesRateLimit(h.call.View().Refused); pauses {
		_ = h.catalogue.PauseRateLimit(ctx, in) // it never fails
	}
}
