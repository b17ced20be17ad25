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
	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/localserver"
	"reprise/internal/program/telemetry"
	"reprise/internal/program/ui"
	"reprise/workflows/protocol"
)

// session is a Temporal server in use, perhaps one of our own with a worker.
type session struct {
	client    client.Client
	address   string
	namespace string
	ui        string // base of the web UI without a trailing slash, "" if unknown
	uiSocket  string // at which the web UI is, for the page of runs alone; "" where it has a port
	page      *page  // of runs, beside a server of ours; nil for none
	pageLink  string // to the page of the starter dev whose server this is; "" for another server
	taskQueue string
	store     *payload.Store      // of large values, nil for none
	server    *localserver.Server // nil unless it is ours
	worker    *localWorker        // nil unless it is ours
	callbacks *localCallbacks     // to the worker; nil unless it is ours
	key       string              // of a local server and its workers, "" for others
	cleanUp   func()              // runs last; nil for nothing
	telemetry *telemetry.Telemetry
	ends      bool // the server ends with the run, so nothing leads back to it
	// flags are those with which another command finds the server, " --address HOST:PORT" and
	// so on; "" where it finds the server without.
	flags string
}

// end lets go of everything the session has brought up. With now there is no
// time to do it in order; nothing is left behind either way.
func (s *session) end(now bool) {
	if s.cleanUp != nil {
		defer s.cleanUp()
	}
	defer s.telemetry.Close()
	if s.page != nil && !now {
		s.page.stop()
	}
	if now && s.server != nil {
		s.server.Kill() // our worker dies with this process
		return
	}
	if s.callbacks != nil {
		s.callbacks.stop()
	}
	if s.worker != nil {
		s.worker.stop()
	}
	s.client.Close()
	_ = s.store.Close()
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
	return withStatus(exitNoServer, fmt.Errorf("the local Temporal server has stopped; its output:\n%s",
		strings.TrimSpace(s.server.Output())))
}

// pageOf leads to a run on the page of runs, else in the web UI; "" where both are unknown.
func (s *session) pageOf(workflowID, runID string) string {
	link := s.pageLink
	if s.page != nil {
		link = s.page.link
	}
	if link == "" {
		return s.link(workflowID, runID)
	}
	return ui.LinkTo(link, workflowID)
}

// link leads to a run in the web UI; "" where that is unknown.
func (s *session) link(workflowID, runID string) string {
	if s.ui == "" {
		return ""
	}
	if runID == "" { // the latest
		return fmt.Sprintf("%s/namespaces/%s/workflows/%s", s.ui, url.PathEscape(s.namespace), url.PathEscape(workflowID))
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history",
		s.ui, url.PathEscape(s.namespace), url.PathEscape(workflowID), runID)
}

// runsLink leads to the list of runs in the web UI, without their parts; "" where that is unknown.
func (s *session) runsLink() string {
	if s.ui == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows?query=%s", s.ui, url.PathEscape(s.namespace), url.QueryEscape(runs.OwnRuns))
}

// serverFlags say where runs go.
type serverFlags struct {
	connect.Flags
	taskQueue    string
	payloadStore string
}

func (f *serverFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Address, "address", "", "host:port of the Temporal server")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "Temporal namespace")
	flags.StringVar(&f.Profile, "profile", "", "profile of Temporal's configuration file")
	markGeneral(flags, "address", "namespace", "profile")
	f.addWorker(command)
}

// addWorker adds what starters and workers of a server have in common.
func (f *serverFlags) addWorker(command *cobra.Command) {
	command.Flags().StringVar(&f.payloadStore, "payload-store", os.Getenv(payload.Variable),
		"store of large values, the same as for the workers, such as file:///DIRECTORY or s3://BUCKET ["+payload.Variable+"]")
	command.Flags().StringVarP(&f.taskQueue, "task-queue", "t", cmp.Or(os.Getenv("REPRISE_TASK_QUEUE"), protocol.DefaultTaskQueue),
		"task queue of the worker [REPRISE_TASK_QUEUE]")
	markGeneral(command.Flags(), "payload-store", "task-queue")
}

// existing connects to the server that flags, environment or profile name, or
// to that of `starter dev`. Without any it gives nil.
func (f *serverFlags) existing(ctx context.Context) (*session, error) {
	if err := checkQueue(f.taskQueue); err != nil {
		return nil, err
	}
	options, err := connect.Resolve(f.Flags)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	if options.HostPort == "" {
		return f.dev(ctx)
	}
	kept := localserver.KeptAt(options.HostPort)
	server, err := dial(ctx, connect.WithKey(options, kept.Key), f.payloadStore)
	if err != nil {
		return nil, err
	}
	return &session{
		client: server.client, address: options.HostPort, namespace: options.Namespace, taskQueue: f.taskQueue,
		ui:       strings.TrimRight(cmp.Or(os.Getenv("REPRISE_UI_URL"), os.Getenv("TEMPORAL_UI_URL"), kept.UI), "/"),
		uiSocket: kept.UISocket, store: server.store, key: kept.Key, telemetry: server.telemetry, flags: f.repeated(),
	}, nil
}

// repeated are the flags of a command line that name its server, for another command.
func (f *serverFlags) repeated() string {
	text := ""
	for _, flag := range [][2]string{{"address", f.Address}, {"namespace", f.Namespace}, {"profile", f.Profile}} {
		if flag[1] != "" {
			text += " --" + flag[0] + " " + terminal.ShellWord(flag[1])
		}
	}
	return text
}

// dialed is a client, with what is between it and its server.
type dialed struct {
	client    client.Client
	store     *payload.Store
	telemetry *telemetry.Telemetry
}

// dial connects to a server.
func dial(ctx context.Context, options client.Options, payloadStore string) (dialed, error) {
	store, err := openStore(ctx, payloadStore)
	if err != nil {
		return dialed{}, err
	}
	watched, err := telemetry.New(ctx, starterTelemetry(""))
	if err != nil {
		_ = store.Close()
		return dialed{}, withStatus(exitUsage, err)
	}
	watched.Store(store)
	c, err := connect.Dial(ctx, watched.Client(store.Use(options)), nil)
	if err != nil {
		_ = store.Close()
		watched.Close()
		return dialed{}, withStatus(exitNoServer, err)
	}
	return dialed{client: c, store: store, telemetry: watched}, nil
}

// starterTelemetry are the options of a starter, with an endpoint for the metrics
// of its local worker at an address.
func starterTelemetry(address string) telemetry.Options {
	return telemetry.Options{
		Service: "reprise-starter", Version: readVersion().Reprise, MetricsAddress: address,
		TraceHeaders: telemetry.TraceHeaders(), Secrets: &secrets.Masker{},
	}
}

// dev connects to the server of `starter dev` in this directory, nil if there
// is none.
func (f *serverFlags) dev(ctx context.Context) (*session, error) {
	found, err := findDev(ctx, f.Namespace, f.payloadStore)
	if found == nil || err != nil {
		return nil, err
	}
	return &session{
		client: found.client, address: found.state.Address, namespace: found.state.Namespace, ui: found.state.UI,
		uiSocket: found.state.UISocket, pageLink: found.state.Page, taskQueue: f.taskQueue, store: found.store, key: found.state.Key, telemetry: found.telemetry, flags: f.repeated(),
	}, nil
}

// localFlags choose how a local server and its worker run.
type localFlags struct {
	dbFile      string
	connections string
	allowPython bool
	playbooks   string      // folder of those that others run by name
	metrics     string      // address of the worker's metrics
	pythonGiven func() bool // whether allowPython is the user's
}

func (f *localFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.dbFile, "db-filename", "", "SQLite file of a local server; by default its state is in memory")
	flags.StringVar(&f.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of the local worker's connections: URLs or OAuth 2.0 clients by name [REPRISE_CONNECTIONS]")
	flags.StringVar(&f.playbooks, "playbooks", os.Getenv("REPRISE_PLAYBOOKS"),
		"folder of the playbooks that the local worker runs by name; default: the folder of FILE, for starter dev this directory [REPRISE_PLAYBOOKS]")
	flags.StringVar(&f.metrics, "metrics-address", os.Getenv("REPRISE_METRICS_ADDRESS"),
		"host:port of the local worker's metrics for Prometheus, at /metrics [REPRISE_METRICS_ADDRESS]")
	flags.BoolVar(&f.allowPython, "allow-python", true,
		"let the local worker run any Python code; by default it runs only that of runs started here")
	markGeneral(flags, "db-filename", "connections", "playbooks", "metrics-address", "allow-python")
	f.pythonGiven = func() bool { return flags.Changed("allow-python") }
}

// startLocal starts a server of our own, with a worker unless the task queue is "".
func (f *localFlags) startLocal(ctx context.Context, options localserver.Options, target serverFlags) (*session, error) {
	resources, err := host.Resources(f.connections, os.Getenv("REPRISE_RATE_LIMITS"))
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	resources.Private = append(resources.Private, localFiles(f.dbFile)...)
	keys, err := secretKeys(f.dbFile)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	logger, closeLog := openWorkerLog()
	watching := starterTelemetry(f.metrics)
	watching.Logger = slog.New(watching.Secrets.Handler(logger.Handler()))
	watched, err := telemetry.New(ctx, watching)
	if err != nil {
		closeLog()
		return nil, withStatus(exitUsage, err)
	}
	s, err := f.startServer(ctx, options, target, logger, watched)
	if err != nil || s.taskQueue == "" {
		closeLog()
		return s, err
	}
	if resources.Payloads, err = host.Payloads(s.store, os.LookupEnv); err != nil {
		s.end(false)
		return nil, withStatus(exitUsage, err)
	}
	s.callbacks, err = startCallbacks(s, f.dbFile, keys, watching.Secrets, logger)
	if err != nil {
		s.end(false)
		return nil, err
	}
	resources.AllowPython, resources.Playbooks, resources.CallbackURL = f.allowPython, cmp.Or(f.playbooks, "."), s.callbacks.url
	resources.Logger, resources.Secrets, resources.SecretKeys, resources.Telemetry = logger, watching.Secrets, keys, watched.Activities()
	if !f.pythonGiven() {
		resources.CheckPython = host.NewGuard(s.client, s.key).Check
	}
	s.worker, err = startWorker(s, resources, closeLog)
	if err != nil {
		s.end(false)
		return nil, err
	}
	return s, nil
}

// startServer starts a server of our own with its payload store.
func (f *localFlags) startServer(
	ctx context.Context, options localserver.Options, target serverFlags, logger *slog.Logger, watched *telemetry.Telemetry,
) (*session, error) {
	store, remove, err := localStore(ctx, target.payloadStore, f.dbFile)
	if err != nil {
		watched.Close()
		return nil, err
	}
	watched.Store(store)
	leave := func() {
		watched.Close()
		_ = store.Close()
		remove()
	}
	if options.Key, err = localKey(f.dbFile); err != nil {
		leave()
		return nil, err
	}
	options.DBFile, options.Namespace = f.dbFile, cmp.Or(target.Namespace, connect.DefaultNamespace)
	options.Attributes = protocol.SearchAttributes()
	server, err := localserver.Start(ctx, options)
	if err != nil {
		leave()
		return nil, withStatus(exitNoServer, err)
	}
	c, err := connect.Dial(ctx, watched.Client(host.ClientOptions(store, server.ClientOptions(), logger)), logger)
	if err != nil {
		server.Kill()
		leave()
		return nil, withStatus(exitNoServer, err)
	}
	return &session{
		client: c, address: server.Address, namespace: server.Namespace, ui: server.UIURL, uiSocket: server.UISocket,
		taskQueue: target.taskQueue, store: store, server: server, key: options.Key, cleanUp: remove, telemetry: watched,
	}, nil
}

// localWorker is a worker inside this process.
type localWorker struct {
	worker    worker.Worker
	catalogue *activities.Catalogue
	closeLog  func()
	stopWatch context.CancelFunc
}

// localStopTimeout is how long running attempts may continue when the run has ended or
// its user leaves.
const localStopTimeout = time.Second

func startWorker(s *session, resources activities.Resources, closeLog func()) (*localWorker, error) {
	cacheBytes, err := host.CacheBytes(os.LookupEnv)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	catalogue := activities.NewCatalogue(resources)
	host.ReserveHeap()
	host.KeepWorkflows(0)
	w := host.NewWorker(s.client, catalogue, host.Options{
		TaskQueue: s.taskQueue, StopTimeout: localStopTimeout, Telemetry: s.telemetry,
	})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	watch, stopWatch := context.WithCancel(context.Background())
	go host.WatchCache(watch, cacheBytes, resources.Telemetry, resources.Logger)
	return &localWorker{worker: w, catalogue: catalogue, closeLog: closeLog, stopWatch: stopWatch}, nil
}

func (w *localWorker) stop() {
	w.stopWatch()
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
	err := localserver.OwnFolder(stateDir)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(workerLogPath(), flags, 0o600)
	}
	if err != nil {
		return slog.New(slog.DiscardHandler), func() {}
	}
	_ = file.Chmod(0o600) // others could read it where it was there before
	return slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: slog.LevelInfo})), func() { _ = file.Close() }
}
