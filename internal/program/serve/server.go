// Package serve is an HTTP server through which others start runs of playbooks, read their status, steer them, and answer
// attempts. Clients are callers with a token, or senders that sign their requests.
//
// The server stores nothing: the memo of a run says what was started, for whom and by which request. So several
// servers can run, and restarts lose nothing.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/internal/base/callback"
	"reprise/internal/base/codec"
	"reprise/internal/base/payload"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/base/slots"
	"reprise/internal/observe/runs"
	"reprise/internal/program/health"
	"reprise/interpreter"
)

// Order is a request for a run of a playbook.
type Order struct {
	WorkflowID string
	File       string // name of the playbook's file, for messages
	Source     []byte
	Workload   map[string]any
	// Memo is the memo of the run.
	Memo map[string]any
}

// Begun is a run that was started.
type Begun struct {
	RunID    string
	Warnings []string // about the workload
}

// StartedError is the error if a run with the workflow ID exists or existed.
type StartedError struct{ WorkflowID string }

func (e *StartedError) Error() string { return "a run already exists with the ID " + e.WorkflowID }

// Options configure a server.
type Options struct {
	Client client.Client
	// Start starts a run, once: the error is a *StartedError if there was a run with the ID, and a *Problem if the
	// caller should learn what is wrong.
	Start func(context.Context, Order) (Begun, error)
	// Namespace is that of Client, and Store has the large values of its runs, nil for none. Both are needed to steer and
	// answer runs.
	Namespace string
	Store     *payload.Store
	// Decodes has payloads decoded and encoded for callers with the role decode and pages of Origins, with the keys of
	// Encryption and the values of Store.
	Decodes    bool
	Encryption *codec.Codec
	Origins    []string
	// Playbooks is the folder of the playbooks that can be started; "" if there is none.
	Playbooks string
	Callers   *Callers
	// Keys decrypt the tokens of callbacks. They are the workers' keys; nil accepts no token.
	Keys *seal.Keys
	// MaxAnswer is the largest answer, in bytes of JSON; 0 is interpreter.MaxInlinePayload, for a client without a
	// payload store.
	MaxAnswer int
	// Secrets resolves the connections that triggers name.
	Secrets tool.ConnectionResolver
	// Masked masks the secrets that are used; nil creates a new masker.
	Masked *secrets.Masker
	Logger *slog.Logger // nil discards
	// Audit is the log of starts, commands, answers, denials and changed files; nil keeps none. While it cannot be written,
	// what would be in it is refused.
	Audit  *audit.Trail
	Limits Limits
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// Limits bound how much a server does concurrently and for how long; zero values mean defaults.
type Limits struct {
	Connections int           // open ones
	Requests    int           // of callers that run, those that wait for a result apart
	Deliveries  int           // requests without a token that run
	Waits       int           // requests that wait for a result
	Answers     int           // answers that wait for what a worker says of them
	Header      time.Duration // until a request's header is there
	Body        time.Duration // until its body is
	Stall       time.Duration // of that, until its first bytes are
	Rate        int           // bytes of a body that then have to come each second
	Room        int           // bytes of bodies that are on their way: those of callers, and as much of others
	Idle        time.Duration // between requests of a connection
	Write       time.Duration // to send an answer
	Stop        time.Duration // for requests that run when the server ends
}

func (l *Limits) setDefaults() {
	count := func(n *int, fallback int) {
		if *n <= 0 {
			*n = fallback
		}
	}
	count(&l.Connections, 10_000)
	count(&l.Requests, 256)
	count(&l.Deliveries, 256)
	count(&l.Waits, 1000)
	count(&l.Answers, 64)
	count(&l.Rate, 32<<10)
	count(&l.Room, 64<<20)
	for _, one := range []struct {
		d        *time.Duration
		fallback time.Duration
	}{
		{&l.Header, 10 * time.Second},
		{&l.Body, 30 * time.Second},
		{&l.Stall, 5 * time.Second},
		{&l.Idle, 2 * time.Minute},
		{&l.Write, 15 * time.Second},
		{&l.Stop, 20 * time.Second},
	} {
		if *one.d <= 0 {
			*one.d = one.fallback
		}
	}
}

const (
	// maxHeader is the largest header of a request, in bytes: net/http reads it into memory before anything is known
	// about the client, up to 1 MB by default.
	maxHeader = 32 << 10
	// maxWait bounds how long a request may wait for the result of a run. Proxies close connections that are silent
	// for longer, and each waiting request occupies a poll of the server.
	maxWait = time.Minute
)

// Server answers requests. It is safe for concurrent use.
type Server struct {
	Options

	mux         *http.ServeMux
	requests    *senderSlots // by callers and tokens
	deliveries  *senderSlots // by addresses
	waits       *senderSlots // by callers
	answerSlots *senderSlots // of answers, by workflows
	decoding    *senderSlots // of payloads, by callers
	arrivals    *crowd       // bodies of callers, and of owners of a token
	strangers   *crowd       // bodies of others
	progress    reporting
	storing     *slots.ByKey    // of mailboxes: one answer at a time, so that their bounds hold
	stopping    context.Context // ends when the server is to end
	stop        context.CancelFunc
	nobody      string // a secret without an owner
	reader      *runs.Reader
	health      *health.Dependency // of the Temporal server
}

// New returns a server.
func New(options Options) *Server {
	options.Limits.setDefaults()
	options.Logger = cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	options.Masked = cmp.Or(options.Masked, &secrets.Masker{})
	options.Logger = slog.New(options.Masked.Handler(options.Logger.Handler()))
	if options.Now == nil {
		options.Now = time.Now
	}
	nobody, _, _ := NewToken("nobody", nil, RoleNone)
	s := &Server{
		Options: options, mux: http.NewServeMux(), nobody: nobody,
		decoding: newRequestSlots(codecRequests, queuing),
		reader:   &runs.Reader{Client: options.Client, Store: options.Store, Namespace: options.Namespace},
		requests: newRequestSlots(options.Limits.Requests, queuing), deliveries: newRequestSlots(options.Limits.Deliveries, queuing),
		waits: newRequestSlots(options.Limits.Waits, 0), answerSlots: newAnswerSlots(options.Limits.Answers),
		arrivals: newCrowd(options.Limits.Room), strangers: newCrowd(options.Limits.Room), health: health.TemporalDependency(options.Client),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.logChangedFiles()
	s.progress, s.storing = reporting{send: s.deliverAnswer, open: map[string]*reports{}}, slots.New(1, 0)
	for _, route := range append(s.allRoutes(), s.payloadRoutes()...) {
		s.mux.Handle(route.method+" "+route.path, s.routeHandler(route))
	}
	return s
}

// route is one kind of request.
type route struct {
	method, path string
	// query are the accepted query parameters. A page accepts any: services that send its link add some.
	query []string
	page  bool
	// handle returns the response. Errors are converted by problemOf.
	handle func(w http.ResponseWriter, r *http.Request) (answer, error)
}

// checkQuery refuses unknown query parameters, so that misspelt ones are noticed.
func (r route) checkQuery(request *http.Request) error {
	if r.page || request.URL.RawQuery == "" {
		return nil
	}
	takes := "none"
	if len(r.query) > 0 {
		takes = strings.Join(r.query, ", ")
	}
	given, err := url.ParseQuery(request.URL.RawQuery)
	if err != nil {
		return badRequest("the query string is not valid; this path accepts: %s", takes)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !slices.Contains(r.query, name):
			return badRequest("unknown query parameter %q; this path accepts: %s", name, takes)
		case len(given[name]) > 1:
			return badRequest("the query parameter %s is given twice", name)
		}
	}
	return nil
}

// allRoutes returns all routes. openapi.json describes their responses.
func (s *Server) allRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/healthz", handle: s.getHealth},
		{method: http.MethodGet, path: "/v1/openapi.json", handle: s.getOpenAPI},
		{method: http.MethodPost, path: "/v1/playbooks/{name}/runs", query: []string{waitParameter}, handle: s.postRun},
		{method: http.MethodGet, path: "/v1/runs/{id}", query: []string{waitParameter}, handle: s.getRun},
		{method: http.MethodPost, path: "/v1/runs/{id}/answer", handle: s.postAnswer},
		{method: http.MethodPost, path: "/v1/runs/{id}/{command}", handle: s.postCommand},
		{method: http.MethodPost, path: callback.Path + "{token}/complete", handle: s.postCallback(interpreter.AnswerComplete)},
		{method: http.MethodPost, path: callback.Path + "{token}/fail", handle: s.postCallback(interpreter.AnswerFail)},
		{method: http.MethodPost, path: callback.Path + "{token}/progress", handle: s.postCallback(interpreter.AnswerProgress)},
		{method: http.MethodGet, path: callback.PagePath + "{token}", page: true, handle: s.pageOf(s.getApproval)},
		{method: http.MethodPost, path: callback.PagePath + "{token}", page: true, handle: s.pageOf(s.postApproval)},
	}
}

// Run serves requests on a listener until ctx ends, and then finishes open ones. With a certificate it uses TLS.
func (s *Server) Run(ctx context.Context, listener net.Listener, certificate *Certificate) error {
	limits := s.Limits
	server := &http.Server{
		Handler: s, ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: limits.Header, ReadTimeout: limits.Body, IdleTimeout: limits.Idle,
		WriteTimeout: limits.Body + maxWait + 2*limits.Write, ConnContext: withConnection,
	}
	listener = &connections{Listener: listener, crowd: newCrowd(limits.Connections)}
	ended := make(chan error, 1)
	go func() {
		if certificate == nil {
			ended <- server.Serve(listener)
			return
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return certificate.newestCertificate(s.Logger), nil
		}}
		ended <- server.ServeTLS(listener, "", "")
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.stop()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Stop)
	defer cancel()
	defer s.progress.flushAll()
	if err := server.Shutdown(limited); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer pinConnection(r.Context())()
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if path.Clean(r.URL.Path) != r.URL.Path { // which the mux would redirect
		s.sendReply(w, r, "", time.Now(), notFound().problemAnswer())
		return
	}
	if none, pattern := s.mux.Handler(r); pattern == "" {
		s.sendReply(w, r, "", time.Now(), noRouteAnswer(none, r))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// noRouteAnswer converts the mux's response to a request without a route to a problem.
func noRouteAnswer(none http.Handler, r *http.Request) answer {
	seen := &statusOnly{header: http.Header{}}
	none.ServeHTTP(seen, r)
	if seen.status == http.StatusMethodNotAllowed {
		allow := seen.header.Get("Allow")
		return newProblem(seen.status, "method-not-allowed", "this path accepts %s", allow).withHeader("Allow", allow).problemAnswer()
	}
	return notFound().problemAnswer()
}

// statusOnly records only the status and headers of a response.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }

// routeHandler returns the handler of a route, with what all routes have in common.
func (s *Server) routeHandler(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		notes := &logFields{}
		r = r.WithContext(context.WithValue(r.Context(), logFieldsKey{}, notes))
		s.sendReply(w, r, route.path, began, s.answerRoute(route, w, r))
	})
}

// answerRoute calls the route's handler. A panic becomes a response.
func (s *Server) answerRoute(route route, w http.ResponseWriter, r *http.Request) (given answer) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Logger.Error("a request panicked", "route", route.path, "panic", cause, "stack", string(debug.Stack()))
			given = newProblem(http.StatusInternalServerError, "internal", "the request failed; see the log of starter serve").problemAnswer()
		}
	}()
	err := route.checkQuery(r)
	if err == nil {
		given, err = route.handle(w, r)
	}
	if err == nil {
		return given
	}
	failed := problemOf(err)
	if failed.Status >= http.StatusInternalServerError {
		s.Logger.Error("a request failed", "route", route.path, "error", err)
	}
	return failed.problemAnswer()
}

// sendReply sends a response and logs it, with the route instead of the path.
func (s *Server) sendReply(w http.ResponseWriter, r *http.Request, route string, began time.Time, answer answer) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.Limits.Write))
	if r.ContentLength != 0 && !hasArrived(r) && r.ProtoMajor == 1 { // the rest of the body is not awaited
		w.Header().Set("Connection", "close")
		_ = control.SetReadDeadline(time.Now().Add(closing))
	}
	answer.writeTo(w)
	attributes := []any{"method", methodOf(r), "route", route, "status", answer.status, "took", time.Since(began).Round(time.Microsecond).String()}
	if notes, ok := r.Context().Value(logFieldsKey{}).(*logFields); ok {
		attributes = append(attributes, notes.all...)
	}
	s.Logger.Info("request", attributes...)
}

// methodOf returns a method for the log, shortened: clients may send any text.
func methodOf(r *http.Request) string {
	const shown = 10
	if len(r.Method) > shown {
		return r.Method[:shown]
	}
	return r.Method
}

// closing is how long a client that is still sending has to read its response.
const closing = 500 * time.Millisecond

// logFields are additional fields of a request's log entry.
type logFields struct {
	all     []any
	arrived bool // its body is there
}

type logFieldsKey struct{}

// recordArrival records that the body of a request has arrived.
func recordArrival(r *http.Request) {
	if notes, ok := r.Context().Value(logFieldsKey{}).(*logFields); ok {
		notes.arrived = true
	}
}

func hasArrived(r *http.Request) bool {
	notes, ok := r.Context().Value(logFieldsKey{}).(*logFields)
	return ok && notes.arrived
}

func logWith(r *http.Request, key string, value any) {
	if notes, ok := r.Context().Value(logFieldsKey{}).(*logFields); ok {
		notes.all = append(notes.all, key, value)
	}
}
