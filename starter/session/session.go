// Package session connects commands to a Temporal server: the one that flags, environment or profile name, that of
// `starter dev`, or a local one that they start with a worker.
package session

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
	"reprise/internal/base/build"
	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/egress"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/payload"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/localserver"
	"reprise/internal/program/start"
	"reprise/internal/program/telemetry"
	"reprise/internal/program/ui"
	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// connectStored connects to a permanent server, which keeps past runs.
func (f *ServerFlags) connectStored(ctx context.Context) (*Session, error) {
	s, err := f.ConnectExisting(ctx)
	if err != nil || s != nil {
		return s, err
	}
	return nil, cli.WithStatus(exitcode.NoServer, fmt.Errorf(
		"no Temporal server is known; name one with --address or TEMPORAL_ADDRESS, or %s", DevHint(ctx)))
}

// DevHint returns how to get a permanent server without naming one.
func DevHint(ctx context.Context) string {
	if folder, found := DevInParent(ctx); found {
		return fmt.Sprintf("run this in %s, where %s dev runs", folder, terminal.ProgramName())
	}
	return "start one with " + terminal.ProgramName() + " dev"
}

// Session is a connection to a Temporal server, which may be a local one that this process started with a worker.
type Session struct {
	Client    client.Client
	Address   string
	Namespace string
	UI        string // base of the web UI without a trailing slash, "" if unknown
	UISocket  string // at which the web UI is, for the page of runs alone; "" where it has a port
	Page      *Page  // of runs, beside a server of ours; nil for none
	pageLink  string // to the page of the starter dev whose server this is; "" for another server
	TaskQueue string
	Store     *payload.Store // of large values, nil for none
	// Encryption decrypts histories that do not come from the server.
	Encryption *codec.Codec
	Server     *localserver.Server // nil unless it is ours
	worker     *localWorker        // nil unless it is ours
	Callbacks  *localCallbacks     // to the worker; nil unless it is ours
	Key        string              // of a local server and its workers, "" for others
	cleanUp    func()              // runs last; nil for nothing
	Telemetry  *telemetry.Telemetry
	Ends       bool // the server ends with the run, so nothing leads back to it
	// Flags are the flags with which another command reaches the server, such as " --address HOST:PORT"; "" if it
	// needs none.
	Flags string
}

// End releases everything that the session started. now skips the graceful shutdown; nothing is left behind in either
// case.
func (s *Session) End(now bool) {
	if s.cleanUp != nil {
		defer s.cleanUp()
	}
	defer s.Telemetry.Close()
	if s.Page != nil && !now {
		s.Page.Stop()
	}
	if now && s.Server != nil {
		s.Server.Kill() // our worker dies with this process
		return
	}
	if s.Callbacks != nil {
		s.Callbacks.stop()
	}
	if s.worker != nil {
		s.worker.stopWorker()
	}
	s.Client.Close()
	_ = s.Store.Close()
	if s.Server != nil {
		s.Server.Stop()
	}
}

// ServerExited returns a channel that is closed when the local server ends unexpectedly. For other servers it returns nil.
func (s *Session) ServerExited() <-chan struct{} {
	if s.Server == nil {
		return nil
	}
	return s.Server.Exited()
}

// LostError returns the error for a local server that ended unexpectedly, with the server's output.
func (s *Session) LostError() error {
	return cli.WithStatus(exitcode.NoServer, fmt.Errorf("the local Temporal server has stopped; its output:\n%s",
		strings.TrimSpace(s.Server.Output())))
}

// PageOf returns the link to a run on the page of runs, else in the web UI; "" if neither is known.
func (s *Session) PageOf(workflowID, runID string) string {
	link := s.pageAddress()
	if link == "" {
		return s.RunLink(workflowID, runID)
	}
	return ui.LinkTo(link, workflowID)
}

// RunLink returns the link to a run in the web UI; "" if the UI is not known.
func (s *Session) RunLink(workflowID, runID string) string {
	if s.UI == "" {
		return ""
	}
	if runID == "" { // the latest
		return fmt.Sprintf("%s/namespaces/%s/workflows/%s", s.UI, url.PathEscape(s.Namespace), url.PathEscape(workflowID))
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history",
		s.UI, url.PathEscape(s.Namespace), url.PathEscape(workflowID), runID)
}

// RunsLink returns the address of the page of runs, else of their list in the web UI; "" if both are unknown.
func (s *Session) RunsLink() string {
	switch link := s.pageAddress(); {
	case link != "":
		return link
	case s.UI == "":
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows?query=%s", s.UI, url.PathEscape(s.Namespace), url.QueryEscape(runs.OwnRuns))
}

// pageAddress returns the address of the page of runs, with its key; "" if it is unknown.
func (s *Session) pageAddress() string {
	if s.Page != nil {
		return s.Page.Link
	}
	return s.pageLink
}

// ServerFlags select the server, and its task queue and payload store.
type ServerFlags struct {
	connect.Flags
	TaskQueue    string
	PayloadStore string
	Metrics      string // host:port of this command's metrics, "" for none
}

// Add adds the flags to a command.
func (f *ServerFlags) Add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Address, "address", "", "host:port of the Temporal server")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "Temporal namespace")
	flags.StringVar(&f.Profile, "profile", "", "profile of Temporal's configuration file")
	cli.MarkGeneral(flags, "address", "namespace", "profile")
	f.AddWorker(command)
}

// AddWorker adds the flags that starters and workers of a server share.
func (f *ServerFlags) AddWorker(command *cobra.Command) {
	command.Flags().StringVar(&f.PayloadStore, "payload-store", os.Getenv(payload.Variable),
		"store of large values, the same as for the workers, such as file:///DIRECTORY or s3://BUCKET ["+payload.Variable+"]")
	command.Flags().StringVarP(&f.TaskQueue, "task-queue", "t", cmp.Or(os.Getenv("REPRISE_TASK_QUEUE"), protocol.DefaultTaskQueue),
		"task queue of the worker [REPRISE_TASK_QUEUE]")
	cli.MarkGeneral(command.Flags(), "payload-store", "task-queue")
}

// ConnectExisting connects to the server that flags, environment or profile name, or to that of `starter dev`. It returns
// nil if there is none.
func (f *ServerFlags) ConnectExisting(ctx context.Context) (*Session, error) {
	if err := cli.CheckQueue(f.TaskQueue); err != nil {
		return nil, err
	}
	options, err := connect.ResolveOptions(f.Flags)
	if err != nil {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	if options.HostPort == "" {
		return f.connectDev(ctx)
	}
	dev := localserver.ServerFileOf(options.HostPort)
	server, err := dialServer(ctx, connect.WithKey(options, dev.Key), f.PayloadStore, f.Metrics)
	if err != nil {
		return nil, err
	}
	return &Session{
		Client: server.client, Address: options.HostPort, Namespace: options.Namespace, TaskQueue: f.TaskQueue,
		UI:       strings.TrimRight(cmp.Or(os.Getenv("REPRISE_UI_URL"), os.Getenv("TEMPORAL_UI_URL"), dev.UI), "/"),
		UISocket: dev.UISocket, Store: server.store, Encryption: server.encryption, Key: dev.Key, Telemetry: server.telemetry, Flags: f.repeatFlags(),
	}, nil
}

// repeatFlags returns the flags of this command line that select the server, for a suggested command.
func (f *ServerFlags) repeatFlags() string {
	text := ""
	for _, flag := range [][2]string{{"address", f.Address}, {"namespace", f.Namespace}, {"profile", f.Profile}} {
		if flag[1] != "" {
			text += " --" + flag[0] + " " + terminal.ShellWord(flag[1])
		}
	}
	return text
}

// connection is a client, with its payload store and telemetry.
type connection struct {
	client     client.Client
	store      *payload.Store
	encryption *codec.Codec
	telemetry  *telemetry.Telemetry
}

// dialServer connects to a server. metrics is the address of a metrics endpoint, "" for none.
func dialServer(ctx context.Context, options client.Options, payloadStore, metrics string) (connection, error) {
	encryption, err := codec.FromEnvironment(os.LookupEnv, false)
	if err != nil {
		return connection{}, cli.WithStatus(exitcode.Usage, err)
	}
	store, err := payload.OpenLater(payloadStore)
	if err != nil {
		return connection{}, cli.WithStatus(exitcode.Usage, err)
	}
	store.SetEncryption(encryption)
	watched, err := telemetry.New(ctx, starterTelemetry(metrics))
	if err != nil {
		_ = store.Close()
		return connection{}, cli.WithStatus(exitcode.Usage, err)
	}
	watched.CountOperations(store)
	c, err := connect.Dial(ctx, watched.ClientOptions(store.ClientOptions(options)), encryption, nil)
	if err != nil {
		_ = store.Close()
		watched.Close()
		return connection{}, cli.WithStatus(exitcode.NoServer, err)
	}
	return connection{client: c, store: store, encryption: encryption, telemetry: watched}, nil
}

// starterTelemetry returns the telemetry options of a starter. address is where it serves the metrics of its local
// worker.
func starterTelemetry(address string) telemetry.Options {
	return telemetry.Options{
		Service: "reprise-starter", Version: build.Read().Reprise, MetricsAddress: address,
		TraceHeaders: telemetry.TraceHeaders(), Secrets: &secrets.Masker{},
	}
}

// connectDev connects to the server of `starter dev` in this directory; nil if there is none.
func (f *ServerFlags) connectDev(ctx context.Context) (*Session, error) {
	found, err := FindDev(ctx, f.Namespace, f.PayloadStore, f.Metrics)
	if found == nil || err != nil {
		return nil, err
	}
	return &Session{
		Client: found.client, Address: found.State.Address, Namespace: found.State.Namespace, UI: found.State.UI,
		UISocket: found.State.UISocket, pageLink: found.State.Page, TaskQueue: f.TaskQueue, Store: found.store, Encryption: found.encryption, Key: found.State.Key, Telemetry: found.telemetry, Flags: f.repeatFlags(),
	}, nil
}

// LocalFlags configure a local server and its worker.
type LocalFlags struct {
	DBFile      string
	connections string
	egress      string
	allowPython bool
	Playbooks   string      // folder of those that others run by name
	metrics     string      // address of the worker's metrics
	pythonGiven func() bool // whether allowPython is the user's
}

// AddFlags adds the flags to a command.
func (f *LocalFlags) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.DBFile, "db-filename", "", "SQLite file of a local server; by default its state is in memory")
	flags.StringVar(&f.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of the local worker's connections: URLs or OAuth 2.0 clients by name [REPRISE_CONNECTIONS]")
	flags.StringVar(&f.egress, "egress", os.Getenv(egress.Variable),
		"YAML file of the addresses that tools of the local worker may connect to; default all that are not link-local ["+egress.Variable+"]")
	flags.StringVar(&f.Playbooks, "playbooks", os.Getenv("REPRISE_PLAYBOOKS"),
		"folder of the playbooks that the local worker runs by name; default: the folder of FILE, for starter dev this directory [REPRISE_PLAYBOOKS]")
	flags.StringVar(&f.metrics, "metrics-address", os.Getenv("REPRISE_METRICS_ADDRESS"),
		"host:port of the local worker's metrics for Prometheus, at /metrics [REPRISE_METRICS_ADDRESS]")
	flags.BoolVar(&f.allowPython, "allow-python", true,
		"let the local worker run any Python code; by default it runs only that of runs started here")
	cli.MarkGeneral(flags, "db-filename", "connections", "egress", "playbooks", "metrics-address", "allow-python")
	f.pythonGiven = func() bool { return flags.Changed("allow-python") }
}

// StartLocal starts a local server, with a worker unless the task queue is "".
func (f *LocalFlags) StartLocal(ctx context.Context, options localserver.Options, target ServerFlags) (*Session, error) {
	resources, err := host.ReadResources(OperatorFiles(f.connections, f.egress), egress.LocalPolicy())
	if err != nil {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	resources.Private = append(resources.Private, LocalFiles(f.DBFile)...)
	keys, err := secretKeys(f.DBFile)
	if err != nil {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	logger, closeLog := openWorkerLog()
	watching := starterTelemetry(f.metrics)
	watching.Logger = slog.New(watching.Secrets.Handler(logger.Handler()))
	watched, err := telemetry.New(ctx, watching)
	if err != nil {
		closeLog()
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	s, err := f.startServer(ctx, options, target, logger, watched)
	if err != nil || s.TaskQueue == "" {
		closeLog()
		return s, err
	}
	if resources.Payloads, err = host.PayloadLimits(s.Store, os.LookupEnv); err != nil {
		s.End(false)
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	s.Callbacks, err = startCallbacks(s, f.DBFile, keys, watching.Secrets, logger)
	if err != nil {
		s.End(false)
		return nil, err
	}
	resources.AllowPython, resources.Playbooks, resources.CallbackURL = f.allowPython, cmp.Or(f.Playbooks, "."), s.Callbacks.URL
	resources.TaskQueue = s.TaskQueue
	resources.Logger, resources.Secrets, resources.SecretKeys, resources.Telemetry = logger, watching.Secrets, keys, watched.AttemptRecorder()
	if !f.pythonGiven() {
		resources.CheckPython = host.NewGuard(s.Client, s.Key).CheckCode
	}
	s.worker, err = startWorker(s, resources, closeLog)
	if err != nil {
		s.End(false)
		return nil, err
	}
	return s, nil
}

// OperatorFiles returns the operator's files for a worker in this process.
func OperatorFiles(connections, egress string) host.OperatorFiles {
	return host.OperatorFiles{Connections: connections, RateLimits: os.Getenv("REPRISE_RATE_LIMITS"), Egress: egress}
}

// startServer starts a local server with its payload store.
func (f *LocalFlags) startServer(
	ctx context.Context, options localserver.Options, target ServerFlags, logger *slog.Logger, watched *telemetry.Telemetry,
) (*Session, error) {
	encryption, err := codec.FromEnvironment(os.LookupEnv, false)
	if err != nil {
		watched.Close()
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	store, remove, err := localStore(ctx, target.PayloadStore, f.DBFile)
	if err != nil {
		watched.Close()
		return nil, err
	}
	store.SetEncryption(encryption)
	watched.CountOperations(store)
	leave := func() {
		watched.Close()
		_ = store.Close()
		remove()
	}
	if options.Key, err = localKey(f.DBFile); err != nil {
		leave()
		return nil, err
	}
	options.DBFile, options.Namespace = f.DBFile, cmp.Or(target.Namespace, connect.DefaultNamespace)
	options.Attributes = protocol.SearchAttributes()
	server, err := localserver.Start(ctx, options)
	if err != nil {
		leave()
		return nil, cli.WithStatus(exitcode.NoServer, err)
	}
	c, err := connect.Dial(ctx, watched.ClientOptions(host.ClientOptions(store, server.ClientOptions(), logger)), encryption, logger)
	if err != nil {
		server.Kill()
		leave()
		return nil, cli.WithStatus(exitcode.NoServer, err)
	}
	return &Session{
		Client: c, Address: server.Address, Namespace: server.Namespace, UI: server.UIURL, UISocket: server.UISocket,
		TaskQueue: target.TaskQueue, Store: store, Encryption: encryption, Server: server, Key: options.Key, cleanUp: remove, Telemetry: watched,
	}, nil
}

// localWorker is a worker in this process.
type localWorker struct {
	worker    worker.Worker
	catalogue *activities.Catalogue
	closeLog  func()
	stopWatch context.CancelFunc
}

// localStopTimeout is how long running attempts may continue when the session ends.
const localStopTimeout = time.Second

func startWorker(s *Session, resources activities.Resources, closeLog func()) (*localWorker, error) {
	cacheBytes, err := host.CacheBytes(os.LookupEnv)
	if err != nil {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	catalogue := activities.NewCatalogue(resources)
	host.ReserveHeap()
	host.BoundCachedWorkflows(0)
	w := host.NewWorker(s.Client, catalogue, host.Options{
		TaskQueue: s.TaskQueue, StopTimeout: localStopTimeout, Telemetry: s.Telemetry,
	})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	watch, stopWatch := context.WithCancel(context.Background())
	go host.WatchCache(watch, cacheBytes, resources.Telemetry, resources.Logger)
	return &localWorker{worker: w, catalogue: catalogue, closeLog: closeLog, stopWatch: stopWatch}, nil
}

func (w *localWorker) stopWorker() {
	w.stopWatch()
	w.worker.Stop()
	_ = w.catalogue.Close()
	w.closeLog()
}

// WorkerLogPath returns the path of the log of a worker in this process.
func WorkerLogPath() string { return filepath.Join(stateDir, "worker.log") }

// openWorkerLog opens the log of a worker in this process, because standard error is for people. If the file cannot
// be written, the worker runs without a log.
func openWorkerLog() (*slog.Logger, func()) {
	const most = 10 << 20
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(WorkerLogPath()); err == nil && info.Size() > most {
		flags |= os.O_TRUNC
	}
	err := localserver.OwnFolder(stateDir)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(WorkerLogPath(), flags, 0o600)
	}
	if err != nil {
		return slog.New(slog.DiscardHandler), func() {}
	}
	_ = file.Chmod(0o600) // others could read it where it was there before
	return slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: slog.LevelInfo})), func() { _ = file.Close() }
}

// Destination returns where a session starts runs.
func (s *Session) Destination() start.Destination {
	return start.Destination{Client: s.Client, TaskQueue: s.TaskQueue, Key: s.Key}
}

// Page is the page of runs that this process serves, with its link.
type Page struct {
	Server *ui.Server
	Link   string
	Stop   func() // of one that was started beside something else
}
