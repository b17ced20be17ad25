// Package ui serves web pages on which people see runs and control them. It holds no state: pages are read from
// Temporal with the code of the commands, and every button is the command of the same name. All pages work without
// scripts.
package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/audit"
	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/localserver"
	"reprise/internal/program/steer"
)

// Options configure a server of pages.
type Options struct {
	Client    client.Client
	Namespace string
	Runs      *runs.Reader
	Access    Access
	// Again starts a run with the playbook and workload of another run, and Reprocess runs its failed iterations
	// again. Both return the ID of the new run. Nil leaves the button out.
	Again     func(ctx context.Context, run runs.Found, said ChangedBy) (workflowID string, err error)
	Reprocess func(ctx context.Context, run runs.Found, only Only, said ChangedBy) (workflowID string, err error)
	// Library is the folder of playbooks; nil for none.
	Library *Library
	// TemporalUI returns the link to a run in Temporal's own UI; "" if unknown.
	TemporalUI func(workflowID, runID string) string
	// Temporal serves that UI below these pages; nil if it is elsewhere.
	Temporal http.Handler
	// Docs serves the documents below /docs/; nil leaves them out.
	Docs http.Handler
	// Log returns the last lines that a worker logged about a run; nil leaves the page out.
	Log func(ctx context.Context, run runs.Found, most int) ([]string, error)
	// StartedWith is the command that serves the pages, such as "starter ui"; pages show it when the server has
	// ended.
	StartedWith string
	// TemporalAway says in a sentence what to do if the Temporal server does not respond.
	TemporalAway string
	// Audit is the log of changes by people, and of those that they may not make; nil for none. While it cannot be written,
	// nothing is changed.
	Audit  *audit.Trail
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
}

// Only selects the failed iterations to run again; zero values select all.
type Only struct {
	Step  string
	Index *int
}

// ChangedBy is who makes a change, and why.
type ChangedBy struct{ By, Reason string }

// Server serves the pages. It is safe for concurrent use.
type Server struct {
	Options

	mux      *http.ServeMux
	temporal http.Handler
	secret   []byte // of the forms
	silences silences
	ended    endedCounts
	partial  endedCounts // of partial successes
	faults   faults
	glanced  glanceCache
	openSets openSets
	changes  changeLog
}

// New returns a server of pages.
func New(options Options) *Server {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{Options: options, mux: http.NewServeMux(), secret: []byte(rand.Text()), faults: newFaults(), glanced: newGlanceCache(), openSets: newOpenSets()}
	s.changes = changeLog{trail: options.Audit, logger: options.Logger}
	for pattern, show := range map[string]pageHandler{
		"GET /{$}":                    s.runsPage,
		"GET /runs/{id}":              s.runPage,
		"GET /runs/{id}/events":       s.eventsPage,
		"GET /runs/{id}/timeline":     s.timelinePage,
		"GET /runs/{id}/log":          s.logPage,
		"GET /runs/{id}/steps/{step}": s.stepPage,
		"GET /runs/{id}/confirm":      s.confirmPage,
		"POST /runs/{id}/do":          s.changeRun,
		"GET /inbox":                  s.inboxPage,
		"POST /inbox/{id}":            s.giveAnswer,
		"GET /failed":                 s.failedPage,
		"GET /schedules":              s.schedulesPage,
		"POST /schedules/{id}":        s.changeSchedule,
		"POST /sign-out":              s.signOut,
	} {
		s.mux.Handle(pattern, s.pageHandlerOf(show))
	}
	if s.Docs != nil {
		documents := http.StripPrefix("/docs", s.Docs)
		s.mux.Handle("GET /docs/", s.pageHandlerOf(func(w http.ResponseWriter, r *http.Request, _ *visit) error {
			documents.ServeHTTP(w, r)
			return nil
		}))
	}
	if s.Temporal != nil {
		s.temporal = s.visitHandler(checkOrigin, s.temporalUI)
		s.mux.Handle("GET "+localserver.UIPath, http.RedirectHandler(temporalPath, http.StatusFound))
	}
	if s.Access.Holder != nil {
		s.mux.HandleFunc("POST /sign-in", s.signIn)
	}
	if s.Library != nil {
		s.mux.Handle("GET /playbooks", s.pageHandlerOf(s.playbooksPage))
		s.mux.Handle("GET /playbooks/{name}", s.pageHandlerOf(s.playbookPage))
		s.mux.Handle("POST /playbooks/{name}", s.pageHandlerOf(s.startRun))
		s.mux.Handle("POST /playbooks/{name}/backfill", s.pageHandlerOf(s.runMissing))
	}
	s.mux.Handle("/", s.pageHandlerOf(func(http.ResponseWriter, *http.Request, *visit) error {
		return &pageError{http.StatusNotFound, "There is no such page."}
	}))
	return s
}

// newSender returns a dispatcher of commands to runs.
func (s *Server) newSender() *steer.Dispatcher {
	return &steer.Dispatcher{Client: s.Client, Namespace: s.Namespace, Runs: s.Runs}
}

const (
	// maxForm bounds the size of a form, in bytes: it is read into memory before the key of the browser is checked.
	maxForm = 64 << 10
	// pageTime bounds the time for one page.
	pageTime = 30 * time.Second
)

// Serve handles requests until ctx is done.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	stopped := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the web page: %w", err)
	}
	return nil
}

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	if r = r.WithContext(ctx); s.isTemporal(r) {
		s.temporal.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// pageError is shown instead of a page's content.
type pageError struct {
	status int
	text   string
}

func (e *pageError) Error() string { return e.text }

// visit is one request of a person.
type visit struct {
	person Person
	frame  frame
}

// pageHandler handles a request of a person who may see pages. Its error is shown as a page.
type pageHandler func(w http.ResponseWriter, r *http.Request, v *visit) error

// pageHandlerOf returns a handler that admits everybody who may see pages.
func (s *Server) pageHandlerOf(handle pageHandler) http.Handler {
	return s.visitHandler(s.checkChange, handle)
}

// visitHandler returns a handler that admits those who may see pages, if the request passes a check.
func (s *Server) visitHandler(check, handle pageHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurity(w.Header())
		v := &visit{}
		err := s.Access.checkHost(r)
		if err == nil && s.Access.enterByLink(w, r) {
			return
		}
		if err == nil {
			v.person, err = s.Access.personOf(r)
		}
		if err == nil {
			v.frame = frame{
				Person: v.person, Token: s.formToken(v.person), At: s.Now(), Books: s.Library != nil, Docs: s.Docs != nil,
				Temporal: s.Temporal != nil && v.person.Owner, Away: s.awayText(),
			}
			err = check(w, r, v)
		}
		if err == nil {
			err = s.watchAway(handle, w, r, v)
		}
		switch {
		case errors.Is(err, errSignIn):
			s.requireSignIn(w, v, "")
		case err != nil:
			s.showError(w, v, err)
		}
	})
}

// guardPanic converts a panic of a page to an error. Nothing has been written at that point.
func (s *Server) guardPanic(handle pageHandler, w http.ResponseWriter, r *http.Request, v *visit) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			s.Logger.Error("a page panicked", "path", r.URL.Path, "reason", reason, "stack", string(debug.Stack()))
			err = &pageError{http.StatusInternalServerError, fmt.Sprintf("The page has a defect: %v.", reason)}
		}
	}()
	return handle(w, r, v)
}

// checkChange refuses changes from other sites' pages, and by people who may only look.
func (s *Server) checkChange(w http.ResponseWriter, r *http.Request, v *visit) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		v.frame.Flash = s.popFlash(w, r, v)
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &pageError{http.StatusBadRequest, "The form cannot be read."}
	}
	switch {
	case http.NewCrossOriginProtection().Check(r) != nil, subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(s.formToken(v.person))) != 1:
		return &pageError{http.StatusForbidden, "The form did not come from a page of this server. Open the page again and repeat what you did."}
	case !v.person.Operator && r.URL.Path != "/sign-out":
		return s.changes.deny(v, r, &pageError{http.StatusForbidden, "You can see runs here, but not change them."})
	}
	return nil
}

// showError shows an error.
func (s *Server) showError(w http.ResponseWriter, v *visit, err error) {
	var shown *pageError
	if connect.IsUnavailable(err) {
		err = s.errAway()
	}
	if !errors.As(err, &shown) {
		shown = &pageError{http.StatusInternalServerError, terminal.Shorten(err.Error(), 500)}
		s.Logger.Error("cannot show a page", "error", err)
	}
	v.frame.Title, v.frame.Section, v.frame.Live = http.StatusText(shown.status), "", false
	s.writePage(w, v, shown.status, "problem", shown.text)
}

// writePage writes a page.
func (s *Server) writePage(w http.ResponseWriter, v *visit, status int, name string, content any) {
	v.frame.Content = content
	var page bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&page, "frame.html", v.frame); err != nil {
		s.Logger.Error("a page could not be written", "error", err)
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(terminal.EscapeInvisible(page.String())))
}
