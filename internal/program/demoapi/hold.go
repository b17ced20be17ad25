package demoapi

import (
	"net/http"
	"slices"
	"sync"
)

// Barrier makes requests wait, so that something can happen while they are
// open. One whose client goes away is not answered.
type Barrier struct {
	server *Server
	match  func(*http.Request) bool
	done   bool // requests wait after they have been carried out, before they are answered

	mu      sync.Mutex
	waiting int
	gate    chan struct{} // closed when they may continue
	open    bool
}

// Hold lets logged requests that match wait until Release. The function is
// called for every request, by many goroutines.
func (s *Server) Hold(match func(*http.Request) bool) *Barrier {
	return s.addBarrier(&Barrier{match: match})
}

// HoldAnswer is Hold for requests that have been carried out and wait for their
// answer.
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

// HeldRequests is how many requests have been held.
func (h *Barrier) HeldRequests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// Release lets those continue that wait, and holds no more.
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

// waitForHolds returns once the request may continue, and false when its client went away
// before.
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

// releaseAll ends every hold.
func (s *Server) releaseAll() {
	s.mu.Lock()
	holds := slices.Clone(s.holds)
	s.mu.Unlock()
	for _, h := range holds {
		h.Release()
	}
}
