// Package sleep waits.
package sleep

import (
	"context"
	"time"
)

// For waits for a duration. Where the context ends before, it gives the cause at once.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
