// Package slots limits how much runs at the same time for one key, such as a workflow or a sender.
package slots

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy means that the maximum number of callers wait for a slot of the key.
var ErrBusy = errors.New("too many are waiting for a slot")

// ByKey manages the slots of each key.
type ByKey struct {
	each    int
	waiting int // how many more of a key wait; 0 is no bound

	mu sync.Mutex
	of map[string]*queue
}

// queue holds the slots of one key, and counts its users.
type queue struct {
	slots  chan struct{}
	length int // those that have a slot, and those that wait for one
}

// New returns a limiter: each is the number of slots per key, waiting how many callers may wait per key; 0 is
// unbounded.
func New(each, waiting int) *ByKey {
	return &ByKey{each: each, waiting: waiting, of: map[string]*queue{}}
}

// Enter waits for a slot of a key until ctx is done. leave releases it. The error is ErrBusy or that of ctx.
func (b *ByKey) Enter(ctx context.Context, key string) (leave func(), err error) {
	one, err := b.joinQueue(key)
	if err != nil {
		return nil, err
	}
	if err := AcquireSlot(ctx, one.slots); err != nil {
		b.leaveQueue(key, one)
		return nil, err
	}
	return func() {
		<-one.slots
		b.leaveQueue(key, one)
	}, nil
}

// AcquireSlot waits for a free slot and acquires it. The error is that of ctx.
func AcquireSlot(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *ByKey) joinQueue(key string) (*queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[key]
	if one == nil {
		one = &queue{slots: make(chan struct{}, b.each)}
		b.of[key] = one
	}
	if b.waiting > 0 && one.length == b.each+b.waiting {
		return nil, ErrBusy
	}
	one.length++
	return one, nil
}

func (b *ByKey) leaveQueue(key string, one *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one.length--; one.length == 0 {
		delete(b.of, key)
	}
}
