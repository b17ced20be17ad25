package testenv

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"reprise/internal/program/localserver"
)

// Server is a Temporal server of one test, which may kill and restart it. Its state is in a file.
type Server struct {
	*Env

	options localserver.Options
	running *localserver.Server
}

// TemporalServer starts a server that only this test uses, and that ends with it.
func TemporalServer(t testing.TB) *Server {
	t.Helper()
	binary, err := findDevServer()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{options: localserver.Options{Binary: binary, DBFile: filepath.Join(t.TempDir(), "temporal.db"), ReadyTimeout: Within(startTimeout)}}
	if err := s.startAnywhere(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.running.Kill() })
	s.Env = &Env{
		Address: "127.0.0.1:" + strconv.Itoa(s.options.Port), Namespace: s.running.Namespace, UIURL: s.running.UIURL,
	}
	ctx, cancel := context.WithTimeout(t.Context(), Within(startTimeout))
	defer cancel()
	if err := s.connectClient(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// startAnywhere starts the server on free ports. It retries, because a port can be taken before the server listens.
func (s *Server) startAnywhere(ctx context.Context) (err error) {
	for range 3 {
		for _, port := range []*int{&s.options.Port, &s.options.UIPort} {
			if *port, err = freePort(); err != nil {
				return err
			}
		}
		if s.running, err = localserver.Start(ctx, s.options); err == nil {
			return nil
		}
	}
	return err
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() { s.running.Kill() }

// Start starts the server again after Kill, with the same file and ports, and returns once it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	running, err := localserver.Start(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	s.running = running
}
