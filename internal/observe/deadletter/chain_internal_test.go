package deadletter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/workflows/protocol"
)

// TestCancelledAgain: an iteration that was cancelled in a reprocess too is as recent as that, also for a filter by time; one that was
// not part of it is as old as before, and a failure has the time of its last attempt.
func TestCancelledAgain(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	letters := map[iterationKey]*Letter{}
	for index, kind := range []interpreter.Kind{interpreter.KindCancelled, interpreter.KindCancelled, interpreter.KindHTTP} {
		letters[iterationKey{"fetch", 1, index}] = &Letter{State: Cancelled, DeadLetter: sink.DeadLetter{
			Step: "fetch", Visit: 1, Index: index, LastAttemptAt: ended, Error: &interpreter.ErrorObject{Kind: kind},
		}}
	}
	again := &runs.Run{WorkflowID: "again", EndedAt: ended.Add(time.Hour), Input: protocol.Input{Reprocess: &protocol.Reprocess{
		Loops: []protocol.ReprocessLoop{{Step: "fetch", Visit: 1, Subset: protocol.Subset{Indexes: []int{0, 2}, Size: 3}}},
	}}}
	(&Chain{}).settleLetters(letters, again)
	for index, want := range []time.Time{again.EndedAt, ended, ended} {
		letter := letters[iterationKey{"fetch", 1, index}]
		require.Equal(t, want, letter.LastAttemptAt, index)
		require.Equal(t, want.After(ended), Filter{Cancelled: true, Since: ended.Add(time.Minute)}.Matches(*letter), index)
	}
}
