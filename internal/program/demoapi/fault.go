package demoapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fault is the failure that a client requested: the first `times` requests (0: all) for the listed pages get
// `status`.
type fault struct {
	pages      map[int]bool
	status     int
	times      int
	retryAfter string
}

// readFault reads the fail_* parameters or the X-Fail-* headers.
func readFault(p *params) fault {
	f := fault{
		status:     p.intOrHeader("fail_status", "X-Fail-Status", http.StatusServiceUnavailable, 400, 599),
		times:      p.intOrHeader("fail_times", "X-Fail-Times", 1, 0, 1_000_000),
		retryAfter: p.textOrHeader("fail_retry_after", "X-Fail-Retry-After"),
	}
	list := p.textOrHeader("fail_pages", "X-Fail-Pages")
	if list == "" {
		return f
	}
	f.pages = map[int]bool{}
	for text := range strings.SplitSeq(list, ",") {
		page := p.parseInt("fail_pages", strings.TrimSpace(text), 0, 1, math.MaxInt32)
		f.pages[page] = true
	}
	return f
}

// applyFaults applies the rate limit and the failure that the client requested. It returns true if it has answered
// the request. A list without pages has page 1.
func (s *Server) applyFaults(w http.ResponseWriter, p *params, page, defaultRate int) bool {
	rate := p.intOrHeader("rate_limit", "X-Rate-Limit", defaultRate, 1, 1_000_000)
	f := readFault(p)
	if p.rejectBad(w) {
		return true
	}
	return s.limitRate(w, p.r, rate) || s.failRequest(w, p.r, f, page)
}

// limitRate answers 429 with Retry-After if the scenario sends more than rate requests per second to this path. A
// rate of 0 is no limit.
func (s *Server) limitRate(w http.ResponseWriter, r *http.Request, rate int) bool {
	if rate == 0 {
		return false
	}
	allowed, wait := s.scenarioOf(r).allowRequest(r.URL.Path, rate, s.options.Now())
	if allowed {
		return false
	}
	// Retry-After is in whole seconds (RFC 9110, section 10.2.3), so round up.
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	respondError(w, http.StatusTooManyRequests, "more than %d requests per second", rate)
	return true
}

func (s *Server) failRequest(w http.ResponseWriter, r *http.Request, f fault, page int) bool {
	if !f.pages[page] {
		return false
	}
	nth := s.scenarioOf(r).countUp(fmt.Sprintf("fail %s page %d", r.URL.Path, page))
	if f.times > 0 && nth > f.times {
		return false
	}
	if f.retryAfter != "" {
		w.Header().Set("Retry-After", f.retryAfter)
	}
	respondError(w, f.status, "page %d fails, as requested (request %d)", page, nth)
	return true
}
