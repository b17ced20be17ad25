package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/internal/test/testenv"
)

// figures are those of a run as they are now.
func (l *looker) figures(run client.WorkflowRun) stats.Stats {
	l.w.t.Helper()
	collector := stats.NewCollector(nil)
	collector.BeginRun(runs.Found{})
	for _, event := range l.events(run, runs.EventFilter{Attempts: true}) {
		collector.AddEvent(event)
	}
	collector.EndRun(time.Now())
	return collector.Stats()
}

// TestWaitingForATurnIsNoWork: what attempts wait for their turn is a wait of its own, in
// loops of every kind and for pages, while the run continues and after its end.
func TestWaitingForATurnIsNoWork(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{
		"alone":   `loop: {collection: "{{ 1..12 }}", mode: parallel, batch: 1}`,
		"batches": `loop: {collection: "{{ 1..12 }}", mode: parallel, batch: 4}`,
		"pages":   `retry: [{when: "{{ _retry.page < 12 }}", then: {next_call: {params: {n: "{{ _retry.page }}"}}, collect: {path: status, optional: true}, allow_repeat: true}}]`,
		"failures": `loop: {collection: "{{ 1..12 }}", mode: parallel, batch: 1}
    params: {fail: 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			l := w.looker()
			path := "200"
			if name == "failures" {
				path = "404"
			}
			run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/%s"
    rate_limit: {requests: 2, per: 1s, key: "{{ api }}"}
    %s
`, path, step)), nil)
			var running stats.Stats
			require.Eventually(t, func() bool {
				running = l.figures(run)
				return running.LimitSeconds > 0.5
			}, testenv.Within(20*time.Second), 50*time.Millisecond)
			require.Less(t, running.AttemptsMade, 12, "the run has ended: %+v", running)
			require.Less(t, running.AttemptSeconds, running.LimitSeconds, "%+v", running)
			_, _ = w.outcome(run)
			ended := l.figures(run)
			require.Greater(t, ended.LimitSeconds, 2.0, "%+v", ended)
			require.Less(t, ended.AttemptSeconds, ended.LimitSeconds/2, "%+v", ended)
			require.Equal(t, "turn", ended.Waits[0].Reason)
			require.InDelta(t, ended.LimitSeconds, ended.WaitSeconds, 0.01)
		})
	}
}

// TestTurnsOfLargeResults: the wait for a turn is known whatever size the result has, and
// where it went to the payload store.
func TestTurnsOfLargeResults(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) *world{
		"history": newWorking,
		"store":   func(t *testing.T) *world { return newStoring(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t)
			l, steps := w.looker(), "\n  - {step: begin, next: [a, b, c]}"
			for _, step := range []string{"a", "b", "c"} {
				steps += fmt.Sprintf("\n  - {step: %s, tool: http, url: \"{{ api }}/body?bytes=300000\", rate_limit: {requests: 1, per: 1s, key: \"{{ api }}\"}}", step)
			}
			run := w.start(book(steps+"\noutput: ok\n"), nil)
			_, err := w.outcome(run)
			require.NoError(t, err)
			figures := l.figures(run)
			require.Greater(t, figures.LimitSeconds, 2.0, "%+v", figures)
		})
	}
}
