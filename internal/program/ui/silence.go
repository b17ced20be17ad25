package ui

import (
	"maps"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"reprise/internal/observe/runs"
)

const (
	// silentFor is how long a task queue counts as silent after its workers did not respond.
	silentFor = time.Minute
	// silentTime is how long a page waits for the workers of a silent queue.
	silentTime = 150 * time.Millisecond
)

// silences remembers task queues whose workers did not respond: queries wait for a worker, and the server lists dead
// workers for minutes. Pages wait only briefly for these queues, and a response ends their silence. It is safe for
// concurrent use.
type silences struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// patientReader returns a reader that waits for the workers of a run as long as is worthwhile.
func (s *Server) patientReader(run runs.Found, now time.Time, patience time.Duration) *runs.Reader {
	reader := *s.Runs
	reader.Patience = patience
	if s.silences.hasSilence(run.TaskQueue, now) {
		reader.Patience = silentTime
	}
	return &reader
}

// hasSilence reports whether the workers of a queue have recently not responded.
func (s *silences) hasSilence(queue string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, silent := s.since[queue]
	return silent && now.Sub(since) < silentFor
}

// noteAnswer records whether the workers of a queue responded. The silence of a queue is not extended before a page
// has waited for the full time: its workers may only be busy.
func (s *silences) noteAnswer(queue string, now time.Time, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.since, func(_ string, since time.Time) bool { return now.Sub(since) >= silentFor })
	if answered {
		delete(s.since, queue)
		return
	}
	if s.since == nil {
		s.since = map[string]time.Time{}
	}
	if _, silent := s.since[queue]; !silent {
		s.since[queue] = now
	}
}

// recordSilence records that the workers of a queue did not respond within the full time.
func (s *silences) recordSilence(queue string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[string]time.Time{}
	}
	s.since[queue] = now
}

const (
	// glanceLasts is how long a response that was too late for its page is shown by later pages: an open page
	// refreshes every few seconds.
	glanceLasts = 10 * time.Second
	// mostGlances bounds the cached responses: the server lives as long as its worker.
	mostGlances = 500
)

// glanceCache caches what open runs did recently, by run ID: a worker may need longer to respond than a page waits.
// It is safe for concurrent use.
type glanceCache struct {
	known *lru.Cache[string, lastGlance]
}

type lastGlance struct {
	status *runs.Status
	at     time.Time
}

func newGlanceCache() glanceCache {
	known, err := lru.New[string, lastGlance](mostGlances)
	if err != nil {
		panic(err) // for a size below 1 alone
	}
	return glanceCache{known}
}

// storeStatus caches the response to a page that was loaded at a time.
func (c glanceCache) storeStatus(runID string, status *runs.Status, at time.Time) {
	c.known.Add(runID, lastGlance{status, at})
}

// recentStatus returns the last response of a run; nil if it is too old or there is none.
func (c glanceCache) recentStatus(runID string, now time.Time) *runs.Status {
	last, found := c.known.Get(runID)
	if !found || now.Sub(last.at) >= glanceLasts {
		return nil
	}
	return last.status
}
