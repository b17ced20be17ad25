package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// TestSilences: a queue without answers is waited for a moment, until it answers or a minute is over.
func TestSilences(t *testing.T) {
	t.Parallel()
	s := &Server{Options: Options{Runs: &runs.Reader{}}}
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	patience := func(queue string, after time.Duration) time.Duration {
		return s.patientReader(runs.Found{TaskQueue: queue}, began.Add(after), glanceTime).Patience
	}
	require.Equal(t, glanceTime, patience("a", 0))
	s.silences.noteAnswer(runs.Found{TaskQueue: "a"}, began, false)
	require.Equal(t, silentTime, patience("a", time.Second))
	require.Equal(t, glanceTime, patience("b", time.Second))
	s.silences.noteAnswer(runs.Found{TaskQueue: "a"}, began.Add(40*time.Second), false)
	require.Equal(t, silentTime, patience("a", 59*time.Second))
	require.Equal(t, glanceTime, patience("a", time.Minute), "it may only have been busy")
	s.silences.noteAnswer(runs.Found{TaskQueue: "a"}, began.Add(time.Minute), false)
	s.silences.noteAnswer(runs.Found{TaskQueue: "b"}, began.Add(time.Minute), true)
	require.Equal(t, silentTime, patience("a", 90*time.Second))
	s.silences.noteAnswer(runs.Found{TaskQueue: "a"}, began.Add(91*time.Second), true)
	require.Equal(t, glanceTime, patience("a", 92*time.Second))
	s.silences.noteAnswer(runs.Found{TaskQueue: "c"}, began.Add(3*time.Minute), true)
	require.Len(t, s.silences.heard, 1, "what is no longer of use is forgotten")
}

// TestWorkersAreLookedFor: each page looks for the workers of one group of open runs, of which nothing was heard lately; a busy worker
// that has answered just now is not silent, and a pinned run has workers of its own.
func TestWorkersAreLookedFor(t *testing.T) {
	t.Parallel()
	var known silences
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	run := func(queue string, since time.Duration, build *runs.Build) runs.Found {
		return runs.Found{TaskQueue: queue, StartedAt: now.Add(-since), Build: build}
	}
	a, b, young, pinned := run("a", time.Hour, nil), run("b", time.Hour, nil), run("young", time.Second, nil), run("a", time.Hour, &runs.Build{ID: "1", Pinned: true})
	open := []runs.Found{young, a, run("a", time.Minute, nil), b, pinned}
	for i, want := range []string{a.WorkersKey(), b.WorkersKey(), pinned.WorkersKey(), ""} {
		next, found := known.nextUnheard(open, now)
		require.Equal(t, want != "", found, i)
		if found {
			require.Equal(t, want, next.WorkersKey(), i)
			known.changeHearing(next, now, func(h *hearing) { h.checked = now.Add(time.Duration(i)) })
		}
	}
	known.noteAnswer(a, now.Add(startTime), true)
	next, _ := known.nextUnheard([]runs.Found{a, b}, now.Add(startTime+2))
	require.Equal(t, b.WorkersKey(), next.WorkersKey())
	known.recordSilence(a, now.Add(startTime+1))
	require.False(t, known.hasSilence(a, now.Add(startTime+1)))
	known.recordSilence(pinned, now.Add(startTime+1))
	require.True(t, known.hasSilence(pinned, now.Add(startTime+1)))
}

// TestTilesAddUp: each open run is counted by one tile, besides that of late ones, and the filter of a tile lists what it counts.
func TestTilesAddUp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	open := []runs.Found{
		{WorkflowID: "a", TaskQueue: "dead", Status: interpreter.Running},
		{WorkflowID: "b", TaskQueue: "dead", Status: interpreter.RetryPending, NextRetryAt: now},
		{WorkflowID: "c", Status: interpreter.Running, StartedAt: now.Add(-time.Hour), Expect: time.Minute},
		{WorkflowID: "d", Status: interpreter.Awaiting},
		{WorkflowID: "e", Status: interpreter.Queued},
		{WorkflowID: "f", Status: interpreter.RetryPending, NextRetryAt: now},
		{WorkflowID: "g", TaskQueue: "dead", Status: interpreter.Paused},
		{WorkflowID: "h", Status: interpreter.RetryPending},
	}
	s, o := &Server{}, &overview{open: open}
	s.silences.recordSilence(open[0], now)
	want := map[string]int{nowNoWorker: 3, nowPerson: 2, runs.DoingWait: 2, runs.DoingWork: 1, nowLate: 1}
	require.Equal(t, want, s.silences.countKinds(o, now))
	listed := 0
	for kind, n := range want {
		of := s.silences.openOfKind(o, kind, now)
		require.Len(t, of, n, kind)
		if kind != nowLate {
			listed += len(of)
		}
	}
	require.Equal(t, len(open), listed)
	require.Equal(t, []stoppedQueue{{Name: "dead", Command: render.StartWorker("dead", ""), Runs: 3}}, s.silences.stoppedQueues(open, now))

	o.counted = map[string]int{nowPerson: 100, runs.DoingWait: 200, runs.DoingWork: 300} // what the server counts, those without a worker too
	require.Equal(t, map[string]int{nowNoWorker: 3, nowPerson: 99, runs.DoingWait: 199, runs.DoingWork: 299, nowLate: 1}, s.silences.countKinds(o, now))

	many := make([]runs.Found, 2*runsPerPage+1)
	page := pageOfKind(many, runsPerPage)
	require.Len(t, page.Runs, runsPerPage)
	require.Equal(t, offsetToken+"50", string(page.Next))
	last := pageOfKind(many, 2*runsPerPage)
	require.Len(t, last.Runs, 1)
	require.Nil(t, last.Next)
	require.Empty(t, pageOfKind(many, 1000).Runs)
}
