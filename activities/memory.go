package activities

import (
	"bytes"
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"
)

// defaultAnswersBytes is how much memory the attempts of a worker take together
// for what they read: 256 MiB.
const defaultAnswersBytes = 256 << 20

const (
	// freeBytes of what an attempt reads are not counted: there are not as many
	// attempts at once.
	freeBytes = 64 << 10
	// freeJSON is the same of JSON that is decoded, which takes many times more.
	freeJSON = 4 << 10
	// pageBytes is what answers seldom exceed.
	pageBytes = 1 << 20
	// growth is what a body takes at most while it grows, times its length: the
	// old buffer and the new one.
	growth = 2
)

// memory is what the attempts of a worker share: bytes for what they read. It is
// lent in stages, and who has some of one stage only waits for a later one, so
// that attempts cannot wait for each other in a circle. A slow answer holds what
// its own stage has, and not the way of those that are read.
type memory struct {
	total  int64
	stages [stages]*semaphore.Weighted
	sizes  [stages]int64

	mu         sync.Mutex
	left       []func() // give back what is garbage now
	collecting bool
}

// stage is what memory is lent for.
type stage int

const (
	stagePage    stage = iota // a body of up to pageBytes on its way
	stageLarge                // one that is longer
	stageCharset              // one in UTF-8 that was in something else
	stageValue                // what is made of it, until it is handed over
	stages
)

// newMemory shares total bytes: all of it for values, whose estimates are high,
// and a quarter for each kind of body.
func newMemory(total int64) *memory {
	const share = 4
	m := &memory{total: total, sizes: [stages]int64{total / share, total / share, total / share, total}}
	for s, size := range m.sizes {
		m.stages[s] = semaphore.NewWeighted(size)
	}
	return m
}

// loan is what one attempt has of the memory.
type loan struct {
	memory *memory

	mu    sync.Mutex
	taken [stages]int64
	users int // who have not said that they are done
}

type loanKey struct{}

// withLoan is the context of an attempt that may take memory. done is to be
// called by two: by who makes the attempt, at its end, and by who hands its outcome over.
func (m *memory) withLoan(ctx context.Context) (_ context.Context, done func()) {
	const users = 2
	l := &loan{memory: m, users: users}
	return context.WithValue(ctx, loanKey{}, l), l.done
}

func (l *loan) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.memory.giveBack(l.taken)
}

// giveBack takes back what was lent, and what is much of it only once the garbage
// is collected that it has become: else the next would get it while it is still
// there.
func (m *memory) giveBack(taken [stages]int64) {
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
		go m.collect()
	}
}

// collect goes on until nothing is left.
func (m *memory) collect() {
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

// take lends bytes for a stage, once for each and in their order. More than
// there is waits until nobody else has any. The error is that of ctx.
func (l *loan) take(ctx context.Context, s stage, bytes int64) error {
	bytes = min(bytes, l.memory.sizes[s])
	l.mu.Lock()
	taken := l.taken[s]
	l.mu.Unlock()
	if taken > 0 || bytes <= 0 {
		return nil
	}
	if !l.memory.stages[s].TryAcquire(bytes) {
		if err := l.memory.stages[s].Acquire(ctx, bytes); err != nil {
			return &memoryError{err}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[s] = bytes
	return nil
}

// memoryError is the end of an attempt that waited for memory.
type memoryError struct{ cause error }

func (e *memoryError) Error() string {
	return "it waited for memory for what it reads: " + e.cause.Error()
}

func (e *memoryError) Unwrap() error { return e.cause }

func loanOf(ctx context.Context) *loan {
	l, _ := ctx.Value(loanKey{}).(*loan)
	return l
}

// takeForBody lends memory for a body that has come as far as read, of at most
// limit bytes in all.
func takeForBody(ctx context.Context, read, limit int64) error {
	l := loanOf(ctx)
	switch {
	case l == nil || read < freeBytes:
		return nil
	case read < pageBytes:
		return l.take(ctx, stagePage, growth*min(limit, pageBytes))
	}
	takesIn(ctx)
	return l.take(ctx, stageLarge, growth*limit)
}

// takeForCharset lends memory for making UTF-8 of a body: a byte becomes up to
// three, and the buffer doubles.
func takeForCharset(ctx context.Context, body []byte) error {
	const most = 8
	l := loanOf(ctx)
	if l == nil || len(body) <= freeBytes {
		return nil
	}
	return l.take(ctx, stageCharset, most*int64(len(body)))
}

// takeForValue lends memory for a value that is made of what was read. What would
// be more than all there is, is refused.
func takeForValue(ctx context.Context, bytes int64, what string) error {
	l := loanOf(ctx)
	switch {
	case l == nil:
		return nil
	case bytes > l.memory.total:
		return tooLargef("%s would take %d bytes of memory, and this worker has %d (%s); ask for less at a time",
			what, bytes, l.memory.total, answersBytesVariable)
	}
	if bytes > pageBytes {
		takesIn(ctx)
	}
	return l.take(ctx, stageValue, bytes)
}

// admitJSON waits for the memory that JSON takes once it is decoded. What would be
// more than all there is, or than most bytes of JSON again, is refused.
func admitJSON(ctx context.Context, body []byte, most int, what string) error {
	l := loanOf(ctx)
	if l == nil || len(body) <= freeJSON {
		return nil
	}
	estimate := estimateJSON(body)
	if estimate.least > most {
		return tooLargef("%s: the result of one attempt is %d bytes of JSON or more, the limit is %d; ask for less at a time", what, estimate.least, most)
	}
	return takeForValue(ctx, estimate.memory, what)
}

// jsonEstimate is what JSON will be once it is decoded.
type jsonEstimate struct {
	memory int64 // bytes, or more
	least  int   // bytes of JSON it will be again, or less, where no map has a key twice
}

// What a decoded value takes in bytes: a map with its first entries, the place
// of an entry, a list, the place of an element while it is read and afterwards,
// a text beside its bytes, and a number.
const (
	mapMemory     = 336
	entryMemory   = 64
	listMemory    = 40
	elementMemory = 48
	textMemory    = 32
	numberMemory  = 16
)

// estimateJSON looks once at JSON, whether it is right or not.
func estimateJSON(body []byte) jsonEstimate {
	e := jsonEstimate{memory: elementMemory}
	for i := 0; i < len(body); {
		c := body[i]
		i++
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			i = e.text(body, i)
			continue
		case '{':
			e.memory += mapMemory
		case '[':
			e.memory += listMemory
		case ':':
			e.memory += entryMemory
		case ',':
			e.memory += elementMemory
		case '}', ']':
		default:
			i = e.word(body, i)
		}
		e.least++
	}
	return e
}

// text counts a text whose quote stands before i, and gives where it ends.
func (e *jsonEstimate) text(body []byte, i int) int {
	start := i
	for i < len(body) && body[i] != '"' {
		if body[i] == '\\' {
			i++
		}
		i++
	}
	end := min(i, len(body))
	const shrinks = len(`\u0000`) - 1 // to one byte
	e.memory += textMemory + int64(end-start)
	e.least += end - start + len(`""`) - shrinks*bytes.Count(body[start:end], []byte(`\u`))
	return end + 1
}

// word counts a number or a word that begins before i, and gives where it ends.
func (e *jsonEstimate) word(body []byte, i int) int {
	start := i
	for i < len(body) && body[i] > ',' && body[i] != ':' && body[i] != ']' && body[i] != '}' {
		i++
	}
	const short = 18 // digits of what is kept as a machine number
	e.memory += numberMemory
	if i-start > short {
		e.memory += int64(i - start)
	}
	return i
}

// rowMemory counts the rows of a result as they come.
type rowMemory struct{ bytes int64 }

// add counts a row before it is made. Rows that take half of the memory are too
// many.
func (r *rowMemory) add(ctx context.Context, values, bytes int) error {
	l := loanOf(ctx)
	if l == nil {
		return nil
	}
	const share = 2
	r.bytes += mapMemory + int64(values)*entryMemory + int64(bytes)
	switch most := l.memory.total / share; {
	case r.bytes > most:
		return tooLargef("the result takes more than %d bytes of memory, half of what this worker has (%s): select fewer columns, or page with LIMIT",
			most, answersBytesVariable)
	case r.bytes > pageBytes:
		return takeForValue(ctx, most, "the result")
	}
	return nil
}
