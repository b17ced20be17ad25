package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

const endlessRetry = `
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 10, delay: 1h}
`

func TestCancelDuringAWait(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("cancel_wait")
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/503"
    sink: {tool: http, url: "{{ api }}/api/v1/writes"}
`+endlessRetry), nil)
	waiting := w.await(run, "fetch", "retry_pending")
	require.Contains(t, waiting.Waiting, "fetch: attempt 2 of 10 after")
	require.Contains(t, waiting.Waiting, "HTTP 503")
	require.WithinDuration(t, time.Now().Add(time.Hour), waiting.NextRetryAt, 20*time.Minute)
	result := w.cancel(run)
	require.EqualValues(t, "cancelled", step(t, result, "fetch").Status)
	require.Equal(t, 1, w.api.CountRequests("", "/"), "no further request and no sink")
}

func TestCancelDuringAnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/slow?ms=60000"
    timeout: 90s
    next: after
  - step: after
    tool: http
    url: "{{ api }}/echo"
`), nil)
	w.awaitRequests("/slow", 1)
	result := w.cancel(run)
	require.EqualValues(t, "cancelled", step(t, result, "fetch").Status)
	require.EqualValues(t, "skipped", step(t, result, "after").Status)
	require.Equal(t, 1, w.api.CountRequests("", "/"))
}

// TestCancelWithALostWorker: the worker of what is under way is lost, and the run is cancelled before the server notices. The
// server does not dispatch a cancelled attempt to another worker, so nothing is known of it but the cancel.
func TestCancelWithALostWorker(t *testing.T) {
	t.Parallel()
	const loop = `
    loop: {collection: [0, 1, 2], mode: parallel, batch: BATCH}
`
	for name, fields := range map[string]string{
		"an attempt": "",
		"a sink":     "\n    sink: {tool: http, url: \"{{ api }}/slow?ms=60000\", timeout: 90s}\n",
		"iterations": strings.ReplaceAll(loop, "BATCH", "1"),
		"a batch":    strings.ReplaceAll(loop, "BATCH", "3"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			process := w.spawn()
			path, requests := "/slow?ms=60000", 1
			switch {
			case strings.Contains(fields, "sink"):
				path = "/echo"
			case strings.Contains(fields, "loop"):
				requests = 3
			}
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}`+path+`"
    timeout: 90s`+fields), nil)
			w.awaitRequests("/slow", requests)
			process.Kill()
			w.spawn()
			result := w.cancel(run)
			fetch := step(t, result, "fetch")
			require.EqualValues(t, "cancelled", fetch.Status)
			if fetch.Loop != nil {
				stats := fetch.Loop.Stats
				require.Equal(t, [4]int{3, 0, 0, 3}, [4]int{stats.Total, stats.Success, stats.Failed, stats.Cancelled})
			}
		})
	}
}

// TestCancelALoop: some iterations have ended, some wait for a retry without
// holding a place, some are in an attempt.
func TestCancelALoop(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("cancel_loop")
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ ['/echo', '/status/404', '/status/503', '/slow?ms=60000'][item] }}"
    timeout: 90s
    loop:
      collection: [0, 1, 2, 3, 2, 3, 0, 0, 0]
      mode: parallel
      max_concurrency: 4
    sink: {tool: http, url: "{{ api }}/api/v1/writes"}
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 10, delay: 1h}
`), nil)
	w.awaitRequests("/slow", 2)
	w.awaitRequests("/status/503", 2)
	w.awaitLoop(run, "fetch", 5)
	result := w.cancel(run)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, [4]int{9, 4, 1, 4}, [4]int{stats.Total, stats.Success, stats.Failed, stats.Cancelled})
	require.Equal(t, 9, w.api.CountRequests("", "/"), "no further request and no sink")
	children := 0
	for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
		events := history.History.GetEvents()
		if strings.Contains(history.WorkflowID, "/fetch#1/") &&
			events[len(events)-1].GetWorkflowExecutionCanceledEventAttributes() != nil {
			children++
		}
	}
	require.Equal(t, 4, children, "the children under way are cancelled, those that wait included")
}

// awaitLoop waits until a loop has n iterations that have ended.
func (w *world) awaitLoop(run interface{ GetID() string }, step string, n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		var progress protocol.Progress
		told := w.ask(run.GetID()+"/"+step+"#1", "", protocol.ProgressQuery, &progress)
		return told && progress.Stats.Success+progress.Stats.Failed >= n
	}, patience, tick, "loop %s did not get to %d iterations", step, n)
}

func TestCancelDuringASinkOfALoop(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop:
      collection: [0, 1, 2]
      sink:
        tool: http
        url: "{{ api }}{{ '/status/503' if item == 1 else '/api/v1/writes' }}"
        retry:
          - when: "{{ error is defined }}"
            then: {max_attempts: 10, delay: 1h}
`), nil)
	w.awaitRequests("/status/503", 1)
	result := w.cancel(run)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, [4]int{3, 1, 0, 2}, [4]int{stats.Total, stats.Success, stats.Failed, stats.Cancelled})
}

// TestTimeoutOfThePlaybook: what is under way is cancelled, and the run fails.
func TestTimeoutOfThePlaybook(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("timeout")
	began := time.Now()
	result := w.ends("failed", "timeout: 2s\n"+book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ '/slow?ms=300000' if item == 0 else '/status/503' }}"
    timeout: 20m
    loop: {collection: [0, 1, 2, 3], mode: parallel, max_concurrency: 2}
`+endlessRetry), nil)
	require.Less(t, time.Since(began), testenv.Within(20*time.Second))
	require.EqualValues(t, "timeout", result.Error.Kind)
	require.Contains(t, result.Error.Message, "timeout of 2s")
	record := step(t, result, "fetch")
	require.EqualValues(t, "cancelled", record.Status)
	require.Equal(t, 4, record.Loop.Stats.Cancelled)
}

func TestTimeoutOfAStep(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/slow?ms=60000"
    timeout: 0.2
    retry:
      - when: "{{ error.kind == 'timeout' }}"
        then: {max_attempts: 2, backoff: none}
`), nil)
	require.EqualValues(t, "timeout", result.Error.Kind)
	require.True(t, result.Error.Exhausted)
	require.Equal(t, 2, step(t, result, "fetch").Attempts) // a slow machine may end one before its request is sent
}
