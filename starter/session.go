package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/connect"
	"reprise/internal/host"
	"reprise/internal/localserver"
	"reprise/workflows"
)

// session is a Temporal server in use, perhaps one of our own with a worker.
type session struct {
	client    client.Client
	address   string
	namespace string
	ui        string // base of the web UI without a trailing slash, "" if unknown
	taskQueue string
	server    *localserver.Server // nil unless it is ours
	worker    *localWorker        // nil unless it is ours
}

// end lets go of everything the session has brought up. With now there is no
// time to do it in order; nothing is left behind either way.
func (s *session) end(now bool) {
	if now && s.server != nil {
		s.server.Kill() // our worker dies with this process
		return
	}
	if s.worker != nil {
		s.worker.stop()
	}
	s.client.Close()
	if s.server != nil {
		s.server.Stop()
	}
}

// lost is closed when a server of our own has ended by itself; nil, which is
// never closed, for others.
func (s *session) lost() <-chan struct{} {
	if s.server == nil {
		return nil
	}
	return s.server.Exited()
}

func (s *session) lostError() error {
	return withStatus(exitNoServer, fmt.Errorf("the local Temporal server has ended; it said:\n%s",
		strings.TrimSpace(s.server.Output())))
}

// link leads to a run in the web UI; "" where that is unknown.
func (s *session) link(workflowID, runID string) string {
	if s.ui == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history",
		s.ui, url.PathEscape(s.namespace), url.PathEscape(workflowID), runID)
}

// serverFlags say where runs go.
type serverFlags struct {
	connect.Flags
	taskQueue string
}

func (f *serverFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Address, "address", "", "host:port of the Temporal server")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "Temporal namespace")
	flags.StringVar(&f.Profile, "profile", "", "profile of Temporal's configuration file")
	f.addTaskQueue(command)
}

func (f *serverFlags) addTaskQueue(command *cobra.Command) {
	command.Flags().StringVarP(&f.taskQueue, "task-queue", "t", cmp.Or(os.Getenv("REPRISE_TASK_QUEUE"), workflows.DefaultTaskQueue),
		"task queue of the worker [REPRISE_TASK_QUEUE]")
}

// existing connects to the server that flags, environment or profile name, or
// to that of `starter dev`. Without any it gives nil.
func (f *serverFlags) existing(ctx context.Context) (*session, error) {
	options, err := connect.Resolve(f.Flags)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	if options.HostPort == "" {
		c, state, err := findDev(ctx, f.Namespace)
		if err != nil {
			return nil, withStatus(exitNoServer, err)
		}
		if c == nil {
			return nil, nil
		}
		return &session{
			client: c, address: state.Address, namespace: state.Namespace, ui: state.UI, taskQueue: f.taskQueue,
		}, nil
	}
	c, err := connect.Dial(ctx, options, nil)
	if err != nil {
		return nil, withStatus(exitNoServer, err)
	}
	return &session{
		client: c, address: options.HostPort, namespace: options.Namespace, ui: uiFromEnvironment(), taskQueue: f.taskQueue,
	}, nil
}

func uiFromEnvironment() string {
	return strings.TrimRight(cmp.Or(os.Getenv("REPRISE_UI_URL"), os.Getenv("TEMPORAL_UI_URL")), "/")
}

// localFlags choose how a local server and its worker run.
type localFlags struct {
	dbFile      string
	connections string
	allowPython bool
}

func (f *localFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.dbFile, "db-filename", "", "SQLite file in which a local server keeps its state, default memory")
	flags.StringVar(&f.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of connections for a local worker, a map of names to URLs [REPRISE_CONNECTIONS]")
	flags.BoolVar(&f.allowPython, "allow-python", true, "let a local worker run the playbook's Python code")
}

// bringUp starts a server of our own, with a worker unless taskQueue is "".
func (f *localFlags) bringUp(ctx context.Context, options localserver.Options, namespace, taskQueue string) (*session, error) {
	connections, err := host.Connections(f.connections)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	limits, err := activities.LimitsFromEnv(os.LookupEnv)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	options.DBFile, options.Namespace = f.dbFile, namespace
	options.Keywords = []string{workflows.StatusAttribute, workflows.PlaybookAttribute}
	server, err := localserver.Start(ctx, options)
	if err != nil {
		return nil, withStatus(exitNoServer, err)
	}
	logger, closeLog := openWorkerLog()
	c, err := connect.Dial(ctx, client.Options{HostPort: server.Address, Namespace: server.Namespace}, logger)
	if err != nil {
		server.Kill()
		return nil, withStatus(exitNoServer, err)
	}
	s := &session{
		client: c, address: server.Address, namespace: server.Namespace, ui: server.UIURL, taskQueue: taskQueue, server: server,
	}
	if taskQueue == "" {
		closeLog()
		return s, nil
	}
	s.worker, err = startWorker(c, activities.Resources{
		Connections: connections, AllowPython: f.allowPython, Limits: limits, Logger: logger,
	}, taskQueue, closeLog)
	if err != nil {
		s.end(false)
		return nil, err
	}
	return s, nil
}

// localWorker is a worker inside this process.
type localWorker struct {
	worker    worker.Worker
	catalogue *activities.Catalogue
	closeLog  func()
}

// localStopTimeout is how long attempts under way may go on when the run has
// ended or its user leaves.
const localStopTimeout = time.Second

func startWorker(c client.Client, resources activities.Resources, taskQueue string, closeLog func()) (*localWorker, error) {
	catalogue := activities.NewCatalogue(resources)
	w := host.NewWorker(c, catalogue, host.Options{TaskQueue: taskQueue, StopTimeout: localStopTimeout})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return &localWorker{worker: w, catalogue: catalogue, closeLog: closeLog}, nil
}

func (w *localWorker) stop() {
	w.worker.Stop()
	_ = w.catalogue.Close()
	w.closeLog()
}

func workerLogPath() string { return filepath.Join(stateDir, "worker.log") }

// openWorkerLog gives the log of a worker inside this process, whose standard
// error is for people. A log that cannot be written is no reason not to run.
func openWorkerLog() (*slog.Logger, func()) {
	const most = 10 << 20
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(workerLogPath()); err == nil && info.Size() > most {
		flags |= os.O_TRUNC
	}
	_ = os.MkdirAll(stateDir, 0o750)
	file, err := os.OpenFile(workerLogPath(), flags, 0o600)
	if err != nil {
		return slog.New(slog.DiscardHandler), func() {}
	}
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelWarn})), func() { _ = file.Close() }
}
