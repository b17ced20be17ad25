// Package health reports whether a program is alive and ready for work, to Kubernetes and load balancers: at GET
// /livez and GET /readyz of a separate address.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	// patience bounds one check.
	patience = 3 * time.Second
	// reusedFor is how long the result of a check is reused, so that frequent probes do not overload what is checked.
	reusedFor = time.Second
)

// Dependency is something that a program needs in order to work. Its methods are safe for concurrent use.
type Dependency struct {
	// Reason is what probes report if Check fails.
	Reason string
	Check  func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	err   error
}

// Err returns why the dependency is not available; nil if it is. The result of a recent check is reused.
func (d *Dependency) Err(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) < reusedFor {
		return d.err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	d.err = d.Check(limited)
	d.asked = time.Now()
	return d.err
}

// TemporalDependency checks that the server of a client responds.
func TemporalDependency(c client.Client) *Dependency {
	return &Dependency{Reason: "the Temporal server does not respond", Check: func(ctx context.Context) error {
		_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	}}
}

// Server answers probes. A nil server does nothing.
type Server struct {
	logger   *slog.Logger
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	state string // why the program takes no work, "" if it does
	needs []*Dependency
	polls *Dependency // examined last: what fails before may be its cause
}

// Listen answers probes at an address, host:port: the program is alive, and not ready until SetReady is called. For ""
// it returns nil.
func Listen(ctx context.Context, address string, logger *slog.Logger) (*Server, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // nobody asked for it
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open the health address %q: %w", address, err)
	}
	s := &Server{logger: logger, listener: listener, state: "it is starting"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.respondProbe(w, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.respondProbe(w, s.missingReason(r.Context())) })
	s.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the health address is closed", "error", err)
		}
	}()
	return s, nil
}

// AddDependency makes readiness depend on something.
func (s *Server) AddDependency(dependency *Dependency) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = append(s.needs, dependency)
}

// SetReady reports the program as ready for work.
func (s *Server) SetReady() { s.setState("") }

// SetDraining reports that the program accepts no more work, and finishes what it has begun.
func (s *Server) SetDraining() { s.setState("it is stopping") }

func (s *Server) setState(why string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = why
}

// missingReason returns why the program is not ready; "" if it is.
func (s *Server) missingReason(ctx context.Context) string {
	s.mu.Lock()
	state, needs := s.state, slices.Clip(s.needs)
	if s.polls != nil {
		needs = append(needs, s.polls)
	}
	s.mu.Unlock()
	if state != "" {
		return state
	}
	for _, needed := range needs {
		if err := needed.Err(ctx); err != nil {
			s.logger.Warn("not ready: "+needed.Reason, "error", err)
			return needed.Reason
		}
	}
	return ""
}

// respondProbe answers a probe. The reason is a sentence without addresses or errors, which are in the log.
func (s *Server) respondProbe(w http.ResponseWriter, missing string) {
	body := map[string]string{"status": "ok"}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if missing != "" {
		body = map[string]string{"status": "unavailable", "reason": missing}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // a probe that does not wait gets no answer
}

// URL returns the URL for probes; "" without an address.
func (s *Server) URL() string {
	if s == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops the server.
func (s *Server) Close() {
	if s != nil {
		_ = s.server.Close()
	}
}
