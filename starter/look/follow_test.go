package look

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// TestFollowSaysWhatALoopWaitsFor: what only people end is no retry.
func TestFollowSaysWhatALoopWaitsFor(t *testing.T) {
	t.Parallel()
	with := func(status interpreter.Status) protocol.StepRecord {
		return protocol.StepRecord{CallStatus: interpreter.CallStatus{Status: status}}
	}
	running, paused := with(interpreter.Running), with(interpreter.Paused)
	for want, given := range map[string]struct {
		record   protocol.StepRecord
		progress protocol.Progress
	}{
		"awaiting an answer": {running, protocol.Progress{Awaits: true, Waiting: 2}},
		"waiting":            {paused, protocol.Progress{Waiting: 2}},
		"need a person":      {running, protocol.Progress{Waiting: 2}},
		"needs a person":     {running, protocol.Progress{Waiting: 1}},
		"waiting to retry":   {running, protocol.Progress{Waiting: 2, NextRetryAt: samples.LocalBegan}},
	} {
		require.Equal(t, want, loopWaitsFor(given.progress.Waiting, given.record, given.progress))
	}
}

// TestFollowAwaits: who follows a run is told when it begins to wait, with the command
// that answers, and of progress once a second at most.
func TestFollowAwaits(t *testing.T) {
	t.Parallel()
	now := samples.LocalBegan.Add(time.Hour)
	webhook, approval := samples.AwaitedSamples(now)
	o := newObserver(&session.Session{}, followed("imports-7x2k"))
	var out bytes.Buffer
	shown := newPlainProgress(&terminal.Screen{To: &out}, func() time.Time { return now })
	show := func(step string, awaits *interpreter.AwaitedDetails) {
		record := protocol.StepRecord{Step: step, Visit: 1, CallStatus: interpreter.CallStatus{
			Status: interpreter.Running, Attempts: 2, Awaits: awaits, Waiting: "awaits an answer",
		}}
		shown.showLines(o.visitLines(t.Context(), record))
	}
	fresh := *webhook
	fresh.Reported = time.Time{}
	show("import", &fresh)
	show("ask", approval)
	for done := range int64(30) { // three seconds
		now = now.Add(100 * time.Millisecond)
		told := *webhook
		told.Done = 10 * done
		show("import", &told)
	}
	said := strings.ReplaceAll(out.String(), terminal.ProgramName()+" ", "starter ")
	require.Contains(t, said, "  import awaits an answer\n  to answer: starter complete imports-7x2k import\n"+
		"  ask awaits an answer: Load 1200 rows?\n  to answer: starter approve imports-7x2k ask --option 'yes, load' --set rows=INTEGER\n")
	require.Contains(t, said, " of 1200, reading rows")
	require.Equal(t, 3, strings.Count(said, " of 1200, "))
	require.Equal(t, 1, strings.Count(said, "starter complete"))
}

// followed is a run of which only the ID is known.
type followed string

func (f followed) GetID() string { return string(f) }

func (followed) GetRunID() string { return "" }

func (followed) GetFirstExecutionRunID() string { return "" }

func (followed) Get(context.Context, any) error { return nil }

func (followed) GetWithOptions(context.Context, any, client.WorkflowRunGetOptions) error { return nil }

// looks is how many looks following takes in a time.
func looks(pace Pace, length time.Duration) (n int) {
	for at := pace.First; at < length; at += pace.Pause(at, 0) {
		n++
	}
	return n
}

// TestPollsGetRarer: what a run of 20 s costs without looks is 14 actions (3 for the run, 1 for the attempt, 10
// heartbeats); with those of a log it is 16.
func TestPollsGetRarer(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][4]int{ // in 20 s with a terminal and without, in 10 minutes likewise
		"127.0.0.1:7233": {14, 14, 55, 55}, "localhost:7233": {14, 14, 55, 55},
		"temporal.example.com:7233": {16, 2, 306, 60}, "10.0.0.1:7233": {16, 2, 306, 60},
	} {
		s := &session.Session{Address: address}
		watched, logged := PaceOf(s, true), PaceOf(s, false)
		require.Equal(t, want, [4]int{
			looks(watched, 20*time.Second), looks(logged, 20*time.Second), looks(watched, 10*time.Minute), looks(logged, 10*time.Minute),
		}, address)
		require.GreaterOrEqual(t, watched.Pause(time.Second, 20*time.Second), 80*time.Second, "looks are not most of the load")
	}
	require.Equal(t, localPace.Longest, localPace.Pause(time.Hour, time.Second))
}
