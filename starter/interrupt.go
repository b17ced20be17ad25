package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns signals into contexts: the first ends the command in order, the
// second at once.
type interrupts struct {
	graceful context.Context // ends with the first signal
	now      context.Context // ends with the second
	stop     func()
}

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
	go func() {
		for _, end := range []context.CancelFunc{shutDown, abort} {
			select {
			case <-signals:
				end()
			case <-done:
				return
			}
		}
	}()
	return &interrupts{graceful: graceful, now: now, stop: func() {
		signal.Stop(signals)
		close(done)
		abort()
	}}
}
