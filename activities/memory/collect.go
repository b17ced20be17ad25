package memory

import (
	"runtime/debug"
	"sync"
)

// How much garbage there may be, in percent of the memory in use. While work holds tens of megabytes, garbage of the same size is beside
// them: Go collects it once it is as large as what is in use.
const (
	usualPercent = 100 // Go's default
	// PercentBesideRows is for work that holds batches of rows. It costs a few percent of its processor time.
	PercentBesideRows = 75
	// PercentBesideParts is for work that holds parts of uploads. It costs about a tenth of its processor time.
	PercentBesideParts = 40
)

// sooner counts the callers of CollectSooner by percentage.
var sooner struct {
	mu      sync.Mutex
	callers map[int]int
}

// CollectSooner makes this process collect garbage once it is as large as percent of what is in use, until release is called. The lowest percentage of several
// callers counts. It changes nothing if GOGC is set.
func CollectSooner(percent int) (release func()) {
	addCaller(percent, 1)
	return sync.OnceFunc(func() { addCaller(percent, -1) })
}

func addCaller(percent, n int) {
	sooner.mu.Lock()
	defer sooner.mu.Unlock()
	if sooner.callers == nil {
		sooner.callers = map[int]int{}
	}
	before := lowestPercent()
	sooner.callers[percent] += n
	replacePercent(before, lowestPercent())
}

// lowestPercent returns the percentage that counts. The caller holds sooner.mu.
func lowestPercent() int {
	lowest := usualPercent
	for percent, callers := range sooner.callers {
		if callers > 0 {
			lowest = min(lowest, percent)
		}
	}
	return lowest
}

// replacePercent sets how much garbage there may be, where it is what is expected.
func replacePercent(expected, percent int) {
	if found := debug.SetGCPercent(percent); found != expected {
		debug.SetGCPercent(found)
	}
}
