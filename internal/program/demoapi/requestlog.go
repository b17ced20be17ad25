package demoapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one entry of the request log.
type Request struct {
	N        int               `json:"n"` // from 1, in order of arrival, over all scenarios
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Query    string            `json:"query"` // raw, without "?"
	Scenario string            `json:"scenario"`
	Status   int               `json:"status"`  // 0 while it runs, or when dropped without an answer
	AtMS     int64             `json:"at_ms"`   // arrival, milliseconds since the server was made
	DoneMS   int64             `json:"done_ms"` // end, -1 while it runs
	Headers  map[string]string `json:"headers"` // those named in loggedHeaders

	begun, ended int // places in the order of all beginnings and ends; ended is 0 while it runs
}

// loggedHeaders are kept in the log. Of Authorization, only the scheme is logged.
var loggedHeaders = []string{
	"Accept", "Authorization", "Content-Type", "Idempotency-Key", "Traceparent",
	"Traceparent", "User-Agent", "X-Request-Id", "X-Scenario",
}

// requestLog keeps the newest requests, up to a limit.
type requestLog struct {
	mu      sync.Mutex
	limit   int
	now     func() time.Time
	start   time.Time
	count   int
	edges   int // beginnings and ends so far
	entries []*Request
}

// beginRequest adds the request and returns the function that ends it.
func (l *requestLog) beginRequest(r *http.Request) func(status int) {
	entry := &Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Scenario: scenarioKey(r), DoneMS: -1, Headers: headersToLog(r.Header),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.edges++
	entry.N, entry.begun, entry.AtMS = l.count, l.edges, l.elapsedMillis()
	if len(l.entries) >= l.limit {
		l.entries = slices.Delete(l.entries, 0, len(l.entries)-l.limit+1)
	}
	l.entries = append(l.entries, entry)
	return func(status int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.edges++
		entry.Status, entry.ended, entry.DoneMS = status, l.edges, l.elapsedMillis()
	}
}

func (l *requestLog) elapsedMillis() int64 { return l.now().Sub(l.start).Milliseconds() }

// sinceStart returns the current time in milliseconds since the server was created.
func (l *requestLog) sinceStart() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.elapsedMillis()
}

func headersToLog(header http.Header) map[string]string {
	logged := map[string]string{}
	for _, name := range loggedHeaders {
		value := header.Get(name)
		if value == "" {
			continue
		}
		if name == "Authorization" {
			value, _, _ = strings.Cut(value, " ")
		}
		logged[name] = value
	}
	return logged
}

// listRequests returns copies of the entries of a scenario (all if empty) whose path
// starts with the prefix.
func (l *requestLog) listRequests(scenario, prefix string) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []Request{}
	for _, entry := range l.entries {
		if (scenario == "" || entry.Scenario == scenario) && strings.HasPrefix(entry.Path, prefix) {
			found = append(found, *entry)
		}
	}
	return found
}

// clearRequests removes the entries of a scenario, or all of them if it is empty.
func (l *requestLog) clearRequests(scenario string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(entry *Request) bool {
		return scenario == "" || entry.Scenario == scenario
	})
}

// Requests returns the logged requests of a scenario, or of all scenarios if it is empty, in order of arrival.
func (s *Server) Requests(scenario string) []Request { return s.log.listRequests(scenario, "") }

// CountRequests returns how many logged requests of a scenario (of all if it is empty) have a path that starts with
// the prefix.
func (s *Server) CountRequests(scenario, prefix string) int {
	return len(s.log.listRequests(scenario, prefix))
}

// MaxConcurrent returns the largest number of logged requests of a scenario (of all if it is empty) that were in
// progress at the same time. It uses the order of starts and ends instead of the clock, so it is exact for short
// requests.
func (s *Server) MaxConcurrent(scenario string) int {
	type edge struct{ place, delta int }
	var edges []edge
	for _, r := range s.Requests(scenario) {
		edges = append(edges, edge{r.begun, 1})
		if r.ended > 0 {
			edges = append(edges, edge{r.ended, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.place, b.place) })
	current, most := 0, 0
	for _, e := range edges {
		current += e.delta
		most = max(most, current)
	}
	return most
}
