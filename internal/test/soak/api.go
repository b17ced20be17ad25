package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// api is what the runs request. It counts the requests of each run and element.
type api struct {
	url    string
	server *http.Server
	began  time.Time

	mu       sync.Mutex
	asked    map[int]map[string][]time.Time // when each element of each run was requested
	entered  map[int]bool                   // runs that hold the concurrency key
	crowded  int                            // most runs that held it at once
	answered sync.WaitGroup                 // callbacks on their way
	refused  int                            // callbacks that no attempt waited for
}

// Sizes of what the runs read.
const (
	pagesOfRun     = 10
	rowsOfPage     = 10
	failuresOfRun  = 2 // before a request of a retried step succeeds
	changesPerPage = 50
	changeEvery    = 500 * time.Millisecond
)

func newAPI(ctx context.Context) (*api, error) {
	a := &api{began: time.Now().UTC().Truncate(time.Second), asked: map[int]map[string][]time.Time{}, entered: map[int]bool{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	a.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /item", a.serveItem)
	mux.HandleFunc("GET /page", a.servePage)
	mux.HandleFunc("GET /flaky", a.serveFlaky)
	mux.HandleFunc("GET /enter", a.serveEnter)
	mux.HandleFunc("GET /leave", a.serveLeave)
	mux.HandleFunc("GET /changes", a.serveChanges)
	mux.HandleFunc("POST /import", a.serveImport)
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

// note counts a request. It returns the run, and how often this element of it has been requested.
func (a *api) note(r *http.Request, element string) (run, times int) {
	run, _ = strconv.Atoi(r.FormValue("run"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked[run] == nil {
		a.asked[run] = map[string][]time.Time{}
	}
	a.asked[run][element] = append(a.asked[run][element], time.Now())
	return run, len(a.asked[run][element])
}

// mostEntered returns how many runs held the concurrency key at once.
func (a *api) mostEntered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.crowded
}

// requestsOf returns the requests of a run that has ended, and forgets them.
func (a *api) requestsOf(run int) map[string][]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.asked[run]
	delete(a.asked, run)
	return found
}

// delayResponse waits as long as a response takes, so that some attempts run whenever a worker is killed.
func delayResponse(r *http.Request, element int) {
	wait := time.Duration(50+element*37%250) * time.Millisecond
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
	}
}

func (a *api) serveItem(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.FormValue("n"))
	run, _ := a.note(r, strconv.Itoa(n))
	delayResponse(r, n)
	respond(w, http.StatusOK, map[string]any{"run": run, "n": n})
}

func (a *api) servePage(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(r.FormValue("page"))
	run, _ := a.note(r, strconv.Itoa(page))
	delayResponse(r, page)
	var rows []map[string]any
	for i := range rowsOfPage {
		rows = append(rows, map[string]any{"kind": "pages", "run": run, "n": (page-1)*rowsOfPage + i + 1})
	}
	respond(w, http.StatusOK, map[string]any{"rows": rows, "page": page, "more": page < pagesOfRun})
}

func (a *api) serveFlaky(w http.ResponseWriter, r *http.Request) {
	run, times := a.note(r, "1")
	delayResponse(r, run)
	if times <= failuresOfRun {
		respond(w, http.StatusServiceUnavailable, map[string]any{"error": "not yet"})
		return
	}
	respond(w, http.StatusOK, map[string]any{"run": run, "n": 1})
}

func (a *api) serveEnter(w http.ResponseWriter, r *http.Request) {
	run, _ := a.note(r, "enter")
	a.mu.Lock()
	a.entered[run] = true
	a.crowded = max(a.crowded, len(a.entered))
	a.mu.Unlock()
	delayResponse(r, run)
	respond(w, http.StatusOK, map[string]any{"run": run, "n": 1})
}

func (a *api) serveLeave(w http.ResponseWriter, r *http.Request) {
	run, _ := a.note(r, "leave")
	a.mu.Lock()
	delete(a.entered, run)
	a.mu.Unlock()
	respond(w, http.StatusOK, map[string]any{"run": run})
}

// serveChanges returns rows of a table that gets one every changeEvery, from a time on.
func (a *api) serveChanges(w http.ResponseWriter, r *http.Request) {
	since, err := time.Parse(time.RFC3339Nano, r.FormValue("since"))
	if err != nil {
		respond(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	first := max(0, int((since.Sub(a.began)+changeEvery-1)/changeEvery))
	if after := r.FormValue("after"); after != "" {
		last, _ := strconv.Atoi(after)
		first = last + 1
	}
	made := a.changes(time.Now())
	rows := []map[string]any{}
	for id := first; id < made && len(rows) < changesPerPage; id++ {
		rows = append(rows, map[string]any{"id": id, "at": a.began.Add(time.Duration(id) * changeEvery).Format(time.RFC3339Nano)})
	}
	last := first + len(rows) - 1
	respond(w, http.StatusOK, map[string]any{"rows": rows, "last": last, "more": last+1 < made && len(rows) > 0})
}

// changes returns how many rows the table has at a time.
func (a *api) changes(at time.Time) int { return max(0, int(at.Sub(a.began)/changeEvery)) }

// serveImport accepts an import, and answers its callback later.
func (a *api) serveImport(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Run  int    `json:"run"`
		Done string `json:"done"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		respond(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	r.Form = map[string][]string{"run": {strconv.Itoa(order.Run)}}
	a.note(r, "import")
	a.answered.Go(func() { a.answer(order.Done, time.Duration(1+order.Run%4)*time.Second) })
	respond(w, http.StatusAccepted, map[string]any{"run": order.Run})
}

// answer posts the result of an import until it is accepted or refused.
func (a *api) answer(url string, after time.Duration) {
	const tries = 60
	for range tries {
		time.Sleep(after)
		response, err := http.Post(url, "application/json", bytes.NewReader([]byte(`{"result": {"n": 1}}`))) //nolint:gosec,noctx // the address is that of our own serve
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests {
			if response.StatusCode >= http.StatusBadRequest {
				a.mu.Lock()
				a.refused++
				a.mu.Unlock()
			}
			return
		}
	}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
