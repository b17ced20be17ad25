package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
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
	s.silences.noteAnswer("a", began, false)
	require.Equal(t, silentTime, patience("a", time.Second))
	require.Equal(t, glanceTime, patience("b", time.Second))
	s.silences.noteAnswer("a", began.Add(40*time.Second), false)
	require.Equal(t, silentTime, patience("a", 59*time.Second))
	require.Equal(t, glanceTime, patience("a", time.Minute), "it may only have been busy")
	s.silences.noteAnswer("a", began.Add(time.Minute), false)
	s.silences.noteAnswer("b", began.Add(time.Minute), true)
	require.Equal(t, silentTime, patience("a", 90*time.Second))
	s.silences.noteAnswer("a", began.Add(91*time.Second), true)
	require.Equal(t, glanceTime, patience("a", 92*time.Second))
	require.Empty(t, s.silences.since)
}
