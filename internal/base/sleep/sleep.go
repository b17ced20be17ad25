// Package sleep waits.
package sleep

import (
	"context"
	"time"
)

// For waits for a duration. If the context ends earlier, it returns the cause at once.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if UnlessStopped(ctx, d, nil, nil) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// UnlessStopped waits for a duration. It returns early with stopped if stop is closed, or with the context's error if that
// ends.
func UnlessStopped(ctx context.Context, d time.Duration, stop <-chan struct{}, stopped error) error {
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
