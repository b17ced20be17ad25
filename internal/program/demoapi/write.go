package demoapi

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"

	"reprise/interpreter/lists"
)

// maxBody bounds the request bodies that are read, in bytes: each is read into memory.
const maxBody = 1 << 20

// maxOthers bounds the differing bodies stored for a key: a client that repeats itself would fill the memory.
const maxOthers = 10

// Write is the stored result of POST /api/v1/writes.
type Write struct {
	ID       int    `json:"id"` // from 1, in order of arrival within the scenario
	Key      string `json:"key"`
	Body     any    `json:"body"`     // the JSON value, or the text if it is not JSON
	Attempts int    `json:"attempts"` // requests with this key, the first included
	// Others are later bodies with the same key that differ, at most ten.
	Others []any `json:"others,omitempty"`

	raw string
}

// Writes returns what a scenario has stored, in order of arrival.
func (s *Server) Writes(scenario string) []Write {
	scenario = cmp.Or(scenario, defaultScenario)
	state := s.scenarios.getScenario(scenario)
	state.mu.Lock()
	defer state.mu.Unlock()
	return lists.Map(state.order, func(key string) Write { return *state.writes[key] })
}

// createWrite stores the body once per Idempotency-Key. With fail_after=n, it stores the body but fails the first n
// requests, so that a client that retries without a key writes twice. With drop_every=n, it stores the body but
// closes the connection without a response for the first request of every nth key. A known key with another body is
// refused or, with other_body=keep, answered like a repeat: the first body is kept.
func (s *Server) createWrite(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	failAfter := p.intValue("fail_after", 0, 0, 1_000_000)
	dropEvery := p.intValue("drop_every", 0, 0, 1_000_000)
	if p.rejectBad(w) {
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		respondError(w, http.StatusBadRequest, "header Idempotency-Key is missing")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		respondError(w, http.StatusRequestEntityTooLarge, "read body: %v", err)
		return
	}
	stored, isNew, same := s.scenarioOf(r).storeWrite(key, body)
	switch {
	case !same && p.textValue("other_body") != "keep":
		respondError(w, http.StatusUnprocessableEntity, "key %q was used with another body", key)
	case dropEvery > 0 && isNew && stored.ID%dropEvery == 0:
		panic(http.ErrAbortHandler) // net/http closes the connection, quietly
	case stored.Attempts <= failAfter:
		respondError(w, http.StatusServiceUnavailable, "stored, but the response was lost, as requested")
	case isNew:
		respondJSON(w, http.StatusCreated, object{"id": stored.ID, "key": key, "stored": true})
	default:
		respondJSON(w, http.StatusOK, object{"id": stored.ID, "key": key, "stored": false})
	}
}

// storeWrite stores the body unless the key is known. It returns a copy of the stored write, whether this call stored
// it, and whether the stored body equals the given one.
func (s *scenario) storeWrite(key string, body []byte) (stored Write, isNew, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.writes[key]
	if !ok {
		found = &Write{ID: len(s.order) + 1, Key: key, Body: decodeBody(body), raw: string(body)}
		s.writes[key] = found
		s.order = append(s.order, key)
	}
	found.Attempts++
	same = found.raw == string(body)
	if !same && len(found.Others) < maxOthers {
		found.Others = append(found.Others, decodeBody(body))
	}
	return *found, !ok, same
}

// decodeBody returns the JSON value of body, or its text if it is not JSON.
func decodeBody(body []byte) any {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return string(body)
	}
	return value
}

func (s *Server) listWrites(w http.ResponseWriter, r *http.Request) {
	writes := s.Writes(scenarioKey(r))
	respondJSON(w, http.StatusOK, object{"data": writes, "total": len(writes)})
}
