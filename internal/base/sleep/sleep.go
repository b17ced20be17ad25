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
	if Unless(ctx, d, nil, nil) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Unless waits for a duration. Where stop is closed before, it gives stopped at once, and where the context ends, its error.
func Unless(ctx context.Context, d time.Duration, stop <-chan struct{}, stopped error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stop:
		return stopped
	case <-ctx.Done():
		return ctx.Err()
	}
}
