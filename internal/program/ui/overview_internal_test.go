package ui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
)

// TestSlowCounts: no page waits for a server that takes long to count. It shows counts that are not old, and else none.
func TestSlowCounts(t *testing.T) {
	t.Parallel()
	var counts endedCounts
	since, counted, slow := time.Unix(0, 0), 0, make(chan struct{})
	quick := func(context.Context, time.Time) (runs.EndedCounts, error) {
		counted++
		return runs.EndedCounts{Failed: counted}, nil
	}
	waits := func(ctx context.Context, since time.Time) (runs.EndedCounts, error) {
		<-slow
		return quick(ctx, since)
	}
	patient, impatient := testenv.Within(30*time.Second), time.Millisecond
	at := func(after time.Duration, count countFunc, wait time.Duration) (failed int, pending, asked bool) {
		counts.wait = wait
		got, asked, err := counts.countsOf(t.Context(), count, since, since.Add(after))
		require.NoError(t, err)
		return got.Failed, got.isPending, asked
	}
	for i, step := range []struct {
		after  time.Duration
		count  countFunc
		wait   time.Duration
		failed int
		asked  bool
	}{
		{0, quick, patient, 1, true},
		{countsLast - 1, quick, patient, 1, false},
		{countsLast, waits, impatient, 1, true},
		{countsLast + 1, waits, impatient, 1, false},
	} {
		failed, pending, asked := at(step.after, step.count, step.wait)
		require.Equal(t, step.failed, failed, "step %d", i)
		require.Equal(t, step.asked, asked, "step %d", i)
		require.False(t, pending, "step %d", i)
	}
	failed, pending, asked := at(countsLast+countsStale, waits, impatient)
	require.Zero(t, failed, "old counts are not shown")
	require.True(t, pending)
	require.False(t, asked, "the server still counts")
	counts.mu.Lock()
	running := counts.counting[since]
	counts.mu.Unlock()
	close(slow)
	testenv.Receive(t, running.done, "the end of the count")
	failed, pending, asked = at(countsLast+2, quick, patient)
	require.Equal(t, 2, failed)
	require.False(t, pending)
	require.False(t, asked)
	failed, _, asked = at(countsLast+countsStale, quick, patient)
	require.Equal(t, 3, failed)
	require.True(t, asked)
	_, _, err := counts.countsOf(t.Context(), func(context.Context, time.Time) (runs.EndedCounts, error) {
		return runs.EndedCounts{}, errors.New("away")
	}, since, since.Add(time.Hour))
	require.EqualError(t, err, "away")
}

// TestPendingCounts: a count that is not known is not shown as 0.
func TestPendingCounts(t *testing.T) {
	t.Parallel()
	o := &overview{Zone: "UTC", today: shownCounts{isPending: true}}
	o.setTiles(nil, nil)
	var page strings.Builder
	require.NoError(t, templates()["runs"].ExecuteTemplate(&page, "content", frame{Content: &runsView{overview: o}}))
	require.Equal(t, 2, strings.Count(page.String(), `aria-label="being counted"`), "failed and completed runs")
	require.Equal(t, 1, strings.Count(page.String(), "0 since yesterday"), "partial successes, which are known")
	page.Reset()
	o = &overview{Zone: "UTC", partialPending: true}
	o.setTiles(nil, nil)
	require.NoError(t, templates()["runs"].ExecuteTemplate(&page, "content", frame{Content: &runsView{overview: o}}))
	require.Equal(t, 2, strings.Count(page.String(), `aria-label="being counted"`), "partial successes, and completed runs without these")
	require.Equal(t, 1, strings.Count(page.String(), "0 since yesterday"), "failed runs")
	require.Contains(t, styleText, fmt.Sprintf("grid-template-columns: repeat(%d, 1fr)", len(o.Tiles)), "one row on a wide screen")
}

// TestLateAnswers: what a run does is shown with the next page, where its worker answers too late for one.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	known := newGlanceCache()
	now := time.Unix(1000, 0)
	status := &runs.Status{}
	known.storeStatus("run", status, now)
	require.Same(t, status, known.recentStatus("run", now.Add(glanceLasts-1)))
	require.Nil(t, known.recentStatus("run", now.Add(glanceLasts)))
	require.Nil(t, known.recentStatus("other", now))
	for i := range mostGlances {
		known.storeStatus(strconv.Itoa(i), status, now)
	}
	require.Nil(t, known.recentStatus("run", now), "the oldest ones are forgotten")
}

// TestEachRunIsQueried: where a page cannot query all open runs, it queries those that it has not queried for the longest time.
func TestEachRunIsQueried(t *testing.T) {
	t.Parallel()
	known := newGlanceCache()
	ids := []string{"a", "b", "c", "d"}
	for page, want := range []string{"abc", "dab", "cab"} {
		queried, rest := splitByAge(ids, 3, known.storedAt)
		require.Equal(t, want, strings.Join(queried, ""))
		require.Len(t, rest, 1)
		for _, id := range queried {
			known.storeStatus(id, &runs.Status{}, time.Unix(int64(page+1), 0))
		}
	}
	queried, rest := splitByAge(ids, 9, known.storedAt)
	require.Len(t, queried, 4)
	require.Empty(t, rest)
}
