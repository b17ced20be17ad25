package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"reprise/internal/base/exitcode"
)

// Interrupts turns signals into contexts: the first ends the command in order, the
// second at once.
type Interrupts struct {
	Graceful context.Context // ends with the first signal
	Now      context.Context // ends with the second
	Stop     func()
	ordered  atomic.Bool // the command has something to put in order, and the time to do it
}

// lastMoment is how long a command may take to end after the first signal. What does not heed it, such as the check
// of a large playbook, ends then all the same.
const lastMoment = 600 * time.Millisecond

// EndsInOrder gives the command the time that it needs: a server of its own ends with its runs, one that takes answers
// with those.
func (i *Interrupts) EndsInOrder() { i.ordered.Store(true) }

// Beside runs something until stop is called, which waits for its end, or until ctx ends.
func Beside(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// WatchInterrupts turns the signals of the process into contexts, until they are stopped.
func WatchInterrupts(ctx context.Context) *Interrupts {
	now, abort := context.WithCancel(ctx)
	graceful, shutDown := context.WithCancel(now)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	i := &Interrupts{Graceful: graceful, Now: now, Stop: func() {
		signal.Stop(signals)
		close(done)
		abort()
	}}
	go func() {
		for _, end := range []context.CancelFunc{shutDown, abort} {
			select {
			case <-signals:
				end()
				defer time.AfterFunc(lastMoment, i.endProcess).Stop()
			case <-done:
				return
			}
		}
		<-done
	}()
	return i
}

// endProcess ends the process, unless the command puts something in order.
func (i *Interrupts) endProcess() {
	if i.ordered.Load() {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "starter: interrupted")
	os.Exit(exitcode.Interrupted)
}
