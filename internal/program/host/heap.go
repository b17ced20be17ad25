package host

import (
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Go collects garbage each time the heap has doubled. A worker's heap has some ten megabytes, which a load allocates
// again every thirty pages: a fifth of the processor time was spent on collections. A block that counts as heap and
// is never written takes no memory, but delays collections by its size. Large heaps grow as without it.
const (
	// mostReserved is the size of the block, in bytes: garbage may gather up to it, which a
	// worker with little memory cannot spare.
	mostReserved = 32 << 20
	// reservedShare of what the process may take is the most that garbage may add.
	reservedShare = 16
)

var (
	reserveOnce sync.Once
	reserve     []byte
	reserved    atomic.Int64 // its length
)

// ReserveHeap has the workers of this process collect garbage less often while their heap is small, unless GOGC says how often.
func ReserveHeap() {
	reserveOnce.Do(func() {
		reserve = make([]byte, reservedBytes(os.LookupEnv, min(debug.SetMemoryLimit(-1), cgroupBytes(os.ReadFile))))
		reserved.Store(int64(len(reserve)))
	})
}

// reservedBytes returns the length of the block of a process that may take limit bytes.
func reservedBytes(lookup func(string) (string, bool), limit int64) int64 {
	if text, _ := lookup("GOGC"); text != "" {
		return 0
	}
	return min(mostReserved, limit/reservedShare)
}
