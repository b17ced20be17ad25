// Command devserver is a Temporal server with its web UI in one process, for local work and for tests.
//
// It accepts the flags of `temporal server start-dev`, so each can replace the other. State is in SQLite, in memory
// or in a file. Without a key it has no authentication, and it is not meant for production.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// stop restores default signal handling after the first signal, so that a second one ends a process that hangs.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
