package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is what the API says to one attempt. Attempts are numbered over the
// whole call, so what an item answers is a list, and the same attempt gets the
// same answer however often it is made.
type answer struct {
	Status     int           // 200, or a failure
	RetryAfter time.Duration // told with a failure, 0 for nothing
	Pending    bool          // a poll that is not done
	Slow       bool          // of one after which there is a wait
	Page       int           // of a success
	More       bool          // another page follows
	Bytes      int           // ballast, for histories that get long
}

// call is one request that came.
type call struct {
	item, attempt     int
	arrived, answered time.Time // answered is zero for one whose client went away
}

// api answers as the scripts of its items say. Requests can be held, so that
// something happens while they are under way.
type api struct {
	scripts [][]answer
	url     string

	mu      sync.Mutex
	calls   []*call
	keys    map[string]string // what an operation key stood for when it first came
	trouble []string          // requests that no run may make
	from    int               // requests from this one on are held, 0 for none
	held    int
	gate    chan struct{} // closed when they may go on
}

func newAPI(t *testing.T, scripts [][]answer) *api {
	t.Helper()
	a := &api{scripts: scripts, keys: map[string]string{}, gate: make(chan struct{})}
	server := httptest.NewServer(a)
	a.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		a.release()
		server.Close()
	})
	return a
}

// attemptHeader carries attempt_key: the operation key and the attempt's number.
const attemptHeader = "X-Attempt"

// ServeHTTP answers /items/N?page=P.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation, number, _ := strings.Cut(r.Header.Get(attemptHeader), ":")
	item, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/items/"))
	attempt, _ := strconv.Atoi(number)
	if item < 0 || item >= len(a.scripts) || attempt < 1 || attempt > len(a.scripts[item]) {
		a.complain("%s, attempt %q: no such attempt is due", r.URL, r.Header.Get(attemptHeader))
		http.Error(w, "no such attempt", http.StatusTeapot)
		return
	}
	said := a.scripts[item][attempt-1]
	a.checkKey(operation, fmt.Sprintf("request %d of item %d", requestOf(a.scripts[item], attempt), item))
	if page := r.URL.Query().Get("page"); page != strconv.Itoa(pageOf(a.scripts[item], attempt)) {
		a.complain("item %d, attempt %d asks for page %s", item, attempt, page)
	}
	came, gate := a.begin(item, attempt)
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	a.mu.Lock()
	came.answered = time.Now()
	a.mu.Unlock()
	if said.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(said.RetryAfter.Seconds())))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(said.Status)
	_ = json.NewEncoder(w).Encode(body(item, said))
}

func body(item int, said answer) map[string]any {
	switch {
	case said.Status != http.StatusOK:
		return map[string]any{"error": http.StatusText(said.Status)}
	case said.Pending:
		return map[string]any{"state": "pending", "slow": said.Slow, "ballast": strings.Repeat("x", said.Bytes)}
	}
	return map[string]any{"state": "done", "page": said.Page, "more": said.More, "rows": pageRows(item, said.Page)}
}

// requestOf numbers the request that an attempt belongs to: attempts after a
// failure repeat it, one after a success is another.
func requestOf(script []answer, attempt int) int {
	request := 1
	for _, said := range script[:attempt-1] {
		if said.Status == http.StatusOK {
			request++
		}
	}
	return request
}

// pageOf is the page that an attempt asks for: one more than those that came.
func pageOf(script []answer, attempt int) int {
	page := 1
	for _, said := range script[:attempt-1] {
		if said.Status == http.StatusOK && !said.Pending {
			page++
		}
	}
	return page
}

func (a *api) complain(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trouble = append(a.trouble, fmt.Sprintf(format, args...))
}

// checkKey: an operation key stands for one request, and a request has one key.
func (a *api) checkKey(key, request string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pair := range [][2]string{{key, request}, {request, key}} {
		if known, found := a.keys[pair[0]]; found && known != pair[1] {
			a.trouble = append(a.trouble, fmt.Sprintf("%s: it was %s before, now %s", pair[0], known, pair[1]))
		}
		a.keys[pair[0]] = pair[1]
	}
}

// begin notes a request and gives the gate at which it waits, nil for none.
func (a *api) begin(item, attempt int) (*call, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	came := &call{item: item, attempt: attempt, arrived: time.Now()}
	a.calls = append(a.calls, came)
	if a.from == 0 || len(a.calls) < a.from {
		return came, nil
	}
	a.held++
	return came, a.gate
}

// hold lets requests wait from the nth on, the first being 1.
func (a *api) hold(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from, a.held, a.gate = n, 0, make(chan struct{})
}

// release lets those go on that wait, and holds no more.
func (a *api) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.from > 0 {
		a.from = 0
		close(a.gate)
	}
}

// waiting is how many requests have been held.
func (a *api) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// log is what came so far, in order of arrival.
func (a *api) log() []call {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := make([]call, len(a.calls))
	for i, came := range a.calls {
		calls[i] = *came
	}
	return calls
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls)
}

// complaints are the requests that no run may make.
func (a *api) complaints() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trouble
}
