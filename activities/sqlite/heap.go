package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reprise/activities/memory"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// heap is the memory that SQLite takes from this process, for all files
// and all statements together.
var heap = &sharedHeap{counts: countMemory()}

// sharedHeap bounds SQLite's memory. Values have a maximal size, but a statement may create any
// number of them at once.
type sharedHeap struct {
	// counts is SQLite's code for whether it counts its memory, without which there is no
	// bound.
	counts int32

	mu    sync.Mutex
	limit int64
	using int // how many use SQLite now
	began int // how many have begun to
}

// countMemory switches on SQLite's accounting of memory, which this build disables. That works
// only before the first use.
func countMemory() int32 {
	tls := libc.NewTLS()
	defer tls.Close()
	args := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(uintptr(0))))
	if args == 0 {
		return codes.SQLITE_NOMEM
	}
	defer libc.Xfree(tls, args)
	return codes.Xsqlite3_config(tls, codes.SQLITE_CONFIG_MEMSTATUS, libc.VaList(args, int32(1)))
}

// allowBytes lets SQLite use a number of bytes, or what it was allowed before if that is more.
func (h *sharedHeap) allowBytes(limit int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if limit <= h.limit {
		return
	}
	h.limit = limit
	tls := libc.NewTLS()
	defer tls.Close()
	codes.Xsqlite3_hard_heap_limit64(tls, limit)
	codes.Xsqlite3_soft_heap_limit64(tls, limit) // from where pages that nobody uses make room
}

// useHeap runs do, which uses SQLite. If memory runs out, the error is final if do was alone,
// and retryable if others used some.
func (h *sharedHeap) useHeap(do func() error) error {
	if h.counts != codes.SQLITE_OK {
		return tool.Errorf("this build's SQLite does not count its memory (code %d)", h.counts)
	}
	alone := h.enterUse()
	err := do()
	return h.outOfMemory(err, alone())
}

// enterUse counts a use. The returned function ends it and reports whether there was no other
// use at the same time.
func (h *sharedHeap) enterUse() (alone func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.using++
	h.began++
	first, began := h.using == 1, h.began
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.using--
		return first && h.began == began
	}
}

// outOfMemory explains the error of SQLite for a lack of memory. It returns other errors
// unchanged.
func (h *sharedHeap) outOfMemory(err error, alone bool) error {
	var db *sqlite.Error
	if !errors.As(err, &db) || db.Code() != codes.SQLITE_NOMEM && db.Code() != codes.SQLITE_IOERR_NOMEM {
		return err
	}
	h.mu.Lock()
	limit := h.limit
	h.mu.Unlock()
	if alone {
		return &tool.Error{
			Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal, Type: "SQLITE_NOMEM", Final: true, Err: err,
			Message: fmt.Sprintf("SQLite would need more than %d bytes of memory, all that it has in this worker (%s); "+
				"use fewer or shorter values at a time, for example with substr() or LIMIT", limit, memory.Variable),
		}
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "SQLITE_NOMEM", Err: err,
		Message: fmt.Sprintf("SQLite has no memory left: the attempts of this worker share %d bytes", limit),
	}
}

// heapBytes is how much memory SQLite may use: as much as the worker's attempts for what they
// read, and at least three copies of the largest value that this build accepts, which reading
// and writing one takes.
func heapBytes(res tool.Resources) int64 {
	const copies = 4
	return max(res.MemoryBytes, copies*sqltool.LargestValue(res))
}
