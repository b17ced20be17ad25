package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows"
)

// TestSlotsInAnyOrder: a server that has much to do delivers signals in another order
// than they were sent in. A child that requests its slot again before the loop knows
// that it was released takes no slot from the others.
func TestSlotsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.patience = testenv.Within(time.Minute)
	w.keep("places")
	began, goOn := make(chan string, 2), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n := r.URL.Query().Get("n"); n == "1" || n == "2" {
			began <- n
			<-goOn
		}
		_, _ = fmt.Fprint(rw, `{}`)
	}))
	t.Cleanup(api.Close)
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..6 }}", element: n, mode: parallel, max_concurrency: 2, batch: 1}
`), map[string]any{"api": api.URL})
	<-began
	<-began
	loop := run.GetID() + "/fetch#1"
	width := func(slots int) {
		w.steers(run, workflows.SetUpdate, workflows.Command{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: slots}})
		require.Eventually(t, func() bool {
			var progress workflows.Progress
			return w.ask(loop, "", workflows.ProgressQuery, &progress) && progress.Control.Tuned("fetch").MaxConcurrency == slots
		}, patience, tick)
	}
	w.steers(run, workflows.PauseUpdate, workflows.Command{}) // nobody acquires the slots that become free
	width(4)
	for index := range 2 {
		for _, told := range []map[string]any{{"index": index, "now": true}, {"index": index, "waiting": 1}} {
			require.NoError(t, w.env.Client().SignalWorkflow(t.Context(), loop, "", "slot", told))
		}
	}
	width(2)
	release()
	w.steers(run, workflows.ResumeUpdate, workflows.Command{})
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, 6, step(t, result, "fetch").Loop.Stats.Success)
}
