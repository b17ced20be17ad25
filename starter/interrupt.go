package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// interrupts turns signals into contexts: the first ends the command in order, the
// second at once.
type interrupts struct {
	graceful context.Context // ends with the first signal
	now      context.Context // ends with the second
	stop     func()
	ordered  atomic.Bool // the command has something to put in order, and the time to do it
}

// lastMoment is how long a command may take to end after the first signal. What does not heed it, such as the check
// of a large playbook, ends then all the same.
const lastMoment = 600 * time.Millisecond

// endsInOrder gives the command the time that it needs: a server of its own ends with its runs, one that takes answers
// with those.
func (i *interrupts) endsInOrder() { i.ordered.Store(true) }

// beside runs something until stop is called, which waits for its end, or until ctx ends.
func beside(ctx context.Context, run func(context.Context)) (stop func()) {
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

func watchInterrupts(ctx context.Context) *interrupts {
	now, abort := context.WithCancel(ctx)
	graceful, shutDown := context.WithCancel(now)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	i := &interrupts{graceful: graceful, now: now, stop: func() {
		signal.Stop(signals)
		close(done)
		abort()
	}}
	go func() {
		for _, end := range []context.CancelFunc{shutDown, abort} {
			select {
			case <-signals:
				end()
				defer time.AfterFunc(lastMoment, i.leave).Stop()
			case <-done:
				return
			}
		}
		<-done
	}()
	return i
}

// leave ends the process, unless the command puts something in order.
func (i *interrupts) leave() {
	if i.ordered.Load() {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "starter: interrupted")
	os.Exit(exitInterrupted)
}
