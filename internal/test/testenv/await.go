package testenv

import (
	"bufio"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// longestWait is how long a test waits on an idle machine for something that another goroutine sends.
const longestWait = 3 * time.Minute

// Receive returns the next value from a channel, or the zero value if it is closed. If nothing arrives in time, the
// test fails with a message that names what it waited for and lists the goroutines; a test that waited without a
// limit would hang whenever the sender fails. It must be called from the test's goroutine.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	return receiveWithin(t, from, what, Within(longestWait))
}

// WaitResult returns the result of a function that blocks, such as Wait of an errgroup.Group or an exec.Cmd, with the
// time limit of Receive.
func WaitResult[T any](t testing.TB, wait func() T, what string) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- wait() }()
	return Receive(t, result, what)
}

// Wait is Returned for a function without a result, such as Wait of a sync.WaitGroup.
func Wait(t testing.TB, wait func(), what string) {
	t.Helper()
	WaitResult(t, func() struct{} { wait(); return struct{}{} }, what)
}

// ReadLine reads the next line from another process or goroutine, without its line break, with the time limit of Receive.
func ReadLine(t testing.TB, from *bufio.Reader, what string) string {
	t.Helper()
	var line string
	err := WaitResult(t, func() (err error) {
		line, err = from.ReadString('\n')
		return err
	}, what)
	if err != nil {
		t.Fatalf("read %s: %v, after %q", what, err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// WaitOutcome waits for the end of a run or an update and returns its error, with the time limit of Receive.
func WaitOutcome(t testing.TB, of interface {
	Get(ctx context.Context, into any) error
}, into any,
) error {
	t.Helper()
	return WaitResult(t, func() error { return of.Get(t.Context(), into) }, "the end of a run or an update")
}

func receiveWithin[T any](t testing.TB, from <-chan T, what string, limit time.Duration) (value T) {
	t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case value = <-from:
	case <-late.C:
		var goroutines strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&goroutines, 1)
		t.Fatalf("waited %s for %s, which did not come\n%s", limit, what, &goroutines)
	}
	return value
}
