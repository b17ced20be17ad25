package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/program/localserver"
)

// devOptions is the command line of dev.
type devOptions struct {
	local     localFlags
	server    serverFlags
	namespace string
	port      int
	uiPort    int
	noWorker  bool
}

func newDevCommand(a *app) *cobra.Command {
	options := &devOptions{}
	command := &cobra.Command{
		Use: "dev", Short: "Keep a local Temporal server and a worker up", Args: cobra.NoArgs,
		Long: `Keep a local Temporal server with its web UI and a worker up until Ctrl-C. starter
run in the same directory uses it. The server is the temporal command on PATH, else
devserver beside this program; it listens on 127.0.0.1. Devserver asks clients for
the key in ` + statePath() + `, the temporal command for none.

While it runs, ` + statePath() + ` tells where it is.`,
		Example: `  starter dev
  starter dev --db-filename .reprise/temporal.db     # runs survive a restart
  starter dev --port 0 --ui-port 0                   # free ports`,
		RunE: func(*cobra.Command, []string) error { return a.dev(options) },
	}
	flags := command.Flags()
	flags.IntVar(&options.port, "port", 7233, "port of the server, 0 for a free one")
	flags.IntVar(&options.uiPort, "ui-port", 8233, "port of the web UI, 0 for a free one")
	flags.StringVar(&options.namespace, "namespace", connect.DefaultNamespace, "Temporal namespace, created if need be")
	flags.BoolVar(&options.noWorker, "no-worker", false, "start the server alone")
	options.local.add(command)
	options.server.addWorker(command)
	return command
}

func (a *app) dev(options *devOptions) error {
	if err := checkQueue(options.server.taskQueue); err != nil {
		return err
	}
	ctx := a.interrupts.graceful
	found, err := findDev(ctx, "", "")
	var silent *connect.NoServerError
	if errors.As(err, &silent) && ctx.Err() == nil { // it lives
		return err
	}
	if err == nil && found != nil {
		found.close()
		return fmt.Errorf("starter dev is running in this directory already: process %d, server %s, web UI %s",
			found.state.PID, found.state.Address, found.state.UI)
	}
	target := options.server
	target.Namespace = options.namespace
	if options.noWorker {
		target.taskQueue = ""
	}
	ports := localserver.Options{Port: options.port, UIPort: options.uiPort}
	s, err := options.local.startLocal(ctx, ports, target)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { s.end(a.interrupts.now.Err() != nil) }()
	state := devState{
		Address: s.address, UI: s.ui, Namespace: s.namespace, TaskQueue: target.taskQueue,
		PayloadStore: cmp.Or(target.payloadStore, s.store.Name()), Key: s.key, PID: os.Getpid(), StartedAt: time.Now().UTC().Truncate(time.Second),
	}
	if err := state.write(); err != nil {
		return err
	}
	defer state.remove()
	_, _ = fmt.Fprintf(a.Out, "Temporal: %s, namespace %s\nWeb UI:   %s\n", s.address, s.namespace, s.ui)
	if target.taskQueue != "" {
		_, _ = fmt.Fprintf(a.Out, "Worker:   task queue %s, log in %s\n", target.taskQueue, workerLogPath())
		_, _ = fmt.Fprintf(a.Out, "Answers:  %s\n", s.callbacks.url)
	}
	if url := s.telemetry.URL(); url != "" {
		_, _ = fmt.Fprintf(a.Out, "Metrics:  %s\n", url)
	}
	_, _ = fmt.Fprintln(a.Out, "Ctrl-C stops it.")
	select {
	case <-ctx.Done():
		return nil
	case <-s.lost():
		return s.lostError()
	}
}
