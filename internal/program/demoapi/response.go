package demoapi

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"reprise/internal/base/sleep"
)

// maxSlow bounds how long /slow waits: a connection that is open for hours keeps the server from stopping.
const maxSlow = 5 * time.Minute

// answerStatus answers any method with the status in the path.
func (s *Server) answerStatus(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil || code < 200 || code > 599 {
		respondError(w, http.StatusBadRequest, "status %q, expected a number from 200 to 599", r.PathValue("code"))
		return
	}
	p := &params{r: r}
	in := p.intValue("retry_after_date", -1, -3600, 3600)
	if p.rejectBad(w) {
		return
	}
	if text := r.URL.Query().Get("retry_after"); text != "" {
		w.Header().Set("Retry-After", text)
	} else if r.URL.Query().Has("retry_after_date") {
		at := s.options.Now().Add(time.Duration(in) * time.Second)
		w.Header().Set("Retry-After", at.UTC().Format(http.TimeFormat))
	}
	if code >= 400 {
		respondError(w, code, "status %d, as requested", code)
		return
	}
	respondJSON(w, code, object{"status": code})
}

// answerFlaky fails the first `times` requests per scenario and key, then answers 200.
func (s *Server) answerFlaky(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	times, status := p.intValue("times", 2, 0, 1_000_000), p.intValue("status", 503, 400, 599)
	if p.rejectBad(w) {
		return
	}
	nth := s.scenarioOf(r).countUp("flaky " + r.URL.Query().Get("key"))
	if nth > times {
		respondJSON(w, http.StatusOK, object{"ok": true, "attempts": nth})
		return
	}
	if after := r.URL.Query().Get("retry_after"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	respondError(w, status, "request %d of %d that fail, as requested", nth, times)
}

// answerSlow answers after ms milliseconds, 1,000 by default, or not at all if the
// client gives up first.
func (s *Server) answerSlow(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	ms := p.intValue("ms", 1000, 0, int(maxSlow/time.Millisecond))
	if p.rejectBad(w) || sleep.For(r.Context(), time.Duration(ms)*time.Millisecond) != nil {
		return
	}
	respondJSON(w, http.StatusOK, object{"slept_ms": ms})
}

// echoRequest answers with the request. A repeated header is joined by ", ".
func (s *Server) echoRequest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		respondError(w, http.StatusRequestEntityTooLarge, "read body: %v", err)
		return
	}
	headers := map[string]string{"Host": r.Host}
	for name, values := range r.Header {
		headers[name] = strings.Join(values, ", ")
	}
	answer := object{
		"method": r.Method, "path": r.URL.Path, "query": r.URL.Query(),
		"headers": headers, "body": string(body), "json": nil, "form": nil,
	}
	switch mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); mediaType {
	case "application/x-www-form-urlencoded":
		if form, err := url.ParseQuery(string(body)); err == nil {
			answer["form"] = form
		}
	default:
		var value any
		if json.Unmarshal(body, &value) == nil {
			answer["json"] = value
		}
	}
	respondJSON(w, http.StatusOK, answer)
}

// redirectTo points to the URL or path in "to", which may be on another host.
func (s *Server) redirectTo(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	status := p.intValue("status", http.StatusFound, 300, 399)
	to := r.URL.Query().Get("to")
	if p.rejectBad(w) {
		return
	}
	to = cmp.Or(to, "/echo")
	w.Header().Set("Location", to)
	respondJSON(w, status, object{"location": to})
}
