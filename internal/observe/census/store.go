package census

import (
	"context"
	"log/slog"
	"time"

	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
)

// StoreEvery is the time between two checks of the payload store. A check writes a value unless one was written in the last
// seconds.
const StoreEvery = 30 * time.Second

// WatchStore logs when the payload store goes away and comes back, and shows it in meter.StoreUp, until ctx ends. It checks the
// store every so often, and at once where an operation has failed. It does nothing without a store; to is nil where nobody takes
// figures.
func WatchStore(ctx context.Context, store *payload.Store, to meter.Gauges, logger *slog.Logger, every time.Duration) {
	if store == nil {
		return
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	var away time.Time // since when, zero while it is there
	for {
		err := store.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && away.IsZero():
			away = time.Now()
			logger.Error("the payload store fails: runs that need large values wait until it works", "payload_store", store.Name(), "error", err)
		case err == nil && !away.IsZero():
			logger.Warn("the payload store works again", "payload_store", store.Name(), "after", time.Since(away).Round(time.Second).String())
			away = time.Time{}
		}
		if to != nil {
			up := 1.0
			if err != nil {
				up = 0
			}
			to.Set(meter.StoreUp, up)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		case <-store.Changed():
		case <-retryAt(err):
		}
	}
}

// storeRetry is when a store that is away is checked again, so that its return is reported soon.
const storeRetry = 5 * time.Second

// retryAt is when to check again after an error; nil, which never is, without one.
func retryAt(err error) <-chan time.Time {
	if err == nil {
		return nil
	}
	return time.After(storeRetry)
}
