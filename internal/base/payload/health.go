package payload

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/sleep"
)

const (
	// trusted is how long the store is assumed to be available after a successful write.
	trusted = 10 * time.Second
	// probeEvery is the least time between two probes of an unavailable store.
	probeEvery = 250 * time.Millisecond
	// probeTimeout bounds one probe.
	probeTimeout = 5 * time.Second
	// driverPatience is how long the SDK's operations are retried. A workflow task has 10 s, an activity the time
	// until its first heartbeat, and a query 5 s.
	driverPatience = 3 * time.Second
	// awayTimeout bounds the SDK's operations while the store has been unavailable for longer than driverPatience.
	awayTimeout = 2 * time.Second
	// rememberedFor is how long the keys written by Write are remembered: until the SDK has sent the references to the
	// server.
	rememberedFor = time.Minute
)

// health is whether the store is available, as far as this process knows.
type health struct {
	mu    sync.Mutex
	err   error     // of the last writing, nil when it went well
	at    time.Time // when that was
	probe sync.Mutex
	// failingSince is when operations began to fail; zero if the last one succeeded.
	failingSince time.Time
	// gaveUp is set if an operation has been tried for driverPatience since then, in vain.
	gaveUp  bool
	changed chan struct{} // has one element once operations begin to fail
}

func (h *health) recordWrite(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err, h.at = err, time.Now()
	h.recordOutcome(err)
}

// recordRead records the outcome of a read. A store that reports a missing value is available.
func (h *health) recordRead(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrCorrupt) {
		err = nil
	}
	if err != nil {
		h.at = time.Time{} // so that CheckReady does not trust what was written before
	}
	h.recordOutcome(err)
}

// recordOutcome records whether an operation succeeded. The lock must be held.
func (h *health) recordOutcome(err error) {
	switch {
	case err == nil:
		h.failingSince, h.gaveUp = time.Time{}, false
	case h.failingSince.IsZero():
		h.failingSince = time.Now()
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
}

// isAway reports whether operations have failed for longer than retries are worthwhile.
func (h *health) isAway() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.failingSince.IsZero() && (h.gaveUp || time.Since(h.failingSince) > driverPatience)
}

// giveUp records that an operation has been tried for driverPatience in vain.
func (h *health) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaveUp = !h.failingSince.IsZero()
}

// FailureSignal returns a channel that receives when operations begin to fail; without a store nil, which never receives.
func (s *Store) FailureSignal() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.health.changed
}

// lastWrite returns the outcome of the last write; false if it is too old to be trusted.
func (h *health) lastWrite() (known bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := trusted
	if h.err != nil {
		most = probeEvery
	}
	return !h.at.IsZero() && time.Since(h.at) < most, h.err
}

// probeValue is what a probe writes: always the same, so that it takes space once, and as large as the smallest value
// that is stored.
var probeValue = bytes.Repeat([]byte("reprise asks whether this store takes values\n"), Threshold/45+1)

// CheckReady returns nil if the store is available. It writes a probe if nothing was written for some seconds. The error
// names the store. Without a store, it returns nil.
func (s *Store) CheckReady(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if known, err := s.health.lastWrite(); known {
		return err
	}
	s.health.probe.Lock()
	defer s.health.probe.Unlock()
	if known, err := s.health.lastWrite(); known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return s.writeValue(ctx, referenceTo(probeValue), probeValue)
}

// Write stores a payload as the SDK would; the SDK then uses it without a request to the store. Payloads that stay in
// Temporal are not written. The error names key and store.
func (s *Store) Write(ctx context.Context, payload *commonpb.Payload) error {
	if s == nil || proto.Size(payload) < Threshold {
		return nil
	}
	data, err := s.encodePayload(payload)
	if err != nil {
		return err
	}
	ref, err := s.putValue(ctx, data)
	if err == nil {
		s.recent.addKey(ref.key)
	}
	return err
}

// recentKeys are keys that were written recently.
type recentKeys struct {
	mu   sync.Mutex
	keys map[string]time.Time
}

func (k *recentKeys) addKey(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[string]time.Time{}
	}
	k.keys[key] = time.Now()
	maps.DeleteFunc(k.keys, func(_ string, at time.Time) bool { return time.Since(at) > rememberedFor })
}

func (k *recentKeys) hasKey(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, found := k.keys[key]
	return found && time.Since(at) < rememberedFor
}

// tryPatiently retries do for some seconds, or calls it once if the store has been unavailable for a while. Missing
// and corrupt values are not retried.
func (s *Store) tryPatiently(ctx context.Context, do func(context.Context) error) error {
	if s.health.isAway() {
		limited, cancel := context.WithTimeout(ctx, awayTimeout)
		defer cancel()
		return do(limited)
	}
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := do(ctx)
		settled := err == nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrCorrupt) || ctx.Err() != nil
		if settled {
			return err
		}
		if time.Since(began)+wait > driverPatience {
			s.health.giveUp()
			return err
		}
		if sleep.For(ctx, wait) != nil {
			return err
		}
	}
}
