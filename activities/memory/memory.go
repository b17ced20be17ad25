// Package memory bounds the memory that all attempts of a worker use together for what they
// read.
package memory

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"reprise/activities/tool"
)

// DefaultBytes bounds the memory that all attempts of a worker use together for what they read:
// 256 MiB.
const DefaultBytes = 256 << 20

// Variable is the environment variable that bounds what the attempts
// of a worker read at once.
const Variable = "REPRISE_MAX_ANSWERS_BYTES"

const (
	// freeBytes of what each attempt reads are not counted, because the number of attempts is
	// bounded.
	freeBytes = 64 << 10
	// firstBytes is the initial buffer for a body of unknown length.
	firstBytes = 16 << 10
	// freeJSON is the same for JSON that is decoded, which takes many times as much memory.
	freeJSON = 4 << 10
	// pageBytes is a size that pages rarely exceed.
	pageBytes = 1 << 20
	// growth is how many times its length a body takes at most while it grows: the old buffer
	// and the new one.
	growth = 2
)

// Pool is memory that the attempts of a worker share for what they read. It is lent in stages.
// An attempt that holds memory of one stage waits only for a later stage, so attempts cannot
// deadlock. A slow response uses up memory of its own stage only and does not block those that
// are being read.
type Pool struct {
	total  int64
	stages [stages]*semaphore.Weighted
	sizes  [stages]int64

	acquired atomic.Int64 // by all attempts so far

	mu         sync.Mutex
	left       []func() // release what is garbage now
	collecting bool
}

// Acquired is how many bytes attempts have acquired so far, including released ones.
func (m *Pool) Acquired() int64 { return m.acquired.Load() }

// stage is the purpose of lent memory.
type stage int

const (
	stagePage    stage = iota // a body of up to pageBytes on its way
	stageLarge                // one that is longer
	stageCharset              // one in UTF-8 that was in something else
	stageValue                // what is made of it, until it has left the worker
	stages
)

// NewPool shares total bytes: all of it for values, whose estimates are high,
// and a quarter for each kind of body.
func NewPool(total int64) *Pool {
	const share = 4
	m := &Pool{total: total, sizes: [stages]int64{total / share, total / share, total / share, total}}
	for s, size := range m.sizes {
		m.stages[s] = semaphore.NewWeighted(size)
	}
	return m
}

// loan is the memory that one attempt holds.
type loan struct {
	memory *Pool

	mu    sync.Mutex
	held  [stages]int64
	users int // how many have not called done
}

type loanKey struct{}

// WithLoan is the context of an attempt that may acquire memory. done is to be
// called twice: at the end of the attempt, and once its outcome has left the worker.
func (m *Pool) WithLoan(ctx context.Context) (_ context.Context, done func()) {
	const users = 2
	l := &loan{memory: m, users: users}
	return context.WithValue(ctx, loanKey{}, l), l.markDone
}

// MarkDone says that the attempt of ctx has made its result.
func MarkDone(ctx context.Context) {
	if l := loanOf(ctx); l != nil {
		l.markDone()
	}
}

func (l *loan) markDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.memory.releaseStages(l.held)
}

// releaseStages returns what was acquired. A large amount is returned only after a garbage
// collection: before that, the memory is still in use.
func (m *Pool) releaseStages(taken [stages]int64) {
	const much = 16 << 20
	sum := int64(0)
	for _, bytes := range taken {
		sum += bytes
	}
	release := func() {
		for s, bytes := range taken {
			m.stages[s].Release(bytes)
		}
	}
	if sum < much {
		release()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, release)
	if !m.collecting {
		m.collecting = true
		go m.collectGarbage()
	}
}

// collectGarbage runs until nothing is left.
func (m *Pool) collectGarbage() {
	for {
		m.mu.Lock()
		left := m.left
		m.left, m.collecting = nil, len(left) > 0
		m.mu.Unlock()
		if len(left) == 0 {
			return
		}
		runtime.GC()
		for _, release := range left {
			release()
		}
	}
}

// acquireStage acquires bytes of a stage. Each stage is used once, in order. A request for more
// than the pool has waits until nobody else holds any. The error comes from ctx.
func (l *loan) acquireStage(ctx context.Context, s stage, bytes int64) error {
	bytes = min(bytes, l.memory.sizes[s])
	l.mu.Lock()
	taken := l.held[s]
	l.mu.Unlock()
	if taken > 0 || bytes <= 0 {
		return nil
	}
	if !l.memory.stages[s].TryAcquire(bytes) {
		if err := l.memory.stages[s].Acquire(ctx, bytes); err != nil {
			return &WaitError{err}
		}
	}
	l.memory.acquired.Add(bytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[s] = bytes
	return nil
}

// WaitError is the error of an attempt that ended while it waited for memory.
type WaitError struct{ cause error }

func (e *WaitError) Error() string {
	return "it waited for memory for what it reads: " + e.cause.Error()
}

func (e *WaitError) Unwrap() error { return e.cause }

func loanOf(ctx context.Context) *loan {
	l, _ := ctx.Value(loanKey{}).(*loan)
	return l
}

// AcquireBody acquires memory for a body of at most limit bytes, of which read bytes have
// arrived.
func AcquireBody(ctx context.Context, read, limit int64) error {
	l := loanOf(ctx)
	switch {
	case l == nil || read < freeBytes:
		return nil
	case read < pageBytes:
		return l.acquireStage(ctx, stagePage, growth*min(limit, pageBytes))
	}
	tool.AwaitMemory(ctx)
	return l.acquireStage(ctx, stageLarge, growth*limit)
}

// AcquireCharset lends memory for making UTF-8 of a body: a byte becomes up to
// three, and the buffer doubles.
func AcquireCharset(ctx context.Context, body []byte) error {
	const perByte = 8
	l := loanOf(ctx)
	if l == nil || len(body) <= freeBytes {
		return nil
	}
	return l.acquireStage(ctx, stageCharset, perByte*int64(len(body)))
}

// AcquireValue acquires memory for a value decoded from a body. It refuses more than the pool
// has.
func AcquireValue(ctx context.Context, bytes int64, what string) error {
	l := loanOf(ctx)
	switch {
	case l == nil:
		return nil
	case bytes > l.memory.total:
		return tool.TooLargeErrorf("%s would need %d bytes of memory, and this worker has %d (%s); request less at a time",
			what, bytes, l.memory.total, Variable)
	}
	if bytes > pageBytes {
		tool.AwaitMemory(ctx)
	}
	return l.acquireStage(ctx, stageValue, bytes)
}

// AcquireBatches lends memory for rows that are read and passed on a batch at a time. Unlike an answer that is read at once, they
// are not what a worker is lost by.
func AcquireBatches(ctx context.Context, bytes int64) error {
	if l := loanOf(ctx); l != nil {
		return l.acquireStage(ctx, stageValue, bytes)
	}
	return nil
}

// AcquireJSON waits for the memory that JSON takes once it is decoded. What would be
// more than all there is, or than most bytes of JSON again, is refused.
func AcquireJSON(ctx context.Context, body []byte, most int, what string) error {
	l := loanOf(ctx)
	if l == nil || len(body) <= freeJSON {
		return nil
	}
	estimate := estimateJSON(body)
	if estimate.least > most {
		return tool.TooLargeErrorf("%s: the result of one attempt has %d bytes of JSON or more, the limit is %d; request less at a time", what, estimate.least, most)
	}
	return AcquireValue(ctx, estimate.bytes, what)
}

// RowCounter counts the rows of a result as they are read.
type RowCounter struct{ bytes int64 }

// CountRow counts a row before it is made. Rows that take half of the memory are too
// many.
func (r *RowCounter) CountRow(ctx context.Context, values, bytes int) error {
	l := loanOf(ctx)
	if l == nil {
		return nil
	}
	const share = 2
	r.bytes += MapBytes + int64(values)*EntryBytes + int64(bytes)
	switch most := l.memory.total / share; {
	case r.bytes > most:
		return tool.TooLargeErrorf("the result needs more than %d bytes of memory, half of what this worker has (%s); select fewer columns, or page with LIMIT",
			most, Variable)
	case r.bytes > pageBytes:
		return AcquireValue(ctx, most, "the result")
	}
	return nil
}

// ErrTooLarge stops the reading of a body that is over the limit.
var ErrTooLarge = errors.New("the body is larger than the limit")

// ReadAll reads a body of at most most bytes, or of limit bytes if it turns out to be longer.
func ReadAll(ctx context.Context, body io.Reader, most, limit int64) ([]byte, error) {
	content := make([]byte, 0, min(most, firstBytes)+bytes.MinRead)
	for {
		n, err := body.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case int64(len(content)) > limit:
			return content[:limit], ErrTooLarge
		case errors.Is(err, io.EOF):
			return content, nil
		case err != nil:
			return content, err
		case len(content) < cap(content):
			continue
		}
		if err := AcquireBody(ctx, int64(len(content)), most); err != nil {
			return content, err
		}
		larger := max(min(growth*cap(content), int(most)), len(content)) + bytes.MinRead
		content = append(make([]byte, 0, larger), content...)
	}
}
