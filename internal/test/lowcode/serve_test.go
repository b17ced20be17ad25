package lowcode_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ServeHTTP gives a run the answers that were made for the reader. A request that the reader did not make is noted.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.logins[strings.TrimRight(r.URL.Path, "/")] {
		writeAnswer(w, answer{status: 200, body: map[string]any{"access_token": accessToken, "token_type": "bearer", "expires_in": 7200, "expires_at": a.now.Add(2 * time.Hour).Unix()}})
		return
	}
	body, _ := io.ReadAll(r.Body)
	asked := request{method: r.Method, url: a.address + r.URL.Path, query: r.URL.Query(), form: string(body)}
	if decoded := decode(body); decoded != nil && strings.Contains(r.Header.Get("Content-Type"), "json") {
		asked.body = decoded
	} else if form, err := url.ParseQuery(asked.form); err == nil && strings.Contains(r.Header.Get("Content-Type"), "form") {
		asked.form = form.Encode()
	}
	found := a.exchanges[a.key(asked)]
	if found == nil {
		a.note("the run asks for %s, which the manifest does not", a.key(asked))
		writeAnswer(w, answer{status: 418, body: map[string]any{"error": "this request is not what the manifest says"}})
		return
	}
	for _, name := range sortedKeys(anyMap(found.request.headers)) {
		if got, want := r.Header.Get(name), found.request.headers[name]; got != want && !slices.Contains([]string{"content-type", "accept", "user-agent", "host"}, name) {
			a.note("%s has the header %s: %q, the manifest says %q", a.key(asked), name, got, want)
		}
	}
	if len(found.faults) > 0 {
		status := found.faults[0]
		found.faults = found.faults[1:]
		headers := map[string]string{}
		if status == http.StatusTooManyRequests {
			headers["Retry-After"] = "1"
		}
		writeAnswer(w, answer{status: status, headers: headers, body: map[string]any{"error": "again"}})
		return
	}
	found.asked++
	writeAnswer(w, found.answer)
}

func anyMap(of map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range of {
		out[key] = value
	}
	return out
}

// note keeps what is not as it should be, once.
func (a *api) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.unexpected, text) {
		a.unexpected = append(a.unexpected, text)
	}
}

func writeAnswer(w http.ResponseWriter, of answer) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range of.headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(of.status)
	_ = json.NewEncoder(w).Encode(of.body)
}

// unasked are the requests of the reader that no run has made.
func (a *api) unasked() (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, one := range a.exchanges {
		if one.asked == 0 {
			out = append(out, "the manifest asks for "+key+", which the run does not")
		}
	}
	slices.Sort(out)
	return append(out, a.unexpected...)
}

// newAPI is an API without answers yet.
func newAPI(seed string) *api {
	return &api{seed: seed, now: time.Now().UTC(), exchanges: map[string]*exchange{}, tokens: map[string]bool{}, failed: map[int]bool{}, logins: map[string]bool{}}
}
