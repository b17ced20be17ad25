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
		"waiting for an answer": {running, protocol.Progress{Awaits: true, Waiting: 2}},
		"waiting":               {paused, protocol.Progress{Waiting: 2}},
		"waiting for a person":  {running, protocol.Progress{Waiting: 2}},
		"waiting to retry":      {running, protocol.Progress{Waiting: 2, NextRetryAt: samples.LocalBegan}},
	} {
		require.Equal(t, want, loopWaitsFor(given.record, given.progress))
	}
}

// TestFollowAwaits: who follows a run is told when it begins to wait, with the command
// that answers, and of progress once a second at most.
func TestFollowAwaits(t *testing.T) {
	t.Parallel()
	now := samples.LocalBegan.Add(time.Hour)
	webhook, approval := samples.Awaiting(now)
	o := newObserver(&session.Session{}, followed("imports-7x2k"))
	var out bytes.Buffer
	shown := newPlainProgress(&terminal.Screen{To: &out}, func() time.Time { return now })
	show := func(step string, awaits *interpreter.AwaitedDetails) {
		record := protocol.StepRecord{Step: step, Visit: 1, CallStatus: interpreter.CallStatus{
			Status: interpreter.Running, Attempts: 2, Awaits: awaits, Waiting: "awaits an answer",
		}}
		shown.show(o.visitLines(t.Context(), record))
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
	said := strings.ReplaceAll(out.String(), terminal.Program()+" ", "starter ")
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
func looks(length time.Duration) (n int) {
	for at := FollowInterval / 2; at < length; at += PollInterval(FollowInterval, at, 0) {
		n++
	}
	return n
}

func TestPollsGetRarer(t *testing.T) {
	t.Parallel()
	require.Equal(t, 14, looks(20*time.Second), "40 at twice a second")
	require.Equal(t, 55, looks(10*time.Minute), "1200 at twice a second")
	require.Equal(t, 8*time.Second, PollInterval(FollowInterval, time.Second, 2*time.Second), "looks are not most of the load")
	require.Equal(t, longestPause, PollInterval(FollowInterval, time.Hour, time.Second))
}
