package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"

	"reprise/internal/base/meter"
)

// CachedWorkflows is how many workflows a process caches by default. One that awaits an answer takes about 80 kB plus
// the size of its data.
const CachedWorkflows = 2000

// BoundCachedWorkflows bounds the workflows that the workers of this process cache together; 0 is CachedWorkflows. An
// evicted workflow is replayed from its history when something happens to it. It applies to workers created
// afterwards.
func BoundCachedWorkflows(most int) {
	worker.SetStickyWorkflowCacheSize(cmp.Or(most, CachedWorkflows))
}

// CacheVariable is the environment variable that bounds the memory in bytes.
const CacheVariable = "REPRISE_CACHE_BYTES"

const (
	// usualCacheBytes is the bound if the memory of the process is not limited.
	usualCacheBytes = 512 << 20
	leastCacheBytes = 32 << 20
	// cacheTick is how often the memory is measured.
	cacheTick = 250 * time.Millisecond
	// After evicting workflows has freed little memory, because something else uses it, they are left alone for
	// firstCalm, which doubles up to longestCalm.
	firstCalm   = 10 * time.Second
	longestCalm = 5 * time.Minute
	// littleAvail: less than this fraction (1/8) of the bound counts as little.
	littleAvail = 8
)

// CacheBytes returns REPRISE_CACHE_BYTES: the memory in use, in bytes, above which the workers of this process evict
// cached workflows. lookup is usually os.LookupEnv. The default is half of the process's limit from GOMEMLIMIT or its
// cgroup.
func CacheBytes(lookup func(string) (string, bool)) (int64, error) {
	text, set := lookup(CacheVariable)
	if set && text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < leastCacheBytes {
			return 0, fmt.Errorf("%s is %q; it must be a number of bytes from %d", CacheVariable, text, int64(leastCacheBytes))
		}
		return n, nil
	}
	limit := min(debug.SetMemoryLimit(-1), cgroupBytes(os.ReadFile))
	if limit == math.MaxInt64 {
		return usualCacheBytes, nil
	}
	return max(leastCacheBytes, limit/2), nil
}

// cgroupBytes returns the memory limit of the process's cgroup, if there is one.
func cgroupBytes(read func(string) ([]byte, error)) int64 {
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := read(name)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < math.MaxInt64/2 { // a number near the largest is none
			return n
		}
	}
	return math.MaxInt64
}

// WatchCache evicts the cached workflows of this process whenever the memory in use exceeds a bound, until ctx ends.
// The SDK's cache counts workflows and ignores their sizes (docs/decisions/0024-cache-by-bytes.md). recorder gets the
// figures; nil for none.
func WatchCache(ctx context.Context, bound int64, recorder meter.Recorder, logger *slog.Logger) {
	w := &cacheWatch{bound: bound, recorder: recorder, logger: logger}
	w.addMetric(meter.MemoryBound, bound)
	ticker := time.NewTicker(cacheTick)
	defer ticker.Stop()
	for {
		w.checkMemory(time.Now())
		select {
		case <-ctx.Done():
			w.addMetric(meter.MemoryBound, -bound)
			w.addMetric(meter.Memory, -w.live)
			return
		case <-ticker.C:
		}
	}
}

// cacheWatch is the state of WatchCache.
type cacheWatch struct {
	bound    int64
	recorder meter.Recorder
	logger   *slog.Logger
	live     int64 // as it was recorded last
	calm     time.Duration
	until    time.Time // left alone until then
}

func (w *cacheWatch) addMetric(m *meter.Metric, n int64) {
	if w.recorder != nil && n != 0 {
		w.recorder.Add(m, n)
	}
}

// checkMemory evicts the cached workflows if the memory in use exceeds the bound.
func (w *cacheWatch) checkMemory(now time.Time) {
	live := w.measureMemory()
	if live <= w.bound || now.Before(w.until) {
		return
	}
	worker.PurgeStickyWorkflowCache()
	w.addMetric(meter.CacheDrops, 1)
	runtime.Gosched() // each is dropped by a goroutine of its own
	time.Sleep(cacheTick)
	runtime.GC()
	left := w.measureMemory()
	if live-left >= w.bound/littleAvail {
		w.calm = 0
		w.logger.Info("the memory was above its bound, and the workflows that were kept are dropped",
			"bound", w.bound, "before", live, "after", left)
		return
	}
	w.calm = min(max(firstCalm, 2*w.calm), longestCalm)
	w.until = time.Now().Add(w.calm)
	w.logger.Warn("the memory is above its bound, and dropping the workflows that were kept did not help",
		"bound", w.bound, "before", live, "after", left, "variable", CacheVariable)
}

// measureMemory returns the memory in use according to the last garbage collection, without what ReserveHeap
// reserved.
func (w *cacheWatch) measureMemory() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	live := int64(min(sample[0].Value.Uint64(), math.MaxInt64)) //nolint:gosec // bounded the line before
	live = max(0, live-reserved.Load())
	w.addMetric(meter.Memory, live-w.live)
	w.live = live
	return live
}
