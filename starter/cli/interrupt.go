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

// Interrupts turns signals into contexts. The first signal ends the command gracefully, the second immediately.
type Interrupts struct {
	Graceful context.Context // ends with the first signal
	Now      context.Context // ends with the second
	Stop     func()
	ordered  atomic.Bool // the command has something to put in order, and the time to do it
}

// lastMoment is how long a command may take to end after the first signal. Then the process exits, even if something
// does not react to the context, such as the check of a large playbook.
const lastMoment = 600 * time.Millisecond

// EndsInOrder lifts the time limit after the first signal, for a command that has to clean up: one with its own
// server, or one that accepts answers.
func (i *Interrupts) EndsInOrder() { i.ordered.Store(true) }

// RunInBackground runs a function in the background until ctx ends or stop is called. stop waits for its end.
func RunInBackground(ctx context.Context, run func(context.Context)) (stop func()) {
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

// WatchInterrupts starts to handle the process's signals, until Stop is called.
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

// endProcess exits the process, unless the command has to clean up.
func (i *Interrupts) endProcess() {
	if i.ordered.Load() {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "starter: interrupted")
	os.Exit(exitcode.Interrupted)
}
