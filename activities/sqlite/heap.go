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

// sharedHeap bounds that memory. A statement can ask for any amount of it: for
// each value there is a limit, for how many it makes at once there is none.
type sharedHeap struct {
	// counts is SQLite's code for whether it counts what it takes, without which
	// there is no bound.
	counts int32

	mu    sync.Mutex
	limit int64
	using int // how many use SQLite now
	began int // how many have begun to
}

// countMemory has SQLite count what it takes, which this build of it leaves
// out. It accepts that only before its first use.
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

// allowBytes lets SQLite have so many bytes, or what it was allowed before if that is more.
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

// useHeap has do use SQLite. What it fails with for want of memory is final where it
// had all of it for itself, and retryable where others may have had it.
func (h *sharedHeap) useHeap(do func() error) error {
	if h.counts != codes.SQLITE_OK {
		return tool.Errorf("this build's SQLite does not count its memory (code %d)", h.counts)
	}
	alone := h.enterUse()
	err := do()
	return h.outOfMemory(err, alone())
}

// enterUse counts a use in. What it gives counts it out again, and says whether there
// was no other meanwhile.
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

// outOfMemory says what it means that SQLite got no memory. Other errors stay.
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

// heapBytes is what SQLite may take: as much as the attempts of the worker
// take for what they read, and no less than it needs to write and read back a value of this
// build's own, of which it makes up to three copies.
func heapBytes(res tool.Resources) int64 {
	const copies = 4
	return max(res.MemoryBytes, copies*sqltool.LargestValue(res))
}
