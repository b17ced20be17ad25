package demoapi

import (
	"net/http"
	"slices"
	"sync"
)

// Barrier holds up requests, so that something can happen while they are open. A request whose client disconnects is
// not answered.
type Barrier struct {
	server *Server
	match  func(*http.Request) bool
	done   bool // requests wait after they have been carried out, before they are answered

	mu      sync.Mutex
	waiting int
	gate    chan struct{} // closed when they may continue
	open    bool
}

// HoldRequests holds up logged requests that match until Release. match is called for every request, concurrently.
func (s *Server) HoldRequests(match func(*http.Request) bool) *Barrier {
	return s.addBarrier(&Barrier{match: match})
}

// HoldAnswer is like HoldRequests, but carries out requests and holds up only their responses.
func (s *Server) HoldAnswer(match func(*http.Request) bool) *Barrier {
	return s.addBarrier(&Barrier{match: match, done: true})
}

func (s *Server) addBarrier(h *Barrier) *Barrier {
	h.server, h.gate = s, make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = append(s.holds, h)
	return h
}

// HeldRequests returns how many requests have been held up.
func (h *Barrier) HeldRequests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// Release lets held requests continue, and ends the barrier.
func (h *Barrier) Release() {
	h.server.mu.Lock()
	h.server.holds = slices.DeleteFunc(h.server.holds, func(other *Barrier) bool { return other == h })
	h.server.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		h.open = true
		close(h.gate)
	}
}

// waitForHolds returns true when the request may continue, and false if its client has disconnected.
func (s *Server) waitForHolds(r *http.Request, done bool) bool {
	s.mu.Lock()
	holds := slices.Clone(s.holds)
	s.mu.Unlock()
	return !slices.ContainsFunc(holds, func(h *Barrier) bool { return h.done == done && h.match(r) && !h.waitForRelease(r) })
}

func (h *Barrier) waitForRelease(r *http.Request) bool {
	h.mu.Lock()
	h.waiting++
	h.mu.Unlock()
	select {
	case <-h.gate:
		return true
	case <-r.Context().Done():
		return false
	}
}

// releaseAll releases every barrier.
func (s *Server) releaseAll() {
	s.mu.Lock()
	holds := slices.Clone(s.holds)
	s.mu.Unlock()
	for _, h := range holds {
		h.Release()
	}
}
