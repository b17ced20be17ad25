package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// stopLimit bounds a graceful stop. It is safe to cut off unfinished work, because SQLite recovers committed
// transactions from its log.
const stopLimit = 5 * time.Second

// private is the umask of the server. Its files contain the histories of runs, which other users must not read.
const private = 0o077

// run is main with the arguments and streams as parameters. It returns the exit status once ctx ends or the server
// cannot start.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseArgs(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "devserver: %v\nSee devserver --help.\n", err)
		return exitUsage
	case opts.version:
		_, _ = fmt.Fprintln(stdout, versionLine())
		return exitOK
	}
	syscall.Umask(private)
	if err := opts.readEnvironment(os.Getenv); err != nil {
		_, _ = fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitUsage
	}
	if err := serve(ctx, opts, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitError
	}
	return exitOK
}

func versionLine() string {
	return fmt.Sprintf("devserver (Server %s, UI %s)", headers.ServerVersion, uiversion.UIVersion)
}

// serve starts the server, prints its addresses once they respond, and stops it when ctx ends.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	logs := newLogging(opts, stderr)
	// Services that lose each other during a stop log warnings and errors that nobody can act on.
	context.AfterFunc(ctx, logs.silence)
	srv, err := start(ctx, opts, logs.logger)
	if err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop while starting
		}
		return err
	}
	srv.announce(stdout)
	<-ctx.Done()
	srv.stop(stopLimit)
	_, _ = fmt.Fprintln(stdout, "Stopped")
	return nil
}
