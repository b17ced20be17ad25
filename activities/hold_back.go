package activities

import (
	"context"
	"time"

	"reprise/interpreter"
)

// longestHold is more than attempts are ever held back, in seconds.
const longestHold = 365 * 24 * 3600

// HoldBack is the local activity with which a workflow holds back the attempts under a
// rate limit, where an answer that says it worked asks for patience. An attempt that an
// activity decides about itself does so there.
func (c *Catalogue) HoldBack(ctx context.Context, in interpreter.HoldBackInput) error {
	if limit := c.pacer.limitOf(in.Attempt); limit != nil {
		c.pacer.pause(ctx, *limit, time.Duration(min(in.Seconds, longestHold)*float64(time.Second)))
	}
	return nil
}

// holdBack holds back the others where a policy has made such a failure of the answer
// to an attempt.
func (h *hostedCall) holdBack(ctx context.Context, input interpreter.ToolInput) {
	if in, holds := h.call.HoldsBack(input); holds {
		_ = h.catalogue.HoldBack(ctx, in) // it never fails
	}
}
