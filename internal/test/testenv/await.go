package testenv

import (
	"bufio"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// longestWait is how long a test waits, on a machine with nothing else to do, for what another
// goroutine sends.
const longestWait = 3 * time.Minute

// Receive returns what a channel gives next, the zero value where it is closed. Where nothing comes
// in time the test fails, with a message that names what it waited for and the goroutines there are:
// a test that waits without a limit hangs when what should send has failed. It is called by the
// goroutine of the test.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	return receive(t, from, what, Within(longestWait))
}

// Returned returns the result of a function that waits, such as Wait of an errgroup.Group or an
// exec.Cmd. It has the limit of Receive.
func Returned[T any](t testing.TB, wait func() T, what string) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- wait() }()
	return Receive(t, result, what)
}

// Wait is Returned for a function without a result, such as Wait of a sync.WaitGroup.
func Wait(t testing.TB, wait func(), what string) {
	t.Helper()
	Returned(t, func() struct{} { wait(); return struct{}{} }, what)
}

// Line reads the next line of what another process or goroutine writes, without its end. It has the limit of Receive.
func Line(t testing.TB, from *bufio.Reader, what string) string {
	t.Helper()
	var line string
	err := Returned(t, func() (err error) {
		line, err = from.ReadString('\n')
		return err
	}, what)
	if err != nil {
		t.Fatalf("read %s: %v, after %q", what, err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// Outcome waits for the end of a run or an update, and gives its error. It has the limit of Receive.
func Outcome(t testing.TB, of interface {
	Get(ctx context.Context, into any) error
}, into any,
) error {
	t.Helper()
	return Returned(t, func() error { return of.Get(t.Context(), into) }, "the end of a run or an update")
}

func receive[T any](t testing.TB, from <-chan T, what string, limit time.Duration) (value T) {
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
