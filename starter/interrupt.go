package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts turns signals into contexts: the first signal ends it in order, the second
// to leave at once.
type interrupts struct {
	asked context.Context // ends with the first signal
	now   context.Context // ends with the second
	stop  func()
}

func watchInterrupts(ctx context.Context) *interrupts {
	now, leave := context.WithCancel(ctx)
	asked, ask := context.WithCancel(now)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for _, end := range []context.CancelFunc{ask, leave} {
			select {
			case <-signals:
				end()
			case <-done:
				return
			}
		}
	}()
	return &interrupts{asked: asked, now: now, stop: func() {
		signal.Stop(signals)
		close(done)
		leave()
	}}
}
