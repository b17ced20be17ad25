package logins_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/test/testenv"
)

// canaryPrefix begins all tokens, so that they are found wherever they are.
const canaryPrefix = "Cn4ryT0ken-"

// endpoint is a token endpoint whose refresh tokens rotate, and the API that its access tokens are for.
type endpoint struct {
	*httptest.Server

	// grace is how long a refresh token may come again after it was exchanged; 0 revokes its login at once.
	grace time.Duration
	// life is that of access tokens. On a busy machine it is longer: a token that expires on the way is refused, and so may
	// be the next one, which ends an attempt.
	life time.Duration
	// at is called at the points of an exchange. It reports whether the request is dropped there.
	at func(point string) bool

	mu       sync.Mutex
	given    string               // the refresh token that is good
	used     map[string]time.Time // those that were exchanged
	access   map[string]time.Time // when each ends
	revoked  bool
	running  int // exchanges
	most     int // at once
	made     int // exchanges that gave tokens
	reused   int
	requests int            // of the API that had a good token
	asked    map[string]int // the same, by the element of the loop
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{given: token(), used: map[string]time.Time{}, access: map[string]time.Time{}, asked: map[string]int{}, life: testenv.Within(5 * time.Second), at: func(string) bool { return false }}
	mux := http.NewServeMux()
	mux.HandleFunc("/token", e.exchange)
	mux.HandleFunc("/api", e.serveAPI)
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

func token() string { return canaryPrefix + rand.Text() }

// exchange is the token endpoint.
func (e *endpoint) exchange(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	e.mu.Lock()
	e.running++
	e.most = max(e.most, e.running)
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.running--; e.mu.Unlock() }()
	if e.at("received") {
		panic(http.ErrAbortHandler)
	}
	answer, status := e.rotate(r.Form.Get("refresh_token"))
	_ = e.at("committed")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// rotate exchanges a refresh token.
func (e *endpoint) rotate(refresh string) (answer map[string]any, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, again := e.used[refresh]
	if again {
		e.reused++
		if time.Since(at) > e.grace {
			e.revoked = true
		}
	}
	if e.revoked || !again && refresh != e.given {
		return map[string]any{"error": "invalid_grant", "error_description": "the token " + refresh + " is not good"}, http.StatusBadRequest
	}
	if !again {
		e.used[refresh] = time.Now()
	}
	e.made++
	e.used[e.given] = time.Now()
	e.given = token()
	access := token()
	e.access[access] = time.Now().Add(e.life)
	return map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": e.life.Seconds(), "refresh_token": e.given, "scope": "orders items",
	}, http.StatusOK
}

// serveAPI is the API.
func (e *endpoint) serveAPI(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	access := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if until, known := e.access[access]; !known || time.Now().After(until) || e.revoked {
		http.Error(w, "who is "+access, http.StatusUnauthorized)
		return
	}
	e.requests++
	e.asked[r.URL.Query().Get("element")]++
	_, _ = fmt.Fprintf(w, `{"n": %d, "echo": %q}`, e.requests, access)
}

// endpointCounts are what an endpoint has seen.
type endpointCounts struct {
	made, most, reused, requests int
	revoked                      bool
}

func (e *endpoint) counts() endpointCounts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return endpointCounts{e.made, e.most, e.reused, e.requests, e.revoked}
}

// askedAgain returns the elements that were requested more than once with a good token.
func (e *endpoint) askedAgain() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	again := maps.Clone(e.asked)
	maps.DeleteFunc(again, func(_ string, times int) bool { return times == 1 })
	return again
}

// forgetAccess has the API refuse the access tokens that were given.
func (e *endpoint) forgetAccess() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.access)
}
