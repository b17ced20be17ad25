package call_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// TestStretchesAreNotChanged: what a heartbeat has of the attempts of a call stays as it
// is while the call makes others.
func TestStretchesAreNotChanged(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	failure := &interpreter.ErrorObject{Kind: interpreter.KindHTTP}
	var made call.Stretches
	for attempt := 1; attempt <= 120; attempt++ {
		var failed *interpreter.ErrorObject
		if attempt%3 == 0 {
			failed = failure
		}
		reported, kept := made, slices.Clone(made)
		made = made.Add(interpreter.ToolInput{Attempt: attempt, Page: attempt}, at, at.Add(time.Duration(attempt)*time.Second), failed)
		require.Equal(t, kept, reported, "attempt %d", attempt)
		require.True(t, made.Cover(1, attempt), "attempt %d", attempt)
	}
	require.Len(t, made, 40)
}
