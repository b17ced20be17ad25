package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
)

// TestHeartbeatsAreThoseOfTheStart: a run records the interval of the worker that begins it, and its children have it
// too. Five missed heartbeats are a lost worker.
func TestHeartbeatsAreThoseOfTheStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ interval, timeout time.Duration }{
		"default": {0, 10 * time.Second}, "the default by name": {heartbeat.Default, 10 * time.Second}, "rare": {30 * time.Second, 150 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.resources.Heartbeat = test.interval
			w.work()
			w.endsAs(w.start(book(`
  - {step: one, tool: python, code: "def main(): return 1", next: [{step: all}]}
  - step: all
    loop: {in: "{{ [1, 2] }}", iterator: n, batch: 1}
    tool: python
    code: "def main(): return 2"
`), nil), interpreter.Completed)
			scheduled := 0
			for _, history := range w.histories {
				for _, event := range history.History.GetEvents() {
					if activity := event.GetActivityTaskScheduledEventAttributes(); activity != nil {
						scheduled++
						require.Equal(t, test.timeout, activity.GetHeartbeatTimeout().AsDuration(), activity.GetActivityType().GetName())
					}
				}
			}
			require.GreaterOrEqual(t, scheduled, 3)
		})
	}
}
