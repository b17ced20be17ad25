package demoapi

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxScenarios bounds memory in a long-lived server. The oldest scenario is forgotten first.
const maxScenarios = 2_000

// defaultScenario is the key of requests without one.
const defaultScenario = "default"

// scenarioKey returns the request's scenario: header X-Scenario, or else the
// query parameter "scenario".
func scenarioKey(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Scenario"), r.URL.Query().Get("scenario"), defaultScenario)
}

// scenario is the state of one client-chosen key.
type scenario struct {
	mu       sync.Mutex
	counters map[string]int
	recent   map[string][]time.Time // accepted requests of the last second, by path
	writes   map[string]*Write
	order    []string // idempotency keys in order of arrival
	moving   map[string]*moving
	sold     *sales // nil before they are read
}

// countUp adds one to the named counter and returns the new value, from 1.
func (s *scenario) countUp(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters[name]++
	return s.counters[name]
}

// allowRequest admits at most limit requests per path within any one second. If it refuses, it returns how long until
// the next one would be admitted.
func (s *scenario) allowRequest(path string, limit int, now time.Time) (bool, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := slices.DeleteFunc(s.recent[path], func(at time.Time) bool { return now.Sub(at) >= time.Second })
	if len(recent) < limit {
		s.recent[path] = append(recent, now)
		return true, 0
	}
	s.recent[path] = recent
	return false, time.Second - now.Sub(recent[len(recent)-limit])
}

// scenarios holds the states of all keys, up to a limit.
type scenarios struct {
	mu    sync.Mutex
	limit int
	byKey map[string]*scenario
	order []string
}

// getScenario returns the state of a key, a new one if the key is unknown.
func (s *scenarios) getScenario(key string) *scenario {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byKey[key]; ok {
		return found
	}
	if len(s.order) >= s.limit {
		delete(s.byKey, s.order[0])
		s.order = s.order[1:]
	}
	created := &scenario{
		counters: map[string]int{},
		recent:   map[string][]time.Time{},
		writes:   map[string]*Write{},
		moving:   map[string]*moving{},
	}
	s.byKey[key] = created
	s.order = append(s.order, key)
	return created
}

// resetScenario forgets one key, or all of them if key is empty.
func (s *scenarios) resetScenario(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		s.byKey, s.order = map[string]*scenario{}, nil
		return
	}
	delete(s.byKey, key)
	s.order = slices.DeleteFunc(s.order, func(known string) bool { return known == key })
}

// scenarioOf returns the state of the request's scenario.
func (s *Server) scenarioOf(r *http.Request) *scenario {
	return s.scenarios.getScenario(scenarioKey(r))
}

// Reset forgets every counter and every stored write of one scenario, or of all
// scenarios when key is empty. The request log stays.
func (s *Server) Reset(key string) { s.scenarios.resetScenario(key) }
