package expression

import (
	"runtime"
	"syscall"
	"time"
)

// Took is the time that a processor gave to do, and not what it gave others
// meanwhile: a busy machine makes nothing look slower.
func Took(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	began := threadTime()
	do()
	return threadTime() - began
}

func threadTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
