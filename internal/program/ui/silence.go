package ui

import (
	"maps"
	"slices"
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

// silences remembers which workers did not respond: queries wait for a worker, and the server lists dead workers for minutes. Pages
// wait only briefly for these workers, and a response ends their silence. It is safe for concurrent use.
type silences struct {
	mu    sync.Mutex
	heard map[string]hearing // by runs.Found.WorkersKey
}

// hearing is what is known of the workers of some runs.
type hearing struct {
	silent   time.Time // since when they do not respond; zero if they do, or it is not known
	answered time.Time // when they last responded; zero for never
	checked  time.Time // when the server was last asked for their polls; zero for never
}

// isSilent reports whether the workers have recently not responded.
func (h hearing) isSilent(now time.Time) bool {
	return !h.silent.IsZero() && now.Sub(h.silent) < silentFor
}

// patientReader returns a reader that waits for the workers of a run as long as is worthwhile.
func (s *Server) patientReader(run runs.Found, now time.Time, patience time.Duration) *runs.Reader {
	reader := *s.Runs
	reader.Patience = patience
	if s.silences.hasSilence(run, now) {
		reader.Patience = silentTime
	}
	return &reader
}

// hasSilence reports whether the workers of a run have recently not responded.
func (s *silences) hasSilence(run runs.Found, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[run.WorkersKey()].isSilent(now)
}

// noteAnswer records whether the workers of a run responded. Their silence is not extended before a page has waited for the full
// time: they may only be busy.
func (s *silences) noteAnswer(run runs.Found, now time.Time, answered bool) {
	s.changeHearing(run, now, func(h *hearing) {
		switch {
		case answered:
			h.silent, h.answered = time.Time{}, now
		case h.silent.IsZero():
			h.silent = now
		}
	})
}

// recordSilence records that the workers of a run did not respond within the full time. Workers that have just responded to
// another query are busy, not silent.
func (s *silences) recordSilence(run runs.Found, now time.Time) {
	s.changeHearing(run, now, func(h *hearing) {
		if h.answered.IsZero() || now.Sub(h.answered) >= glanceLasts {
			h.silent = now
		}
	})
}

// changeHearing changes what is known of the workers of a run. It forgets what is no longer of use.
func (s *silences) changeHearing(run runs.Found, now time.Time, change func(*hearing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.heard, func(_ string, h hearing) bool {
		if !h.isSilent(now) {
			h.silent = time.Time{}
		}
		return h.silent.IsZero() && now.Sub(h.answered) >= silentFor && now.Sub(h.checked) >= silentFor
	})
	if s.heard == nil {
		s.heard = map[string]hearing{}
	}
	h := s.heard[run.WorkersKey()]
	if !h.isSilent(now) {
		h.silent = time.Time{}
	}
	change(&h)
	s.heard[run.WorkersKey()] = h
}

// nextUnheard returns the open run whose workers should be looked for next, at most every startTime: nothing was heard from them
// lately, and others were looked for more recently. found is false if there is none.
func (s *silences) nextUnheard(open []runs.Found, now time.Time) (next runs.Found, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last time.Time
	for _, run := range open {
		h := s.heard[run.WorkersKey()]
		isKnown := now.Sub(h.answered) < startTime || now.Sub(h.checked) < startTime || now.Sub(h.silent) < startTime
		if isKnown || now.Sub(run.StartedAt) <= startTime || found && !h.checked.Before(last) {
			continue
		}
		next, last, found = run, h.checked, true
	}
	return next, found
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

// storedAt returns when the page was loaded that got the last response of a run; zero if there is none.
func (c glanceCache) storedAt(runID string) time.Time {
	last, _ := c.known.Peek(runID)
	return last.at
}

// splitByAge splits off the runs that a page queries, at most some: those whose last responses are the oldest. So an open page shows
// what each of its runs does after a few refreshes.
func splitByAge[T any](all []T, most int, at func(T) time.Time) (queried, rest []T) {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y T) int { return at(x).Compare(at(y)) })
	most = min(most, len(sorted))
	return sorted[:most], sorted[most:]
}

// recentStatus returns the last response of a run; nil if it is too old or there is none.
func (c glanceCache) recentStatus(runID string, now time.Time) *runs.Status {
	last, found := c.known.Get(runID)
	if !found || now.Sub(last.at) >= glanceLasts {
		return nil
	}
	return last.status
}
