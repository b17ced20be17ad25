package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
)

// refusing asks an API for one thing and then for many, under one rate limit; what it is
// refused comes in a 200.
const refusing = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: refusing}
policies:
  limited:
    - when: "{{ response.limited }}"
      then: {fail: slow down, class: rate_limited, type: LIMIT, retry_after: "{{ response.wait }}"}
    - when: "{{ error.class == 'rate_limited' }}"
      then: {max_attempts: 2, jitter: none}
workflow:
  - step: start
    next: [one, many]
  - step: one
    tool: http
    url: "{{ at }}/one"
    rate_limit: {requests: 20, key: refusing}
    retry: [{use: limited}]
  - step: many
    tool: http
    url: "{{ at }}/many"
    params: {n: "{{ n }}"}
    rate_limit: {requests: 20, key: refusing}
    loop: {collection: "{{ 1..16 }}", element: n, mode: parallel, max_concurrency: 16}
    retry: [{use: limited}]
output: {one: "{{ one.ok }}", many: "{{ many.stats.success }}"}
`

// TestRequestedWaitPausesOthers: a wait that a policy reads out of a failure pauses what shares the rate limit too.
func TestRequestedWaitPausesOthers(t *testing.T) {
	t.Parallel()
	book := strings.Replace(refusing, `    - when: "{{ response.limited }}"
      then: {fail: slow down, class: rate_limited, type: LIMIT, retry_after: "{{ response.wait }}"}
    - when: "{{ error.class == 'rate_limited' }}"
      then: {max_attempts: 2, jitter: none}
`, `    - when: "{{ error.status == 400 }}"
      then: {max_attempts: 2, jitter: none, retry_after: "{{ error.body.wait }}"}
`, 1)
	for _, first := range []string{"/one", "/many"} {
		t.Run(first[1:], func(t *testing.T) {
			t.Parallel()
			pausesOthers(t, book, first, http.StatusBadRequest, "http")
		})
	}
}

// TestRefusedAnswerPausesOthers: an answer that a policy makes a failure of class
// rate_limited pauses what shares the rate limit, whether a workflow has made its
// attempt or an activity that hosts calls.
func TestRefusedAnswerPausesOthers(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"/one", "/many"} {
		t.Run(first[1:], func(t *testing.T) {
			t.Parallel()
			pausesOthers(t, refusing, first, http.StatusOK, "response")
		})
	}
}

// pausesOthers runs a playbook whose API is closed for 3 s from the first request of a path: it answers with a status,
// of which policies make failures of a kind.
func pausesOthers(t *testing.T, book, first string, status int, kind string) {
	t.Helper()
	const closed = 3 * time.Second
	w := newWorking(t)
	var until time.Time
	refused := 0
	api := newVendor(t, func(v *vendor) {
		v.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			now := time.Now()
			if until.IsZero() && r.URL.Path == first {
				until = now.Add(closed)
			}
			if now.Before(until) {
				refused++
				v.reply(w, status, map[string]any{"limited": true, "wait": until.Sub(now).Seconds()})
				return
			}
			v.reply(w, http.StatusOK, map[string]any{"ok": true})
		})
	})
	run := w.start(book, map[string]any{"at": api.url})
	result := w.endsAs(run, "completed")
	require.Equal(t, map[string]any{"one": true, "many": 16}, result.Result.Data)
	require.LessOrEqual(t, refused, 4, "those that had left before the first was answered")
	reader := &runs.Reader{Client: w.env.Client(), Store: w.store, Namespace: w.env.Namespace}
	found, err := reader.Find(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	failed := 0
	_, err = reader.Events(t.Context(), found, runs.EventFilter{Attempts: true}, func(event runs.Event) error {
		if event.Event == runs.ActionError {
			failed++
			require.EqualValues(t, kind, event.Error.Kind)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, refused, failed, "attempts that failed")
}
