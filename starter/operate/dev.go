// Package operate has the commands that operate Reprise: dev, serve, setup, demo-api, version.
package operate

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
	"reprise/starter/cli"
	"reprise/starter/runpage"
	"reprise/starter/session"
)

// devOptions are the flags of dev.
type devOptions struct {
	local     session.LocalFlags
	server    session.ServerFlags
	namespace string
	port      int
	uiPort    int
	pagePort  int
	noWorker  bool
}

// NewDevCommand returns the command dev.
func NewDevCommand(a *cli.App) *cobra.Command {
	options := &devOptions{}
	command := &cobra.Command{
		Use: "dev", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runDev(a, options) },
	}
	flags := command.Flags()
	flags.IntVar(&options.port, "port", 7233, "port of the server, 0 for a free one")
	flags.IntVar(&options.uiPort, "ui-port", 8233, "port of the web UI, if the server is Temporal's own command, 0 for a free one; with devserver the web UI is part of the page")
	flags.IntVar(&options.pagePort, "page-port", 8250, "port of the page of runs, 0 for a free one; if it is taken, a free one is used")
	flags.StringVar(&options.namespace, "namespace", connect.DefaultNamespace, "Temporal namespace; created if it does not exist")
	flags.BoolVar(&options.noWorker, "no-worker", false, "start only the server, without a worker")
	options.local.AddFlags(command)
	options.server.AddWorker(command)
	return command
}

func runDev(a *cli.App, options *devOptions) error {
	if err := cli.CheckQueue(options.server.TaskQueue); err != nil {
		return err
	}
	ctx := a.Interrupts.Graceful
	found, err := session.FindDev(ctx, "", "", "")
	var silent *connect.NoServerError
	if errors.As(err, &silent) && ctx.Err() == nil { // it lives
		return err
	}
	if err == nil && found != nil {
		found.Close()
		return fmt.Errorf("starter dev is running in this directory already: process %d, server %s, page %s",
			found.State.PID, found.State.Address, found.State.Page)
	}
	target := options.server
	target.Namespace = options.namespace
	if options.noWorker {
		target.TaskQueue = ""
	}
	a.Interrupts.EndsInOrder()
	ports := localserver.Options{Port: options.port, UIPort: options.uiPort}
	s, err := options.local.StartLocal(ctx, ports, target)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { s.End(a.Interrupts.Now.Err() != nil) }()
	if err := runpage.StartPage(a, s, options.pagePort, cmp.Or(options.local.Playbooks, ".")); err != nil {
		return err
	}
	state := session.DevState{
		Address: s.Address, UI: s.UI, UISocket: s.UISocket, Page: s.Page.Link, Namespace: s.Namespace, TaskQueue: target.TaskQueue,
		PayloadStore: cmp.Or(target.PayloadStore, s.Store.Name()), Key: s.Key, PID: os.Getpid(), StartedAt: time.Now().UTC().Truncate(time.Second),
	}
	if options.local.DBFile != "" {
		if state.DBFile, err = filepath.Abs(options.local.DBFile); err != nil {
			return fmt.Errorf("find the file of the server: %w", err)
		}
	}
	if err := state.Write(); err != nil {
		return err
	}
	defer state.RemoveFile()
	_, _ = fmt.Fprintf(a.Out, "Runs:     %s\nTemporal: %s, namespace %s\n", s.Page.Link, s.Address, s.Namespace)
	if target.TaskQueue != "" {
		_, _ = fmt.Fprintf(a.Out, "Worker:   task queue %s, log in %s\n", target.TaskQueue, session.WorkerLogPath())
		_, _ = fmt.Fprintf(a.Out, "Answers:  %s\n", s.Callbacks.URL)
	}
	if url := s.Telemetry.URL(); url != "" {
		_, _ = fmt.Fprintf(a.Out, "Metrics:  %s\n", url)
	}
	_, _ = fmt.Fprintln(a.Out, stopText(options.local.DBFile))
	select {
	case <-ctx.Done():
		return nil
	case <-s.ServerExited():
		return s.LostError()
	}
}

// stopText returns how to stop a local server, and what is lost then.
func stopText(dbFile string) string {
	if dbFile != "" {
		return "Ctrl-C stops it."
	}
	return "Ctrl-C stops it, and its runs and schedules are gone; --db-filename FILE keeps them."
}
