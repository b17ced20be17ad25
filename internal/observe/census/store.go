package census

import (
	"context"
	"log/slog"
	"time"

	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
)

// StoreEvery is the time between two checks of the payload store. A check writes a value unless one was written in
// the last seconds.
const StoreEvery = 30 * time.Second

// WatchStore logs when the payload store becomes unavailable or available again, and sets meter.StoreUp, until ctx
// ends. It checks the store at the given interval, and at once after a failed operation. It does nothing if store is
// nil; if to is nil, it only logs.
func WatchStore(ctx context.Context, store *payload.Store, to meter.Gauges, logger *slog.Logger, every time.Duration) {
	if store == nil {
		return
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	var away time.Time // since when, zero while it is there
	for {
		err := store.CheckReady(ctx)
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
		case <-store.FailureSignal():
		case <-retryAt(err):
		}
	}
}

// storeRetry is the interval of checks while the store is unavailable, so that its return is reported soon.
const storeRetry = 5 * time.Second

// retryAt returns a channel that receives when to check again after an error; nil, which never receives, without an
// error.
func retryAt(err error) <-chan time.Time {
	if err == nil {
		return nil
	}
	return time.After(storeRetry)
}
