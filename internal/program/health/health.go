// Package health reports whether a program is alive and ready for work, as Kubernetes and load balancers ask: at GET /livez
// and GET /readyz of an address of its own.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	// patience is how long one check may take.
	patience = 3 * time.Second
	// keptFor is how long the outcome of a check is used again, so that frequent requests do not
	// keep what is checked busy.
	keptFor = time.Second
)

// Dependency is something that a program needs for its work. Its methods are safe for concurrent use.
type Dependency struct {
	// Reason is the sentence of what is wrong where Check fails.
	Reason string
	Check  func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	err   error
}

// Err is why what is needed is not there, nil where it is. It is checked unless it was a moment ago.
func (d *Dependency) Err(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) < keptFor {
		return d.err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	d.err = d.Check(limited)
	d.asked = time.Now()
	return d.err
}

// Temporal checks that the server of a client answers.
func Temporal(c client.Client) *Dependency {
	return &Dependency{Reason: "the Temporal server does not respond", Check: func(ctx context.Context) error {
		_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	}}
}

// Server answers probes. A nil one has no address, and does nothing.
type Server struct {
	logger   *slog.Logger
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	state string // why the program takes no work, "" if it does
	needs []*Dependency
}

// Listen answers at an address, host:port, from now on: alive, and not ready until Ready. "" is no address.
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

// Needs makes readiness depend on something.
func (s *Server) Needs(dependency *Dependency) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = append(s.needs, dependency)
}

// Ready says that the program takes work.
func (s *Server) Ready() { s.setState("") }

// Draining says that the program takes no more work, and ends what it has begun.
func (s *Server) Draining() { s.setState("it is stopping") }

func (s *Server) setState(why string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = why
}

// missingReason is why the program is not ready, "" if it is.
func (s *Server) missingReason(ctx context.Context) string {
	s.mu.Lock()
	state, needs := s.state, s.needs
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

// respondProbe answers a probe. What is wrong is a sentence without addresses or errors, which are in the log.
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

// URL is where probes find the server, "" without an address.
func (s *Server) URL() string {
	if s == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close ends the server.
func (s *Server) Close() {
	if s != nil {
		_ = s.server.Close()
	}
}
