package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
)

// readyLimit bounds the wait for a server that started without an error to
// answer.
const readyLimit = 30 * time.Second

// server is a running Temporal server and, unless headless, its web UI.
type server struct {
	opts     options
	ports    ports
	store    *config.SQL
	temporal temporal.Server
	ui       *uiserver.Server // nil when headless
}

// start returns once clients can connect to everything.
func start(ctx context.Context, opts options, logger log.Logger) (*server, error) {
	chosen, err := choosePorts(ctx, opts)
	if err != nil {
		return nil, err
	}
	store, err := openStorage(opts.dbFile)
	if err != nil {
		return nil, err
	}
	if err := ensureNamespaces(ctx, store, clusterName, opts); err != nil {
		return nil, err
	}
	core, err := newTemporal(opts, chosen, store, logger)
	if err != nil {
		return nil, fmt.Errorf("set up the server: %w", err)
	}
	if err := core.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	srv := &server{opts: opts, ports: chosen, store: store, temporal: core}
	if !opts.headless {
		srv.ui = newUI(opts, chosen)
		// It serves until Stop; the port was found free a moment ago, and if
		// it was taken since, the UI ends the process with a message itself.
		go func() { _ = srv.ui.Start() }()
	}
	if err := srv.waitReady(ctx); err != nil {
		srv.stop(stopLimit)
		return nil, err
	}
	return srv, nil
}

func newTemporal(opts options, chosen ports, store *config.SQL, logger log.Logger) (temporal.Server, error) {
	return temporal.NewServer(
		temporal.WithConfig(serverConfig(opts, chosen, store)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(serviceHosts(opts, chosen)),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicConfig(opts.settings)),
	)
}

func newUI(opts options, chosen ports) *uiserver.Server {
	return uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		Host:                bracketed(opts.uiIP),
		Port:                chosen.ui,
		TemporalGRPCAddress: address(reachableIP(opts.ip), chosen.frontend),
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true, // the page would ask the vendor's site
		NotifyOnNewVersion:  false,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // plain HTTP
	}))
}

// bracketed is the form of an IPv6 address the UI joins with a port.
func bracketed(ip string) string {
	if parsed := net.ParseIP(ip); parsed != nil && parsed.To4() == nil {
		return "[" + ip + "]"
	}
	return ip
}

// announce prints the addresses in the words of the official CLI, in one piece
// for callers that read them.
func (s *server) announce(w io.Writer) {
	text := fmt.Sprintf("%s\n\n%-8s %s\n", versionLine(), "Server:", address(displayHost(s.opts.ip), s.ports.frontend))
	if s.ui != nil {
		text += fmt.Sprintf("%-8s http://%s\n", "UI:", address(displayHost(s.opts.uiIP), s.ports.ui))
	}
	_, _ = io.WriteString(w, text)
}

func displayHost(ip string) string {
	if ip == loopback {
		return "localhost"
	}
	return ip
}

// stop ends the UI and the server, and gives up waiting after limit.
func (s *server) stop(limit time.Duration) {
	if s.ui != nil {
		s.ui.Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.temporal.Stop()
		// Without it the next start reads the log, which works as well.
		_ = settle(s.store)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
