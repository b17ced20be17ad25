package look

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
)

func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	at := func(seconds float64) time.Time {
		return samples.LocalBegan.Add(time.Duration(seconds * float64(time.Second)))
	}
	three, failure := 3, samples.FailureOf503()
	var out bytes.Buffer
	w := &eventWriter{out: &terminal.Screen{To: &out}, output: "table", width: 80}
	for _, event := range []runs.Event{
		{Event: runs.ExecutionStarted, At: at(0)},
		{Event: runs.ExecutionQueued, At: at(0.01), Concurrency: "acme"},
		{Event: runs.ExecutionAdmitted, At: at(0.09), Concurrency: "acme\x1b corp", Duration: 0.08},
		{Event: runs.StepStarted, At: at(0.1), Step: "fetch", Visit: 2},
		{Event: runs.IterationStarted, At: at(0.2), Step: "fetch", Visit: 2, Index: &three},
		{Event: runs.ActionStarted, At: at(0.3), Step: "fetch", Visit: 2, Index: &three, Attempt: 1, Page: 1},
		{Event: runs.ActionError, At: at(1.3), Step: "fetch", Visit: 2, Index: &three, Attempt: 1, Page: 1, Duration: 1, Error: failure},
		{Event: runs.StepRetry, At: at(1.4), Step: "fetch", Visit: 2, Index: &three, Attempt: 1, Delay: 2.5, Reason: "failure", Error: failure},
		{Event: runs.ActionStarted, At: at(4), Step: "fetch", Visit: 2, Index: &three, Attempt: 2, Page: 1, IsRetry: true},
		{Event: runs.ActionCompleted, At: at(5), Step: "fetch", Visit: 2, Index: &three, Attempt: 2, AttemptTo: 9, Page: 1, PageTo: 8, Duration: 1, Deliveries: 2},
		{Event: runs.SinkCompleted, At: at(5.5), Step: "fetch", Visit: 2, Index: &three, Sink: "fetch.loop.sink", Attempt: 1, Page: 1},
		{
			Event: runs.StepResult, At: at(6), Step: "fetch", Visit: 2, Status: interpreter.Partial, Duration: 5.9,
			Stats: &interpreter.LoopStats{Total: 10, Success: 8, Failed: 2},
		},
		{Event: runs.ExecutionFailed, At: at(86400), Status: interpreter.Failed, Error: failure},
	} {
		require.NoError(t, w.writeEvent(event))
	}
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, text.StringWidth(strings.TrimRight(line, "\n")), 80)
	}
	samples.Golden(t, "events/width_80", out.String())
}
