package connection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// SecretStore is a server that has secrets.
type SecretStore interface {
	// FetchSecret reads a secret, whatever its field. Errors wrap ErrMissing or ErrUnreadable, and have nothing of a secret.
	FetchSecret(ctx context.Context, source SecretSource) (StoredSecret, error)
	// Close ends what the store has given out. No secret is read then.
	Close(ctx context.Context) error
}

// StoredSecret is a secret of a store.
type StoredSecret struct {
	// Value is a text, a JSON object if it has fields.
	Value string
	Lease *SecretLease // nil for a secret that stays until it is changed
}

// SecretLease is how long a secret counts that was made for this program.
type SecretLease struct {
	Until time.Time
	// Renew extends the lease and returns its new end; nil if that is not possible.
	Renew func(context.Context) (time.Time, error)
	// Revoke ends the lease; nil if the store does that when it is closed.
	Revoke func(context.Context) error
}

const (
	// storeTimeout is how long a store may take. Attempts wait for it.
	storeTimeout = 10 * time.Second
	// storePause is the shortest time between a request that a store could not answer and the next one for the same secret.
	// It is also the shortest time for which a lease is used, because each new lease makes another account.
	storePause = 10 * time.Second
	// leaseTick is the least time between two looks at leases.
	leaseTick = 100 * time.Millisecond
)

// document is a secret of a store with all of its fields, so that a user and a password belong together.
type document struct {
	source SecretSource

	begun atomic.Int64 // how often it has been requested

	mu      sync.Mutex // also held during requests, which are one at a time
	value   string     // "" before it was read
	readAt  time.Time
	lease   *SecretLease
	leased  time.Duration  // how long the lease counted when it was new
	renewAt time.Time      // of the lease
	earlier []*SecretLease // that attempts may still use
	failed  error          // why it could not be read
	triedAt time.Time
}

// readStored is Read for a source in a store.
func (s *Sources) readStored(source SecretSource, anew bool) (string, error) {
	doc := s.documentOf(source)
	seen := doc.begun.Load()
	doc.mu.Lock()
	defer doc.mu.Unlock()
	err := error(nil)
	if !doc.isFresh(s.Now(), source.Refresh, anew && doc.begun.Load() == seen) {
		err = s.refresh(doc, anew)
	}
	value := ""
	if err == nil {
		value, err = source.memberOf(doc.value)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return value, nil
}

// documentOf returns the document of a source.
func (s *Sources) documentOf(source SecretSource) *document {
	key := source
	key.Field, key.Refresh = "", 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.documents == nil {
		s.documents = map[SecretSource]*document{}
	}
	if s.documents[key] == nil {
		s.documents[key] = &document{source: key}
	}
	return s.documents[key]
}

// isFresh reports whether the value needs no request. anew says that it was refused.
func (d *document) isFresh(now time.Time, refresh time.Duration, anew bool) bool {
	switch {
	case d.value == "" || d.failed != nil:
		return false
	case d.lease != nil:
		return now.Before(d.renewAt) && (!anew || now.Sub(d.readAt) < storePause)
	}
	return !anew && now.Sub(d.readAt) < refresh
}

// counts reports whether the last value may be used while the store cannot be read.
func (d *document) counts(now time.Time) bool {
	if d.value == "" {
		return false
	}
	if d.lease != nil {
		return now.Before(d.lease.Until)
	}
	return now.Sub(d.readAt) < stale
}

// refresh reads a document again, or renews its lease. The error says why there is no value.
func (s *Sources) refresh(d *document, anew bool) error {
	now := s.Now()
	if d.failed != nil && now.Sub(d.triedAt) < storePause {
		if d.counts(now) {
			return nil
		}
		return d.failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if !anew && s.renewLease(ctx, d) {
		return nil
	}
	before := d.failed
	err := s.fetch(ctx, d)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrMissing):
		d.value = ""
	case d.counts(now):
		if before == nil {
			s.warn("cannot re-read a secret; its last value stays in use", "source", d.source.String(), "error", err, "read_at", d.readAt)
			s.mu.Lock()
			s.notifyChange(d.source, err)
			s.mu.Unlock()
		}
		return nil
	}
	return err
}

// fetch requests a document.
func (s *Sources) fetch(ctx context.Context, d *document) error {
	store := s.Stores[d.source.From]
	if store == nil {
		return fmt.Errorf("%w: this program reads no secrets from %s", ErrMissing, d.source.From)
	}
	d.begun.Add(1)
	now := s.Now()
	secret, err := store.FetchSecret(ctx, d.source)
	if err == nil && secret.Value == "" {
		err = ErrMissing
	}
	if d.triedAt, d.failed = now, err; err != nil {
		return err
	}
	if d.value != "" && d.value != secret.Value {
		s.mu.Lock()
		s.notifyChange(d.source, nil)
		s.mu.Unlock()
	}
	if d.lease != nil {
		d.earlier = append(d.earlier, d.lease)
	}
	d.value, d.readAt, d.lease = secret.Value, now, secret.Lease
	if d.lease != nil {
		d.leased = d.lease.Until.Sub(now)
		d.renewAt = twoThirds(now, d.lease.Until)
		s.leases.start(s)
	}
	return nil
}

// twoThirds returns the time at which a lease is renewed.
func twoThirds(from, until time.Time) time.Time { return from.Add(until.Sub(from) * 2 / 3) }

// renewLease extends the lease of a document, if it is time. It returns false if the lease has to be replaced: it cannot be
// extended, or not by much, because it has reached the longest time that the store allows.
func (s *Sources) renewLease(ctx context.Context, d *document) bool {
	now := s.Now()
	if d.lease == nil || d.lease.Renew == nil || !now.Before(d.lease.Until) {
		return false
	}
	until, err := d.lease.Renew(ctx)
	if err != nil || until.Sub(now) < d.leased/2 {
		d.lease.Renew = nil
		return false
	}
	d.lease.Until, d.renewAt = until, twoThirds(now, until)
	return true
}

func (s *Sources) warn(message string, fields ...any) {
	if s.Logger != nil {
		s.Logger.Warn(message, fields...)
	}
}

// leaseWatcher renews leases while nobody reads their secrets: an attempt may run for longer than a lease.
type leaseWatcher struct {
	once   sync.Once
	mu     sync.Mutex
	cancel context.CancelFunc // nil before there is a lease
	closed bool
}

// start renews the leases of sources from now on.
func (k *leaseWatcher) start(s *Sources) {
	k.once.Do(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.closed {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		k.cancel = cancel
		go s.watchLeases(ctx)
	})
}

func (s *Sources) watchLeases(ctx context.Context) {
	for {
		next := s.RenewLeases(ctx)
		wait := max(leaseTick, next.Sub(s.Now()))
		if next.IsZero() {
			wait = storePause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// RenewLeases renews the leases for which it is time, and returns when the next one is to be renewed; zero if there is none.
// Those that cannot be renewed are replaced when their secret is read.
func (s *Sources) RenewLeases(ctx context.Context) (next time.Time) {
	for _, doc := range s.allDocuments() {
		doc.mu.Lock()
		if doc.lease != nil && doc.lease.Renew != nil {
			limited, cancel := context.WithTimeout(ctx, storeTimeout)
			holds := s.Now().Before(doc.renewAt) || s.renewLease(limited, doc)
			cancel()
			if holds && (next.IsZero() || doc.renewAt.Before(next)) {
				next = doc.renewAt
			}
		}
		doc.mu.Unlock()
	}
	return next
}

func (s *Sources) allDocuments() []*document {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*document
	for _, doc := range s.documents {
		all = append(all, doc)
	}
	return all
}

// Close revokes the leases of all secrets. Nothing is read after it.
func (s *Sources) Close() error {
	s.leases.mu.Lock()
	cancel, closed := s.leases.cancel, s.leases.closed
	s.leases.closed = true
	s.leases.mu.Unlock()
	if closed {
		return nil
	}
	if cancel != nil {
		cancel()
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	var errs []error
	for _, doc := range s.allDocuments() {
		doc.mu.Lock()
		for _, lease := range append(doc.earlier, doc.lease) {
			if lease == nil || lease.Revoke == nil || !s.Now().Before(lease.Until) {
				continue
			}
			if err := lease.Revoke(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: the lease counts until %s: %w", doc.source, lease.Until.UTC().Format(time.RFC3339), err))
			}
		}
		doc.earlier, doc.lease, doc.value = nil, nil, ""
		doc.mu.Unlock()
	}
	for _, store := range s.Stores {
		errs = append(errs, store.Close(ctx))
	}
	err := errors.Join(errs...)
	if err != nil {
		s.warn("what a store of secrets made for this program could not be revoked", "error", err)
	}
	return err
}
