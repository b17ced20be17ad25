package testenv

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refused is a testing.TB that keeps the message of a failure.
type refused struct {
	testing.TB
	message string
}

func (r *refused) Helper() {}

func (r *refused) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestReceive(t *testing.T) {
	t.Parallel()
	values := make(chan int, 1)
	values <- 7
	require.Equal(t, 7, Receive(t, values, "a value"))
	close(values)
	require.Zero(t, Receive(t, values, "the end"))
	require.Equal(t, "done", WaitResult(t, func() string { return "done" }, "the end"))
	var group sync.WaitGroup
	ended := false
	group.Go(func() { ended = true })
	Wait(t, group.Wait, "the end of the group")
	require.True(t, ended)
}

// TestWhatDoesNotComeFailsItsTest: the message says what did not come, and where goroutines are.
func TestWhatDoesNotComeFailsItsTest(t *testing.T) {
	t.Parallel()
	r := &refused{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		receiveWithin(r, make(chan int), "the first request", time.Millisecond)
	}()
	Receive(t, ended, "the failure")
	require.Contains(t, r.message, "waited 1ms for the first request, which did not come\n")
	require.Contains(t, r.message, "TestWhatDoesNotComeFailsItsTest")
}
