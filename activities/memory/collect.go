package memory

import (
	"runtime/debug"
	"sync"
)

// While work holds buffers of tens of megabytes, such as parts of uploads, garbage of the same size is beside them: Go collects it once it is as
// large as what is in use.
const (
	usualPercent  = 100 // Go's default
	soonerPercent = 40  // costs such work about a tenth of its processor time
)

// sooner counts the callers of CollectSooner.
var sooner struct {
	mu      sync.Mutex
	callers int
}

// CollectSooner makes this process collect garbage sooner until release is called, unless GOGC is set.
func CollectSooner() (release func()) {
	addCaller(1)
	return sync.OnceFunc(func() { addCaller(-1) })
}

func addCaller(n int) {
	sooner.mu.Lock()
	defer sooner.mu.Unlock()
	before := sooner.callers
	sooner.callers += n
	switch {
	case before == 0:
		replacePercent(usualPercent, soonerPercent)
	case sooner.callers == 0:
		replacePercent(soonerPercent, usualPercent)
	}
}

// replacePercent sets how much garbage there may be, in percent of what is in use, where it is what is expected.
func replacePercent(expected, percent int) {
	if found := debug.SetGCPercent(percent); found != expected {
		debug.SetGCPercent(found)
	}
}
