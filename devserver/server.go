package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

// readyLimit bounds the wait until a started server responds.
const readyLimit = 30 * time.Second

// server is a running Temporal server and, unless headless, its web UI.
type server struct {
	opts     options
	ports    ports
	store    storage
	temporal temporal.Server
	ui       *http.Server // nil when headless
	httpAPI  *http.Server // nil unless asked for
}

// start starts a server, and returns once clients can connect to all its ports.
func start(ctx context.Context, opts options, logger log.Logger) (*server, error) {
	chosen, err := choosePorts(ctx, opts)
	if err != nil {
		return nil, err
	}
	store, err := openStorage(opts)
	if err != nil {
		return nil, err
	}
	if err := ensureNamespaces(ctx, store.main, clusterName, opts); err != nil {
		return nil, nameFullDisk(err)
	}
	if store.isSQLite() {
		if err := slimVisibility(ctx, store.visibility); err != nil {
			return nil, nameFullDisk(err)
		}
	}
	core, err := newTemporal(opts, chosen, store, logger)
	if err != nil {
		return nil, fmt.Errorf("set up the server: %w", err)
	}
	if err := core.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	srv := &server{opts: opts, ports: chosen, store: store, temporal: core}
	if err := srv.startHTTP(ctx); err != nil {
		srv.stop(stopLimit)
		return nil, err
	}
	if err := srv.waitReady(ctx); err != nil {
		srv.stop(stopLimit)
		return nil, err
	}
	return srv, nil
}

// startHTTP starts the HTTP servers: the web UI and the HTTP API.
func (s *server) startHTTP(ctx context.Context) error {
	if s.opts.uiPlace() != uiNowhere {
		handler, err := newUI(s.opts, s.ports)
		if err != nil {
			return fmt.Errorf("set up the web UI: %w", err)
		}
		network, at := s.uiAddress(s.opts.uiIP)
		if s.ui, err = serveHTTP(ctx, network, at, handler); err != nil {
			return fmt.Errorf("start the web UI: %w", err)
		}
	}
	if s.opts.httpPort != 0 {
		var err error
		if s.httpAPI, err = serveHTTP(ctx, "tcp", address(s.opts.ip, s.ports.http), newHTTPAPI(s.opts, s.ports)); err != nil {
			return fmt.Errorf("start the HTTP API: %w", err)
		}
	}
	return nil
}

func newTemporal(opts options, chosen ports, store storage, logger log.Logger) (temporal.Server, error) {
	services := temporal.DefaultServices
	authorizer, claims := authorization.NewNoopAuthorizer(), authorization.NewNoopClaimMapper()
	conf := serverConfig(opts, chosen, store)
	if opts.key != "" {
		internode, err := onlyThisProcess()
		if err != nil {
			return nil, err
		}
		conf.Global.TLS.Internode = internode
		// The server's own workers do not know the key, so they have a frontend of their own.
		services = append(slices.Clip(services), string(primitives.InternalFrontendService))
		authorizer, claims = authorization.NewDefaultAuthorizer(), keyed{opts.key}
	}
	return temporal.NewServer(
		temporal.WithConfig(conf),
		temporal.ForServices(services),
		temporal.WithStaticHosts(serviceHosts(opts, chosen)),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamicConfig(opts.settings, chosen.httpHost)),
	)
}

// announce prints the addresses as the official CLI does, in a single write for callers that parse it.
func (s *server) announce(w io.Writer) {
	text := fmt.Sprintf("%s\n\n%-8s %s\n", versionLine(), "Server:", address(displayHost(s.opts.ip), s.ports.frontend))
	switch s.opts.uiPlace() {
	case uiOnPort:
		text += fmt.Sprintf("%-8s http://%s\n", "UI:", address(displayHost(s.opts.uiIP), s.ports.ui))
	case uiAtSocket:
		text += fmt.Sprintf("%-8s unix:%s\n", "UI:", s.opts.uiSocket)
	case uiNowhere:
		if !s.opts.headless {
			text += fmt.Sprintf("%-8s none: with a key it has no port, only a socket (%s)\n", "UI:", uiSocketVariable)
		}
	}
	_, _ = io.WriteString(w, text)
}

func displayHost(ip string) string {
	if ip == loopback {
		return "localhost"
	}
	return ip
}

// stop stops the UI and the server, and waits at most limit for that.
func (s *server) stop(limit time.Duration) {
	for _, serving := range []*http.Server{s.ui, s.httpAPI} {
		if serving != nil {
			_ = serving.Close()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.temporal.Stop()
		// If this fails, the next start reads the write-ahead log, which works as well.
		_ = settle(s.store)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
