package host

import (
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Go collects garbage each time the heap has doubled. A worker's heap has about ten megabytes, which a load allocates
// again every thirty pages, so that a fifth of the processor time was spent on collections. A block that counts as
// heap but is never written takes no memory, and delays collections by its size. Large heaps grow as without it.
const (
	// mostReserved is the largest size of the block, in bytes. As much garbage may accumulate, which a worker with
	// little memory cannot spare.
	mostReserved = 32 << 20
	// reservedShare limits the block to this fraction (1/16) of the process's memory limit.
	reservedShare = 16
)

var (
	reserveOnce sync.Once
	reserve     []byte
	reserved    atomic.Int64 // its length
)

// ReserveHeap makes this process collect garbage less often while its heap is small, unless GOGC is set.
func ReserveHeap() {
	reserveOnce.Do(func() {
		reserve = make([]byte, reservedBytes(os.LookupEnv, min(debug.SetMemoryLimit(-1), cgroupBytes(os.ReadFile))))
		reserved.Store(int64(len(reserve)))
	})
}

// reservedBytes returns the size of the block for a process with a memory limit.
func reservedBytes(lookup func(string) (string, bool), limit int64) int64 {
	if text, _ := lookup("GOGC"); text != "" {
		return 0
	}
	return min(mostReserved, limit/reservedShare)
}
