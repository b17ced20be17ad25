package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/base/audit"
	"reprise/internal/base/build"
	"reprise/internal/base/callback"
	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/connection"
	"reprise/internal/base/egress"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/payload"
	_ "reprise/internal/base/payload/cloud" // s3://; with -tags allclouds gs:// and azblob:// too
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/census"
	"reprise/internal/program/health"
	"reprise/internal/program/host"
	"reprise/internal/program/localserver"
	"reprise/internal/program/telemetry"
	"reprise/workflows/protocol"
)

const defaultAddress = "127.0.0.1:7233"

const long = `worker runs playbooks. It connects to a Temporal server, polls a task queue
and calls the tools that playbooks use. Run as many workers as you like: if one
dies, its runs continue on another.

The server address comes from the flags, then from TEMPORAL_ADDRESS,
TEMPORAL_NAMESPACE and the other variables of Temporal's own tools, then from a
profile. The default is ` + defaultAddress + `.

Playbooks refer to connections by name, such as auth: clinic. The worker looks a
name up in the --connections file, a YAML map of names to URLs or maps, and then in
its environment, as REPRISE_AUTH_CLINIC.

With --metrics-address, Prometheus metrics are served at http://HOST:PORT/metrics.
With OTEL_EXPORTER_OTLP_ENDPOINT, such as http://localhost:4318, metrics and traces
are sent to that collector; the other OpenTelemetry variables apply too.

With --health-address, /livez and /readyz are served for probes. /livez responds as
long as the process is alive. /readyz returns 503 while the worker starts or stops,
while the Temporal server does not respond or refuses polls, and while the payload
store does not respond.

With --deployment, this worker is a build of that deployment, and Temporal keeps the
runs of different builds apart: new runs go to the build that is current, and a run
stays with the build that started it. See starter builds.

SIGINT and SIGTERM stop the worker: it accepts no new work, releases tasks that it
has not started, and gives running attempts up to 10 seconds to finish.`

const examples = `  worker
  worker --address temporal.example.com:7233 --namespace clinic
  REPRISE_AUTH_CLINIC=postgres://… worker --task-queue clinic --allow-python`

// options are the flags of the worker.
type options struct {
	server      connect.Flags
	taskQueue   string
	connections string
	secrets     string
	spool       string
	rateLimits  string
	egress      string
	callbackURL string
	payloads    string
	encrypted   bool
	encryption  *codec.Codec
	audit       string
	directory   string
	playbooks   string
	keys        string
	onlyKnown   bool
	allowPython bool
	maxAttempts int
	heartbeat   string
	deployment  string
	build       string
	versioning  string
	cached      int
	cacheBytes  string
	logLevel    string
	logFormat   string
	logFile     string
	health      string
	telemetry   telemetryOptions
	sbom        bool
}

// telemetryOptions are the destinations of metrics and traces.
type telemetryOptions struct {
	address string
	headers bool
}

// runMain is main with the arguments and streams as parameters. It returns the exit status once ctx ends or the
// worker cannot continue.
func runMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	status := exitcode.Usage // until the command runs, only usage can be wrong
	command, opts := newCommand()
	secret := &secrets.Masker{}
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	command.RunE = func(*cobra.Command, []string) error {
		var err error
		if opts.sbom {
			return build.WriteBill(stdout)
		}
		status, err = serveWorker(ctx, opts, secret, stdout, stderr)
		return err
	}
	err := command.Execute()
	if err == nil {
		return exitcode.OK
	}
	if message := secret.MaskText(err.Error()); opts.jsonLog() {
		slog.New(slog.NewJSONHandler(stderr, nil)).Error(message)
	} else {
		_, _ = fmt.Fprintf(stderr, "worker: %s\n", message)
	}
	if status == exitcode.Usage && !opts.jsonLog() {
		_, _ = fmt.Fprintln(stderr, "See worker --help.")
	}
	return status
}

func newCommand() (*cobra.Command, *options) {
	opts := &options{}
	command := &cobra.Command{
		Use: "worker", Short: "Runs playbooks from a Temporal task queue", Long: long, Example: examples,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true, Version: versionText(),
	}
	command.SetVersionTemplate("worker {{.Version}}\n")
	command.SetHelpFunc(func(command *cobra.Command, _ []string) { writeHelp(command) })
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&opts.server.Address, "address", "", "host:port of the Temporal server")
	flags.StringVar(&opts.server.Namespace, "namespace", "", "Temporal namespace")
	flags.StringVar(&opts.server.Profile, "profile", "", "profile of Temporal's configuration file")
	flags.StringVar(&opts.taskQueue, "task-queue", cmp.Or(os.Getenv("REPRISE_TASK_QUEUE"), protocol.DefaultTaskQueue),
		"task queue to poll [REPRISE_TASK_QUEUE]")
	flags.StringVar(&opts.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of connections: names mapped to URLs, or to maps of what to send [REPRISE_CONNECTIONS]")
	flags.StringVar(&opts.secrets, "secrets-directory", os.Getenv(connection.DirectoryVariable),
		"folder of secret files, which connections refer to as {from: file, path: NAME}; default none ["+connection.DirectoryVariable+"]")
	flags.StringVar(&opts.spool, "token-spool", os.Getenv("REPRISE_TOKEN_SPOOL"),
		"folder that only this worker uses, where it keeps tokens of logins across restarts, encrypted; default none [REPRISE_TOKEN_SPOOL]")
	flags.StringVar(&opts.callbackURL, "callback-url", os.Getenv(callback.Variable),
		"base URL where other systems reach starter serve; requires REPRISE_SECRET_KEY, the same as for serve ["+callback.Variable+"]")
	flags.StringVar(&opts.rateLimits, "rate-limits", os.Getenv("REPRISE_RATE_LIMITS"),
		"YAML file of rate limits that apply to every playbook, such as api: {requests: 10, per: 1s} [REPRISE_RATE_LIMITS]")
	flags.StringVar(&opts.egress, "egress", os.Getenv(egress.Variable),
		"YAML file of the addresses that tools may connect to, such as {allow: [10.2.0.0/16]}; default public addresses and hosts of connections ["+
			egress.Variable+"]")
	flags.StringVar(&opts.payloads, "payload-store", os.Getenv(payload.Variable),
		"store for values over 128 KiB, such as file:///DIRECTORY or s3://BUCKET; use the same one for every worker and starter ["+
			payload.Variable+"]")
	flags.BoolVar(&opts.encrypted, "codec-required", envBool(codec.RequiredVariable),
		"refuse values of runs that are not encrypted with a key of "+codec.Variable+" ["+codec.RequiredVariable+"]")
	flags.StringVar(&opts.directory, "directory", os.Getenv("REPRISE_DIRECTORY"),
		"base folder for relative paths of the file and sqlite tools; default the working directory [REPRISE_DIRECTORY]")
	opts.addPlaybookFlags(flags)
	flags.BoolVar(&opts.allowPython, "allow-python", envBool("REPRISE_ALLOW_PYTHON"),
		"allow playbooks to run Python code, with the rights of this process [REPRISE_ALLOW_PYTHON]")
	flags.IntVar(&opts.maxAttempts, "max-attempts", 0, "maximum number of concurrent tool attempts; 0 means 200")
	flags.StringVar(&opts.heartbeat, "heartbeat", os.Getenv("REPRISE_HEARTBEAT"),
		"time between two heartbeats of an attempt, 2s to 60s; a lost worker is noticed after five; default 2s [REPRISE_HEARTBEAT]")
	opts.addBuildFlags(flags)
	flags.IntVar(&opts.cached, "cached-workflows", host.CachedWorkflows,
		"workflows to keep in memory, about 80 kB each plus their data; others are replayed from history when needed")
	flags.StringVar(&opts.cacheBytes, "cache-bytes", os.Getenv(host.CacheVariable),
		"memory in use, in bytes, above which no workflows are kept in memory; default half of what the process may use ["+host.CacheVariable+"]")
	flags.StringVar(&opts.logLevel, "log-level", cmp.Or(os.Getenv("REPRISE_LOG_LEVEL"), "warn"),
		"debug, info, warn or error [REPRISE_LOG_LEVEL]")
	flags.StringVar(&opts.logFormat, "log-format", cmp.Or(os.Getenv("REPRISE_LOG_FORMAT"), "text"), "text or json [REPRISE_LOG_FORMAT]")
	flags.StringVar(&opts.logFile, "log-file", os.Getenv("REPRISE_LOG_FILE"),
		"also log to this file, as JSON from level info on, for starter logs [REPRISE_LOG_FILE]")
	flags.StringVar(&opts.audit, "audit-log", "",
		"file for the audit log, as JSON lines: who started, steered and answered runs, and what was denied; an action that cannot be logged is refused; default none")
	flags.StringVar(&opts.health, "health-address", os.Getenv("REPRISE_HEALTH_ADDRESS"),
		"host:port to serve /livez and /readyz for probes; default none [REPRISE_HEALTH_ADDRESS]")
	flags.StringVar(&opts.telemetry.address, "metrics-address", os.Getenv("REPRISE_METRICS_ADDRESS"),
		"host:port to serve Prometheus metrics at /metrics; default none [REPRISE_METRICS_ADDRESS]")
	flags.BoolVar(&opts.telemetry.headers, "trace-headers", telemetry.TraceHeaders(),
		"send traceparent with HTTP requests when tracing is on [REPRISE_TRACE_HEADERS]")
	flags.BoolVar(&opts.sbom, "sbom", false, "print the modules that this worker is built from, as CycloneDX 1.6, and exit")
	return command, opts
}

// addBuildFlags adds the flags of Worker Versioning.
func (o *options) addBuildFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.deployment, "deployment", os.Getenv(build.DeploymentVariable),
		"name of the deployment that this worker is a build of, for Temporal's Worker Versioning; default none ["+build.DeploymentVariable+"]")
	flags.StringVar(&o.build, "build", os.Getenv(build.Variable),
		"ID of this build within the deployment; default version and commit ["+build.Variable+"]")
	flags.StringVar(&o.versioning, "versioning", cmp.Or(os.Getenv("REPRISE_VERSIONING"), versioningPinned),
		"with a deployment: pinned keeps runs on the build that started them, auto-upgrade moves them to the current one [REPRISE_VERSIONING]")
}

// writeHelp writes the text of --help.
func writeHelp(command *cobra.Command) {
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s",
		terminal.Paragraphs(command.Long, terminal.HelpColumns), command.UseLine(), command.Example,
		command.Flags().FlagUsagesWrapped(terminal.HelpColumns))
}

// envBool returns an environment variable as a boolean. An invalid value is false, because a typo must not permit
// anything.
func envBool(name string) bool {
	value, err := strconv.ParseBool(os.Getenv(name))
	return err == nil && value
}

// serveWorker runs the worker until ctx ends.
func serveWorker(ctx context.Context, opts *options, secret *secrets.Masker, stdout, stderr io.Writer) (int, error) {
	logger, closeLog, err := newLogger(opts, stderr)
	if err != nil {
		return exitcode.Usage, err
	}
	defer closeLog()
	logger = slog.New(secret.Handler(logger.Handler()))
	cacheBytes, ownBuild, err := opts.cacheAndBuild()
	if err != nil {
		return exitcode.Usage, err
	}
	resources, server, err := opts.resourcesAndServer(logger, secret)
	if err != nil {
		return exitcode.Usage, err
	}
	defer func() { _ = resources.Audit.Close() }()
	dev := localserver.ServerFileOf(server.HostPort)
	server = connect.WithKey(server, dev.Key)
	store, err := opts.openStore(ctx, dev)
	if err != nil {
		return exitcode.Usage, err
	}
	defer func() { _ = store.Close() }()
	if resources.Payloads, err = host.PayloadLimits(store, os.LookupEnv); err != nil {
		return exitcode.Usage, err
	}
	probes, err := opts.listenForProbes(ctx, store, logger)
	if err != nil {
		return exitcode.Usage, err
	}
	defer probes.Close()
	watched, err := opts.openTelemetry(ctx, logger, secret)
	if err != nil {
		return exitcode.Usage, err
	}
	defer watched.Close()
	watched.CountOperations(store)
	c, err := connect.Dial(ctx, watched.ClientOptions(probes.ClientOptions(host.ClientOptions(store, server, logger))), opts.encryption, logger)
	if err != nil {
		return withoutServer(ctx, err)
	}
	defer c.Close()
	probes.AddDependency(health.TemporalDependency(c))
	resources.Telemetry = watched.AttemptRecorder()
	catalogue := activities.NewCatalogue(resources)
	defer func() { _ = catalogue.Close() }()
	watch, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	if err := activities.ReportTokens(watch, catalogue, c, server.Namespace); err != nil {
		return exitcode.Usage, err
	}
	go host.WatchCache(watch, cacheBytes, watched.AttemptRecorder(), logger)
	opts.watchFigures(watch, census.NewSampler(c, store, server.Namespace), store, watched, logger)
	return runWorker(ctx, c, catalogue, probes, opts.cached, host.Options{
		TaskQueue: opts.taskQueue, MaxAttempts: opts.maxAttempts, Telemetry: watched, Build: ownBuild,
	}, func() {
		opts.announceReady(stdout, startInfo{
			queue: opts.taskQueue, namespace: server.Namespace, address: server.HostPort, store: store.Name(), metrics: watched.URL(), health: probes.URL(),
			build: ownBuild,
		})
	})
}

// watchFigures samples the figures of the namespace and of the payload store until ctx ends.
func (o *options) watchFigures(
	ctx context.Context, figures *census.Sampler, store *payload.Store, watched *telemetry.Telemetry, logger *slog.Logger,
) {
	figures.To, figures.TaskQueue, figures.Logger = watched.Gauges(), o.taskQueue, logger
	go figures.Watch(ctx, census.Every)
	go census.WatchStore(ctx, store, watched.Gauges(), logger, census.StoreEvery)
}

// openStore opens the payload store, by default that of a server that keeps one; nil for none.
func (o *options) openStore(ctx context.Context, dev localserver.ServerFile) (*payload.Store, error) {
	store, err := payload.Open(ctx, cmp.Or(o.payloads, dev.PayloadStore))
	store.SetEncryption(o.encryption)
	return store, err
}

// withoutServer returns the exit status of a worker that could not reach a server: success if it was interrupted
// meanwhile.
func withoutServer(ctx context.Context, err error) (int, error) {
	if ctx.Err() != nil {
		return exitcode.OK, nil
	}
	return exitcode.NoServer, err
}

// openTelemetry starts to serve metrics and to send traces, as the options configure.
func (o *options) openTelemetry(ctx context.Context, logger *slog.Logger, secret *secrets.Masker) (*telemetry.Telemetry, error) {
	return telemetry.New(ctx, telemetry.Options{
		Service: "reprise-worker", Version: versionText(), MetricsAddress: o.telemetry.address,
		TraceHeaders: o.telemetry.headers, Logger: logger, Secrets: secret,
	})
}

// listenForProbes serves health probes, if the options name an address.
func (o *options) listenForProbes(ctx context.Context, store *payload.Store, logger *slog.Logger) (*health.Server, error) {
	probes, err := health.Listen(ctx, o.health, logger)
	probes.AddDependency(&health.Dependency{Reason: "the payload store does not respond", Check: store.CheckReady})
	return probes, err
}

// startInfo is the information that a worker prints once it polls.
type startInfo struct {
	queue, namespace, address, store, metrics, health string
	build                                             host.OwnBuild
}

// announceReady prints that the worker polls, in the format of the log and at any log level.
func (o *options) announceReady(w io.Writer, s startInfo) {
	if o.jsonLog() {
		slog.New(slog.NewJSONHandler(w, nil)).Info("polling", "task_queue", s.queue, "namespace", s.namespace, "address", s.address,
			"python", onOff(o.allowPython), "payload_store", s.store, "metrics", s.metrics, "health", s.health, "deployment", s.build.Deployment, "build", s.build.ID,
			"version", versionText())
		return
	}
	_, _ = fmt.Fprintf(w, "worker: polling task queue %q, namespace %q at %s, python %s, payload store %s\n",
		s.queue, s.namespace, s.address, onOff(o.allowPython), s.store)
	if s.build.ID != "" {
		_, _ = fmt.Fprintf(w, "worker: build %q of deployment %q\n", s.build.ID, s.build.Deployment)
	}
	if s.metrics != "" {
		_, _ = fmt.Fprintf(w, "worker: metrics at %s\n", s.metrics)
	}
	if s.health != "" {
		_, _ = fmt.Fprintf(w, "worker: probes at %s/livez and %s/readyz\n", s.health, s.health)
	}
}

// jsonLog reports whether the worker writes JSON.
func (o *options) jsonLog() bool { return strings.EqualFold(o.logFormat, "json") }

// resourcesAndServer returns the resources of tools, with an open audit log, and the address of the server.
func (o *options) resourcesAndServer(logger *slog.Logger, secret *secrets.Masker) (activities.Resources, client.Options, error) {
	resources, err := o.toolResources()
	if err != nil {
		return resources, client.Options{}, err
	}
	resources.Logger, resources.Secrets = logger, secret
	o.server.Logger, o.server.MaskKey = logger, func(key string) { secret.AddConnection("bearer:" + key) }
	if o.encryption, err = codec.FromEnvironment(os.LookupEnv, o.encrypted); err != nil {
		return resources, client.Options{}, err
	}
	o.encryption.Watch(logger, func(key string) { secret.AddConnection("bearer:" + key) })
	if resources.Audit, err = audit.Open(o.audit, "worker", secret); err != nil {
		return resources, client.Options{}, err
	}
	server, err := o.serverAddress()
	return resources, server, err
}

// serverAddress returns the address of the server, by default on this machine.
func (o *options) serverAddress() (client.Options, error) {
	server, err := connect.ResolveOptions(o.server)
	server.HostPort = cmp.Or(server.HostPort, defaultAddress)
	return server, err
}

// cacheLimit returns how many bytes cached workflows may use.
func (o *options) cacheLimit() (int64, error) {
	if o.cached < 1 {
		return 0, fmt.Errorf("--cached-workflows is %d, expected 1 or more", o.cached)
	}
	return host.CacheBytes(func(string) (string, bool) { return o.cacheBytes, true })
}

// toolResources returns the resources of tools, from the options and the environment.
func (o *options) toolResources() (activities.Resources, error) {
	resources, err := host.ReadResources(host.OperatorFiles{Connections: o.connections, RateLimits: o.rateLimits, Egress: o.egress}, egress.RemotePolicy())
	if err != nil {
		return resources, err
	}
	resources.AllowPython, resources.Directory, resources.Playbooks, resources.TaskQueue = o.allowPython, o.directory, o.playbooks, o.taskQueue
	if resources.Heartbeat, err = o.heartbeatInterval(); err != nil {
		return resources, err
	}
	for flag, folder := range map[string]string{"--directory": o.directory, "--playbooks": o.playbooks, "--secrets-directory": o.secrets, "--token-spool": o.spool} {
		if err := checkFolder(flag, folder); err != nil {
			return resources, err
		}
	}
	resources.CallbackURL, resources.SecretsDirectory, resources.TokenSpool = o.callbackURL, o.secrets, o.spool
	for _, path := range []string{o.secrets, o.spool, o.keys, o.audit} {
		if path != "" {
			resources.Private = append(resources.Private, path)
		}
	}
	if err := o.knowPlaybooks(&resources); err != nil {
		return resources, err
	}
	if err := callback.CheckBase(o.callbackURL); err != nil {
		return resources, err
	}
	resources.SecretKeys, err = seal.FromEnvironment(os.LookupEnv)
	if err == nil && o.callbackURL != "" && resources.SecretKeys == nil {
		err = fmt.Errorf("--callback-url requires %s or %s, the same as for starter serve, because it seals callback URLs; %s",
			seal.Variable, seal.FileVariable, seal.Advice)
	}
	return resources, err
}

// heartbeatInterval returns the interval of an attempt's heartbeats. Below the default it would only cost more; above
// a minute, it would take more than five minutes to detect a lost worker.
func (o *options) heartbeatInterval() (time.Duration, error) {
	if o.heartbeat == "" {
		return heartbeat.Default, nil
	}
	interval, err := time.ParseDuration(o.heartbeat)
	if err != nil || interval < heartbeat.Default || interval > heartbeat.Longest {
		return 0, fmt.Errorf("--heartbeat is %q, expected a duration from %s to %s", o.heartbeat, heartbeat.Default, heartbeat.Longest)
	}
	return interval, nil
}

// The values of --versioning.
const (
	versioningPinned      = "pinned"
	versioningAutoUpgrade = "auto-upgrade"
)

// cacheAndBuild returns how many bytes cached workflows may use, and the build of this worker.
func (o *options) cacheAndBuild() (int64, host.OwnBuild, error) {
	bytes, err := o.cacheLimit()
	if err != nil {
		return 0, host.OwnBuild{}, err
	}
	own, err := o.hostedBuild()
	return bytes, own, err
}

// hostedBuild is the build of this worker, empty where the options name no deployment.
func (o *options) hostedBuild() (host.OwnBuild, error) {
	if o.versioning != versioningPinned && o.versioning != versioningAutoUpgrade {
		return host.OwnBuild{}, fmt.Errorf("--versioning is %q, expected %s or %s", o.versioning, versioningPinned, versioningAutoUpgrade)
	}
	if o.deployment == "" {
		if o.build != os.Getenv(build.Variable) { // which starter reads too, so it may be set for both
			return host.OwnBuild{}, errors.New("--build requires --deployment")
		}
		return host.OwnBuild{}, nil
	}
	if err := build.CheckDeployment(o.deployment); err != nil {
		return host.OwnBuild{}, fmt.Errorf("--deployment: %w", err)
	}
	id := cmp.Or(o.build, build.Read().ID())
	if id == "" {
		return host.OwnBuild{}, errors.New("--deployment requires --build: this worker's version and commit do not identify it")
	}
	if err := build.CheckID(id); err != nil {
		return host.OwnBuild{}, fmt.Errorf("--build: %w", err)
	}
	return host.OwnBuild{Deployment: o.deployment, ID: id, AutoUpgrade: o.versioning == versioningAutoUpgrade}, nil
}

// checkFolder returns an error if a named folder does not exist: its files would be missing in every run.
func checkFolder(flag, folder string) error {
	if folder == "" {
		return nil
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !info.IsDir():
		return fmt.Errorf("%s: %s is not a folder", flag, folder)
	}
	return nil
}

// runWorker runs a worker until ctx ends. cached is how many workflows it caches.
func runWorker(
	ctx context.Context, c client.Client, catalogue *activities.Catalogue, probes *health.Server, cached int, options host.Options, ready func(),
) (int, error) {
	fatal := make(chan error, 1)
	host.ReserveHeap()
	host.BoundCachedWorkflows(cached)
	options.OnFatalError = func(err error) {
		select {
		case fatal <- err:
		default: // the first one is reason enough
		}
	}
	w := host.NewWorker(c, catalogue, options)
	if err := w.Start(); err != nil {
		return exitcode.Failed, fmt.Errorf("could not start: %w", err)
	}
	defer w.Stop()
	defer probes.SetDraining()
	probes.SetReady()
	ready()
	select {
	case <-ctx.Done():
		return exitcode.OK, nil
	case err := <-fatal:
		return exitcode.Failed, fmt.Errorf("stopped: %w", err)
	}
}

func onOff(on bool) string {
	if on {
		return "allowed"
	}
	return "not allowed"
}

// newLogger returns a logger to w and, if the options name one, to a file, and a function that closes that file.
func newLogger(opts *options, w io.Writer) (*slog.Logger, func(), error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(opts.logLevel)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q is unknown, expected debug, info, warn or error", opts.logLevel)
	}
	var shown slog.Handler
	switch options := (&slog.HandlerOptions{Level: level}); strings.ToLower(opts.logFormat) {
	case "text":
		shown = slog.NewTextHandler(w, options)
	case "json":
		shown = slog.NewJSONHandler(w, options)
	default:
		return nil, nil, fmt.Errorf("--log-format %q is unknown, expected text or json", opts.logFormat)
	}
	if opts.logFile == "" {
		return slog.New(shown), func() {}, nil
	}
	file, err := openLogFile(opts.logFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--log-file: %w", err)
	}
	logged := slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)})
	return slog.New(slog.NewMultiHandler(shown, logged)), file.closeFile, nil
}

// versionText returns the line of --version.
func versionText() string {
	info := build.Read()
	return fmt.Sprintf("%s (commit %s, %s)", info.Reprise, cmp.Or(info.Commit, "unknown"), info.Go)
}
