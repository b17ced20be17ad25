// Command devserver is a Temporal server with its web UI in one process, for
// local work and for tests.
//
// It takes the flags of `temporal server start-dev`, so the official CLI and
// this binary stand in for each other. State lives in SQLite, in memory or in
// a file. It has no authentication and is not meant for production.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling is back, so that a second one
	// ends a process that hangs.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
