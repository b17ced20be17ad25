package ui

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
)

// TestSlowCounts: a page waits for counts that it has not, and not for a server that takes long to count again.
func TestSlowCounts(t *testing.T) {
	t.Parallel()
	var counts endedCounts
	since, counted, slow := time.Unix(0, 0), 0, make(chan struct{})
	at := func(after time.Duration, count countFunc) (failed int, asked bool) {
		got, asked, err := counts.of(t.Context(), count, since, since.Add(after))
		require.NoError(t, err)
		return got.Failed, asked
	}
	quick := func(context.Context, time.Time) (runs.EndedCounts, error) {
		counted++
		return runs.EndedCounts{Failed: counted}, nil
	}
	waits := func(ctx context.Context, since time.Time) (runs.EndedCounts, error) {
		<-slow
		return quick(ctx, since)
	}
	for i, step := range []struct {
		after  time.Duration
		count  countFunc
		failed int
		asked  bool
	}{
		{0, quick, 1, true},
		{countsLast - 1, quick, 1, false},
		{countsLast, waits, 1, true},
		{countsLast + 1, waits, 1, false},
	} {
		failed, asked := at(step.after, step.count)
		require.Equal(t, step.failed, failed, "step %d", i)
		require.Equal(t, step.asked, asked, "step %d", i)
	}
	counts.mu.Lock()
	running := counts.counting[since]
	counts.mu.Unlock()
	close(slow)
	testenv.Receive(t, running, "the end of the count")
	failed, asked := at(countsLast+2, quick)
	require.Equal(t, 2, failed)
	require.False(t, asked)
	failed, asked = at(countsLast+countsKept, quick)
	require.Equal(t, 3, failed, "old counts are not shown")
	require.True(t, asked)
}
