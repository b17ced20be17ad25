package stats

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// TestStatsAreBounded passes mostSteps, mostWatermarks, mostSlow and mostMessage: what is beyond them is counted, and figures of
// further steps are those of one without a name.
func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	c := NewCollector(nil)
	c.BeginRun(runs.Found{Playbook: "orders"})
	for i := range mostSteps + 5 {
		c.figuresOf(fmt.Sprint("step ", i))
	}
	require.Len(t, c.steps, mostSteps+1)
	require.Same(t, c.figuresOf("another"), c.figuresOf("one more"))

	for i := range mostWatermarks + 3 {
		c.addWatermark(runs.Event{Step: "fetch", Incremental: &interpreter.StateRecord{State: fmt.Sprint("of ", i)}})
	}
	require.Len(t, c.stats.Watermarks, mostWatermarks)
	require.Equal(t, 3, c.stats.WatermarksLeft)

	var slowest []Slow
	for i := range mostSlow + 5 {
		slowest = addSlow(slowest, Slow{Seconds: float64(i)})
	}
	require.Len(t, slowest, mostSlow)
	require.InDelta(t, mostSlow+4, slowest[0].Seconds, 0)

	c.addFailure(runs.Event{Step: "fetch", Error: &interpreter.ErrorObject{Message: strings.Repeat("ä", mostMessage)}})
	require.Len(t, c.grouped[0].Message, mostMessage)
}
