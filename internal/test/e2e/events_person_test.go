package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/workflows/protocol"
)

// TestEventsOfWaitsForAPerson: what waits for a person is told while it waits, and
// who had it tried again or gave it up, and why.
func TestEventsOfWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, item := range waitingItems {
		t.Run(item.name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorking(t), newGauge(t)
			l := w.looker()
			api.set(true)
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    `+item.step+`
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 1, on_exhausted: pause}}]
`), map[string]any{"api": api.url})
			items := w.awaitWaiting(run)
			toldOf := func() (told []string) {
				for _, event := range l.events(run, runs.EventFilter{Step: "fetch"}) {
					if event.Event == runs.StepRetry || event.Event == runs.ActionStarted && event.By != "" {
						told = append(told, fmt.Sprintf("%s %d %s by %q", event.Event, event.Attempt, event.Reason, event.By))
						require.Zero(t, event.Delay+float64(event.Deliveries))
						require.Zero(t, event.NextRetryAt)
						require.Equal(t, event.Event == runs.StepRetry, event.Error != nil, "%+v", event)
					}
				}
				return told
			}
			require.Eventually(t, func() bool { return len(toldOf()) == items }, patience, tick, "each is told while it waits")
			w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{By: "ada@host", Reason: "it is back"})
			require.Eventually(t, func() bool { return api.began(time.Time{}) == 2*items }, patience, tick)
			require.Equal(t, items, w.awaitWaiting(run))
			if item.name == "a batch" {
				w.recordAs("person")
			}
			w.steers(run, protocol.SkipUpdate, protocol.CommandInput{Step: "fetch", By: "bob@host", Reason: "enough"})
			_, _ = w.outcome(run)
			var want []string
			for range items {
				want = append(want, `step_retry 1 person by ""`, `action_started 2 it is back by "ada@host"`, `step_retry 2 person by ""`)
			}
			require.ElementsMatch(t, want, toldOf())
			for _, event := range l.events(run, runs.EventFilter{Kinds: []string{runs.StepFailedTerminal, runs.IterationFailed}}) {
				if event.Event == runs.IterationFailed || item.name == "a step" {
					require.Contains(t, event.Error.Message, "(skipped by bob@host: enough)")
				}
			}
		})
	}
}

// TestAPollWaitsForAPerson: one that never became ready, in every kind of item. A call
// that is tried again polls, and one that is skipped fails as exhausted.
func TestAPollWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, item := range waitingItems {
		t.Run(item.name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorking(t), newGauge(t)
			l := w.looker()
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    `+item.step+`
    retry: [{when: "{{ error is not defined }}", then: {max_attempts: 1, on_exhausted: pause}}]
`), map[string]any{"api": api.url})
			items := w.awaitWaiting(run)
			require.Equal(t, items, api.began(time.Time{}))
			w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{By: "ada@host"})
			require.Eventually(t, func() bool { return api.began(time.Time{}) == 2*items }, patience, tick)
			require.Equal(t, items, w.awaitWaiting(run))
			w.steers(run, protocol.SkipUpdate, protocol.CommandInput{Step: "fetch", By: "bob@host", Reason: "enough"})
			result, _ := w.outcome(run)
			require.EqualValues(t, "failed", result.Status)
			waits, ended := 0, 0
			for _, event := range l.events(run, runs.EventFilter{Step: "fetch"}) {
				switch {
				case event.Event == runs.StepRetry:
					require.Equal(t, "person", event.Reason)
					require.Nil(t, event.Error)
					waits++
				case event.Event == runs.ActionError:
					require.Fail(t, "no attempt has failed", "%+v", event)
				case event.Event == runs.IterationFailed, event.Event == runs.StepFailedTerminal && item.name == "a step":
					require.EqualValues(t, "exhausted", event.Error.Kind)
					require.Contains(t, event.Error.Message, "(skipped by bob@host: enough)")
					ended++
				}
			}
			require.Equal(t, [2]int{2 * items, items}, [2]int{waits, ended})
		})
	}
}
