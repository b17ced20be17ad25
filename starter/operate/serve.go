package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/internal/base/bookshelf"
	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/census"
	"reprise/internal/program/host"
	"reprise/internal/program/serve"
	"reprise/internal/program/start"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	server      session.ServerFlags
	listen      string
	certificate string
	key         string
	playbooks   string
	tokens      string
	connections string
	audit       string
	codec       bool
	origins     []string
	anyway      bool // serve although playbooks have problems
}

// NewServeCommand returns the command serve.
func NewServeCommand(a *cli.App) *cobra.Command {
	options := &serveOptions{}
	command := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return serveAPI(a, options) },
	}
	flags := command.Flags()
	flags.StringVar(&options.listen, "listen", "127.0.0.1:8244", "host:port to listen on; port 0 is a free one")
	flags.StringVar(&options.certificate, "tls-cert", "", "PEM file with the certificate and its intermediates")
	flags.StringVar(&options.key, "tls-key", "", "PEM file with the key of the certificate")
	flags.StringVar(&options.playbooks, "playbooks", "", "folder of the playbooks that can be started; default: none")
	flags.StringVar(&options.tokens, "tokens", "", "YAML file of callers, with the hashes of their tokens and what they may do")
	flags.StringVar(&options.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of connections, for the secrets of triggers [REPRISE_CONNECTIONS]")
	flags.StringVar(&options.audit, "audit-log", "", "file for the audit log, as JSON lines: who started, answered and changed runs; if it cannot be written, such requests get 503; default none")
	flags.BoolVar(&options.codec, "codec", false, "decode payloads at /decode, /encode and /download for callers with the role decode, as Temporal's UI and CLI ask for it; needs REPRISE_CODEC_KEY")
	flags.StringArrayVar(&options.origins, "ui-origin", nil, "origin of Temporal's UI whose pages may decode, such as https://temporal.example.com; repeatable")
	flags.BoolVar(&options.anyway, "allow-invalid", false, "serve even if playbooks in the folder have problems; the log names them")
	flags.StringVar(&options.server.Metrics, "metrics-address", os.Getenv("REPRISE_METRICS_ADDRESS"),
		"host:port to serve Prometheus metrics of open runs, backlog and watermarks at /metrics [REPRISE_METRICS_ADDRESS]")
	options.server.Add(command)
	command.AddCommand(newServeTokenCommand(a))
	return command
}

func newServeTokenCommand(a *cli.App) *cobra.Command {
	var playbooks, roles []string
	var role string
	create := &cobra.Command{
		Use: "new CALLER", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if role != "" && role != string(serve.RoleViewer) && role != string(serve.RoleOperator) {
				return cli.UsageError("--role %q: expected viewer or operator", role)
			}
			secret, line, err := serve.NewToken(args[0], playbooks, serve.Role(role), roles...)
			if err != nil {
				return cli.UsageError("%w", err)
			}
			_, _ = fmt.Fprintf(a.Out, "token: %s\nline for the file of --tokens:\n%s\n", secret, line)
			return nil
		},
	}
	create.Flags().StringArrayVar(&playbooks, "playbook", nil, "a playbook that the caller may start; default: all; repeatable")
	create.Flags().StringArrayVar(&roles, "roles", nil, "what the caller may do with runs of playbooks, as PATTERN=ROLE,ROLE; roles are start, read, steer, answer, decode and admin; repeatable")
	create.Flags().StringVar(&role, "role", "", "role on the page of runs: viewer or operator; without --playbook, the token starts no playbooks over HTTP")
	return cli.NewGroup("token", "", create)
}

// servedFiles is what serve reads before it connects to a server.
type servedFiles struct {
	certificate *serve.Certificate
	connections tool.ConnectionResolver
	callers     *serve.Callers
	keys        *seal.Keys
	masked      *secrets.Masker
	trail       *audit.Trail
}

// readFiles reads the files that the flags name. The trail is open then.
func (o *serveOptions) readFiles(a *cli.App) (files servedFiles, err error) {
	if files.certificate, err = o.serverCertificate(); err != nil {
		return files, err
	}
	configured, err := host.ReadConnections(o.connections)
	if err != nil {
		return files, cli.WithStatus(exitcode.Usage, err)
	}
	files.connections, files.masked = host.ResolveSecrets(configured, slog.New(slog.NewJSONHandler(a.Err, nil))), &secrets.Masker{}
	if o.tokens != "" {
		if files.callers, err = serve.OpenCallers(o.tokens); err != nil {
			return files, cli.WithStatus(exitcode.Usage, err)
		}
	}
	if err := cmp.Or(checkFolder(o.playbooks), o.checkCodec()); err != nil {
		return files, err
	}
	if files.keys, err = seal.FromEnvironment(os.LookupEnv); err != nil {
		return files, cli.WithStatus(exitcode.Usage, err)
	}
	if !o.anyway {
		if err := checkServed(a.Streams, o.playbooks, files.connections); err != nil {
			return files, err
		}
	}
	if files.trail, err = audit.Open(o.audit, "serve", files.masked); err != nil {
		return files, cli.WithStatus(exitcode.Usage, err)
	}
	return files, nil
}

// serveAPI serves the API until the command is interrupted.
func serveAPI(a *cli.App, options *serveOptions) error {
	files, err := options.readFiles(a)
	if err != nil {
		return err
	}
	defer func() { _ = files.trail.Close() }()
	a.Interrupts.EndsInOrder()
	return session.WithServer(a, &options.server, func(ctx context.Context, s *session.Session) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.listen)
		if err != nil {
			return cli.WithStatus(exitcode.Usage, fmt.Errorf("listen on --listen %s: %w", options.listen, err))
		}
		most, err := s.MostBytes()
		if err != nil {
			return err
		}
		logger := slog.New(files.masked.Handler(slog.NewJSONHandler(a.Err, nil)))
		files.keys.Watch(logger, func(text string) { files.masked.AddConnection("bearer:" + text) })
		if plainToOthers(listener, files.certificate) {
			logger.Warn("other machines can connect without TLS: tokens can be read on the network unless a proxy in front adds TLS")
		}
		if files.keys == nil {
			logger.Warn("callbacks are refused: the tokens are opened with " + seal.Variable + " or " + seal.FileVariable + ", which are not set; use the key of the workers")
		}
		go func() {
			if err := files.callers.ReadProviderKeys(ctx); err != nil {
				logger.Warn("the tokens of the identity provider are refused until its keys can be read", "error", err)
			}
		}()
		if options.anyway {
			logFlaws(logger, options.playbooks, files.connections)
		}
		starts := &starts{session: s, logger: logger, playbooks: options.playbooks}
		server := serve.New(serve.Options{
			Client: s.Client, Namespace: s.Namespace, Store: s.Store, Start: starts.startRun, Playbooks: options.playbooks, Callers: files.callers, Keys: files.keys, MaxAnswer: most,
			Decodes: options.codec, Encryption: s.Encryption, Origins: options.origins, Secrets: files.connections, Masked: files.masked, Logger: logger, Audit: files.trail,
		})
		figures := census.NewSampler(s.Client, s.Store, s.Namespace)
		figures.To, figures.TaskQueue, figures.Logger = s.Telemetry.Gauges(), s.TaskQueue, logger
		go figures.Watch(ctx, census.Every)
		go census.WatchStore(ctx, s.Store, s.Telemetry.Gauges(), logger, census.StoreEvery)
		logger.Info("serving", "url", schemeOf(files.certificate)+"://"+listener.Addr().String(), "temporal", s.Address, "namespace", s.Namespace, "metrics", s.Telemetry.URL())
		return server.Run(ctx, listener, files.certificate)
	})
}

// schemeOf returns the URL scheme of a server with or without a certificate.
func schemeOf(certificate *serve.Certificate) string {
	if certificate != nil {
		return "https"
	}
	return "http"
}

// serverCertificate returns the certificate that the flags name; nil if they name none.
func (o *serveOptions) serverCertificate() (*serve.Certificate, error) {
	if (o.certificate == "") != (o.key == "") {
		return nil, cli.UsageError("--tls-cert and --tls-key must be used together")
	}
	if o.certificate == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	certificate, err := serve.OpenCertificate(o.certificate, o.key)
	if err != nil {
		return nil, cli.UsageError("read --tls-cert and --tls-key: %w", err)
	}
	return certificate, nil
}

// checkCodec checks the flags of a codec server. The keys are those of every program.
func (o *serveOptions) checkCodec() error {
	for _, origin := range o.origins {
		if err := serve.CheckOrigin(origin); err != nil {
			return cli.UsageError("--ui-origin: %w", err)
		}
	}
	encryption, err := codec.FromEnvironment(os.LookupEnv, false)
	switch {
	case err != nil:
		return cli.WithStatus(exitcode.Usage, err)
	case !o.codec && len(o.origins) > 0:
		return cli.UsageError("--ui-origin is about --codec, which is missing")
	case o.codec && len(encryption.IDs()) == 0:
		return cli.UsageError("--codec needs the keys of the workers, in %s or %s", codec.Variable, codec.FileVariable)
	case o.codec && o.tokens == "":
		return cli.UsageError("--codec needs --tokens: it decodes for callers with the role decode, and for nobody else")
	}
	return nil
}

func checkFolder(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return cli.UsageError("--playbooks %s is not a folder", path)
	}
	return nil
}

// plainToOthers reports whether other machines can reach a listener that has no TLS.
func plainToOthers(listener net.Listener, certificate *serve.Certificate) bool {
	at, ok := listener.Addr().(*net.TCPAddr)
	return certificate == nil && ok && !at.IP.IsLoopback()
}

// starts starts runs for callers of the API.
type starts struct {
	session   *session.Session
	logger    *slog.Logger
	playbooks string // their folder

	mu         sync.Mutex
	attributes *connect.Attributes // that the namespace knows; nil before they were requested
}

// startRun validates a playbook and starts a run of it, as serve.Options documents.
func (s *starts) startRun(ctx context.Context, order serve.Order) (serve.Begun, error) {
	file := source.NewFile(order.File, order.Source)
	files := load.CalledFiles(s.playbooks)
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Workload: order.Workload, Files: files})
	if errs := found.Errors(); len(errs) > 0 {
		return serve.Begun{}, serve.InvalidPlaybook(order.File, errs)
	}
	warnings := load.UnreadKeys(book, order.Workload)
	if len(warnings) > 0 && book.Strict {
		return serve.Begun{}, serve.UnfitWorkload(warnings...)
	}
	plan, err := launch.NewPlan(load.CheckedPlaybook{File: file, Book: book, Files: files.Texts()}, order.Workload, order.WorkflowID, s.playbooks)
	if err == nil {
		err = launch.CheckFits(s.session, plan)
	}
	if err != nil {
		return serve.Begun{}, serve.UnfitWorkload(err.Error())
	}
	plan.Memo, plan.Once = order.Memo, true
	run, err := start.StartRun(ctx, s.session.Destination(), plan, s.knownAttributes(ctx))
	if _, ok := errors.AsType[*start.StartedError](err); ok {
		return serve.Begun{}, &serve.StartedError{WorkflowID: order.WorkflowID}
	}
	if err != nil {
		return serve.Begun{}, err
	}
	return serve.Begun{RunID: run.GetRunID(), Warnings: warnings}, nil
}

// knownAttributes returns the search attributes of the namespace. The first call adds those that are missing.
func (s *starts) knownAttributes(ctx context.Context) connect.Attributes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attributes == nil {
		known, err := connect.EnsureAttributes(ctx, s.session.Client, s.session.Namespace, protocol.SearchAttributes())
		if err != nil {
			s.logger.Warn("the run does not get all search attributes", "error", err)
		}
		if err != nil || len(known.Added) > 0 { // a run may not be able to use them yet
			return known
		}
		s.attributes = &known
	}
	return *s.attributes
}

// brokenPlaybook is a playbook of a folder that cannot be started by any request.
type brokenPlaybook struct {
	name  string
	file  *source.File
	found source.Diagnostics
}

// brokenPlaybooks returns the playbooks of a folder that cannot be started, or whose deliveries cannot be
// deduplicated. The values of a run's workload are not known yet.
func brokenPlaybooks(folder string, secrets tool.ConnectionResolver) []brokenPlaybook {
	var all []brokenPlaybook
	if folder == "" {
		return all
	}
	for _, name := range bookshelf.PlaybookNames(folder) {
		file, found := flawsOf(folder, name, secrets)
		if errs := found.Errors(); len(errs) > 0 {
			all = append(all, brokenPlaybook{name: name, file: file, found: errs})
		}
	}
	return all
}

// flawsOf returns the problems of a playbook in a folder.
func flawsOf(folder, name string, secrets tool.ConnectionResolver) (*source.File, source.Diagnostics) {
	text, err := bookshelf.Read(folder, name)
	file := source.NewFile(name+".yaml", text)
	if err != nil {
		return file, source.Diagnostics{{File: file.Name, Message: err.Error()}}
	}
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Open: true, Files: load.CalledFiles(folder)})
	if book == nil {
		return file, found
	}
	of := map[string]*playbook.Trigger{} // by the secret
	for _, trigger := range book.Triggers {
		flaw := func(format string, args ...any) {
			found = append(found, source.Diagnostic{File: file.Name, Pos: trigger.Pos, Message: fmt.Sprintf(format, args...)})
		}
		secret, err := serve.TriggerSecret(secrets, trigger)
		switch {
		case err != nil:
			flaw("the secret %q of this trigger cannot be used: %v; set the connection in --connections, or as %s",
				trigger.Secret, err, tool.ConnectionVariable(trigger.Secret))
		case of[secret] != nil && trigger.Secret != of[secret].Secret:
			flaw("the secrets %q and %q are equal: a delivery for one could be sent again to the other", of[secret].Secret, trigger.Secret)
		}
		if err == nil {
			of[secret] = trigger
		}
	}
	found.Sort()
	return file, found
}

// checkServed prints the problems of the playbooks in a folder, and returns an error if there are any.
func checkServed(streams cli.Streams, folder string, secrets tool.ConnectionResolver) error {
	all := brokenPlaybooks(folder, secrets)
	for _, one := range all {
		_, _ = fmt.Fprint(streams.Err, one.file.FormatFirst(one.found, playbook.MaxShown))
	}
	if len(all) == 0 {
		return nil
	}
	return cli.UsageError("%s of --playbooks %s cannot be served; to serve the others, use --allow-invalid", terminal.Count(len(all), "playbook"), folder)
}

// logFlaws logs the playbooks that cannot be served.
func logFlaws(logger *slog.Logger, folder string, secrets tool.ConnectionResolver) {
	for _, one := range brokenPlaybooks(folder, secrets) {
		logger.Warn("a playbook cannot be served", "playbook", one.name, "problems", len(one.found), "first", one.found[0].String())
	}
}
