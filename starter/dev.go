package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	pagePort  int
	noWorker  bool
}

func newDevCommand(a *app) *cobra.Command {
	options := &devOptions{}
	command := &cobra.Command{
		Use: "dev", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.dev(options) },
	}
	flags := command.Flags()
	flags.IntVar(&options.port, "port", 7233, "port of the server, 0 for a free one")
	flags.IntVar(&options.uiPort, "ui-port", 8233, "port of the web UI, if the server is Temporal's own command, 0 for a free one; with devserver the web UI is part of the page")
	flags.IntVar(&options.pagePort, "page-port", 8250, "port of the page of runs, 0 for a free one; if it is taken, a free one is used")
	flags.StringVar(&options.namespace, "namespace", connect.DefaultNamespace, "Temporal namespace; created if it does not exist")
	flags.BoolVar(&options.noWorker, "no-worker", false, "start only the server, without a worker")
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
		return fmt.Errorf("starter dev is running in this directory already: process %d, server %s, page %s",
			found.state.PID, found.state.Address, found.state.Page)
	}
	target := options.server
	target.Namespace = options.namespace
	if options.noWorker {
		target.taskQueue = ""
	}
	a.interrupts.endsInOrder()
	ports := localserver.Options{Port: options.port, UIPort: options.uiPort}
	s, err := options.local.startLocal(ctx, ports, target)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { s.end(a.interrupts.now.Err() != nil) }()
	if err := a.startPage(s, options.pagePort, cmp.Or(options.local.playbooks, ".")); err != nil {
		return err
	}
	state := devState{
		Address: s.address, UI: s.ui, UISocket: s.uiSocket, Page: s.page.link, Namespace: s.namespace, TaskQueue: target.taskQueue,
		PayloadStore: cmp.Or(target.payloadStore, s.store.Name()), Key: s.key, PID: os.Getpid(), StartedAt: time.Now().UTC().Truncate(time.Second),
	}
	if options.local.dbFile != "" {
		if state.DBFile, err = filepath.Abs(options.local.dbFile); err != nil {
			return fmt.Errorf("find the file of the server: %w", err)
		}
	}
	if err := state.write(); err != nil {
		return err
	}
	defer state.remove()
	_, _ = fmt.Fprintf(a.Out, "Runs:     %s\nTemporal: %s, namespace %s\n", s.page.link, s.address, s.namespace)
	if target.taskQueue != "" {
		_, _ = fmt.Fprintf(a.Out, "Worker:   task queue %s, log in %s\n", target.taskQueue, workerLogPath())
		_, _ = fmt.Fprintf(a.Out, "Answers:  %s\n", s.callbacks.url)
	}
	if url := s.telemetry.URL(); url != "" {
		_, _ = fmt.Fprintf(a.Out, "Metrics:  %s\n", url)
	}
	_, _ = fmt.Fprintln(a.Out, stopText(options.local.dbFile))
	select {
	case <-ctx.Done():
		return nil
	case <-s.lost():
		return s.lostError()
	}
}

// stopText says how a local server is stopped, and what is lost then.
func stopText(dbFile string) string {
	if dbFile != "" {
		return "Ctrl-C stops it."
	}
	return "Ctrl-C stops it, and its runs and schedules are gone; --db-filename FILE keeps them."
}
