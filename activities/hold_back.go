package activities

import (
	"context"
	"time"

	"reprise/interpreter"
)

// HoldBack is the local activity with which a workflow holds back the attempts under a
// rate limit, where an answer that says it worked asks for patience. An attempt that an
// activity decides about itself does so there.
func (c *Catalogue) HoldBack(ctx context.Context, in interpreter.HoldBackInput) error {
	c.pacer.pause(ctx, in.Limit, time.Duration(in.Seconds*float64(time.Second)))
	return nil
}

// holdBack holds back the others where a policy has made such a failure of the answer
// to an attempt.
func (h *hostedCall) holdBack(ctx context.Context, input interpreter.ToolInput) {
	if in, holds := h.call.HoldsBack(input); holds {
		_ = h.catalogue.HoldBack(ctx, in) // it never fails
	}
}
