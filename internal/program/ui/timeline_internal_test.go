package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/interpreter"
)

// TestIterationsThatShareAChild: their ends are not reported before the child ends, so the timeline draws an iteration whose call has
// ended up to its last attempt, and draws none as open that may have ended.
func TestIterationsThatShareAChild(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	event := func(kind string, index int, seconds float64) runs.Event {
		return runs.Event{Event: kind, Step: "each", Visit: 1, Index: &index, At: began.Add(time.Duration(seconds * float64(time.Second))), IsShared: true}
	}
	draw := func(withAttempts bool) *lane {
		drawn := timelineOf(&runs.Status{Found: runs.Found{WorkflowID: "run", StartedAt: began}, At: began.Add(100 * time.Second)})
		drawn.withAttempts = withAttempts
		spans := stats.NewSpans(drawn.addSpan)
		for index := range 40 {
			spans.AddEvent(event(runs.IterationStarted, index, 0))
			if !withAttempts {
				continue
			}
			end := event(runs.ActionCompleted, index, 2)
			if end.Attempt, end.Duration, end.Ended = 1, 1, interpreter.Completed; index == 0 {
				end.Ended = ""
			} else if index == 2 {
				end.Ended = interpreter.Failed
			}
			spans.AddEvent(end)
		}
		spans.Close(drawn.To)
		return drawn.Lanes[0]
	}

	unknown := draw(false)
	require.Empty(t, unknown.Rows)
	require.Equal(t, 40, unknown.RowsLeft)

	known := draw(true)
	require.Len(t, known.Rows, shownIterations)
	require.Equal(t, 40-shownIterations, known.RowsLeft)
	for index, want := range []struct {
		status interpreter.Status
		text   string
	}{{interpreter.Running, "1m40s"}, {interpreter.Completed, "2s"}, {interpreter.Failed, "2s"}} {
		require.Equal(t, want.status, known.Rows[index].Status)
		require.Equal(t, want.text, known.Rows[index].Text)
	}
}
