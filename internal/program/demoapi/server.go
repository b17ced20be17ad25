// Package demoapi is a small HTTP API that misbehaves on request: it paginates in four styles, fails chosen pages,
// limits rates, responds slowly, incompletely or not at all, and has collections whose rows change while they are
// read. Examples and tests run against it.
//
// Its responses depend only on the request and on counters of the scenario, a key that the client chooses (header
// X-Scenario or query parameter "scenario"). Clients with different keys never disturb each other, and after a reset
// the same key gets the same responses again. It has no access control: bind it to loopback addresses only.
package demoapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"reprise/internal/base/sleep"
)

// Options configure a Server. The zero value is ready for use.
type Options struct {
	// Items is the number of rows behind each paginated list, 35 by default.
	Items int
	// LogSize bounds the request log in entries, 10,000 by default. The oldest entries are removed first.
	LogSize int
	// Latency is added to every request under /api/, none by default.
	Latency time.Duration
	// Now is the clock of the rate limit and of the log, time.Now by default.
	Now func() time.Time
}

// Server is the demo API. It is an http.Handler, usable without Start, and safe
// for concurrent use.
type Server struct {
	options   Options
	mux       *http.ServeMux
	routes    []string
	scenarios *scenarios
	log       *requestLog
	issued    tokenUses

	mu     sync.Mutex
	http   *http.Server
	url    string
	done   chan struct{} // closed when the listener's goroutine has ended
	detach func() bool   // lets go of the context given to Start
	holds  []*Barrier
}

// New returns a server that does not listen yet.
func New(options Options) *Server {
	if options.Items <= 0 {
		options.Items = 35
	}
	if options.LogSize <= 0 {
		options.LogSize = 10_000
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{
		options:   options,
		mux:       http.NewServeMux(),
		scenarios: &scenarios{limit: maxScenarios, byKey: map[string]*scenario{}},
		log:       &requestLog{limit: options.LogSize, now: options.Now, start: options.Now()},
	}
	s.handleAPI("GET /api/v1/assessments", s.listAssessments)
	s.handleAPI("GET /api/v1/users", s.listUsers)
	s.handleAPI("GET /api/v1/events", s.listEvents)
	s.handleAPI("GET /api/v1/orders", s.listOrders)
	s.handleAPI("GET /api/v1/limited", s.listLimited)
	s.handleAPI("GET /api/v1/exports/users.csv.gz", s.exportUsers)
	s.handleAPI("GET /api/v1/patients", s.listPatients)
	s.handleAPI("GET /api/v1/patients/{id}/medications", s.listMedications)
	s.handleAPI("POST /api/v1/jobs", s.createJob)
	s.handleAPI("GET /api/v1/jobs/{id}", s.pollJob)
	s.handleAPI("POST /api/v1/writes", s.createWrite)
	s.handleAPI("GET /api/v1/writes", s.listWrites)
	s.handleAPI("GET /api/v1/sales", s.readSales)
	s.handleAPI("PUT /api/v1/sales/{id}", s.changeSale)
	s.handleAPI("DELETE /api/v1/sales/{id}", s.deleteSale)
	s.addMoving()
	// Routes that answer with a chosen status, or with the request.
	s.handleRoute("/status/{code}", s.answerStatus)
	s.handleRoute("/flaky", s.answerFlaky)
	s.handleRoute("/slow", s.answerSlow)
	s.handleRoute("/echo", s.echoRequest)
	s.handleRoute("/redirect", s.redirectTo)
	// Problems below the HTTP status: size, compression, broken bodies and connections.
	s.handleRoute("/body", s.answerBody)
	s.handleRoute("/truncated", s.truncateBody)
	s.handleRoute("/drop", s.dropConnection)
	s.handleRoute("/not-json", s.notJSON)
	s.handleRoute("/auth/token", s.issueToken)
	s.handleRoute("/auth/oauth2", s.checkOAuth2)
	s.handleRoute("/auth/bearer", s.checkBearer)
	s.handleRoute("/auth/basic", s.checkBasic)
	s.addControl()
	return s
}

// Start listens on addr ("127.0.0.1:0" for a free port) and serves until Close
// is called or ctx ends. It returns the base URL, without a trailing slash.
// A server starts once; a second call is an error.
func (s *Server) Start(ctx context.Context, addr string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return "", fmt.Errorf("start demo API on %q: it is already running on %s", addr, s.url)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("start demo API on %q: %w", addr, err)
	}
	s.url = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		// Serve returns ErrServerClosed after Close; clients notice any other error.
		_ = s.http.Serve(listener)
	}()
	s.detach = context.AfterFunc(ctx, func() { _ = s.Close() })
	return s.url, nil
}

// URL returns the base URL, or "" before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Close stops listening and cuts all open connections. It returns once no more requests are accepted, and does
// nothing on a server that was not started.
func (s *Server) Close() error {
	s.mu.Lock()
	server, done, detach := s.http, s.done, s.detach
	s.mu.Unlock()
	s.releaseAll()
	if server == nil {
		return nil
	}
	detach()
	err := server.Close()
	<-done
	if errors.Is(err, net.ErrClosed) { // closed twice
		return nil
	}
	return err
}

// ServeHTTP logs the request and answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mux.ServeHTTP(w, r)
}

// handleRoute registers a logged route. The pattern is one of http.ServeMux.
func (s *Server) handleRoute(pattern string, handler http.HandlerFunc) {
	s.routes = append(s.routes, pattern)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		finish := s.log.beginRequest(r)
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() { finish(recorder.status) }()
		if s.waitForHolds(r, false) {
			handler(recorder, r)
			s.waitForHolds(r, true)
		}
	})
}

// handleAPI registers a route under /api/: logged, delayed by Options.Latency.
func (s *Server) handleAPI(pattern string, handler http.HandlerFunc) {
	s.handleRoute(pattern, func(w http.ResponseWriter, r *http.Request) {
		if sleep.For(r.Context(), s.options.Latency) != nil {
			return
		}
		handler(w, r)
	})
}

// statusRecorder records the status for the request log; 0 if the connection was dropped without a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (w *statusRecorder) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusRecorder) Write(p []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// addControl registers the routes about the server itself. They are not logged.
func (s *Server) addControl() {
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		respondJSON(w, http.StatusOK, object{"routes": s.routes})
	})
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respondJSON(w, http.StatusOK, object{"status": "ok"})
	})
	s.mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		s.Reset(r.URL.Query().Get("scenario"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		found := s.log.listRequests(query.Get("scenario"), query.Get("path"))
		respondJSON(w, http.StatusOK, object{"requests": found, "total": len(found)})
	})
	s.mux.HandleFunc("DELETE /requests", func(w http.ResponseWriter, r *http.Request) {
		s.log.clearRequests(r.URL.Query().Get("scenario"))
		w.WriteHeader(http.StatusNoContent)
	})
}
