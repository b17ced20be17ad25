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
// It passes mostStretches.
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
		reported, copied := made, slices.Clone(made)
		made = made.WithAttempt(interpreter.ToolInput{Attempt: attempt, Page: attempt}, at, at.Add(time.Duration(attempt)*time.Second), failed, 0)
		require.Equal(t, copied, reported, "attempt %d", attempt)
		require.True(t, made.Cover(1, attempt), "attempt %d", attempt)
	}
	require.Len(t, made, 40)
}

// TestStretchesThatAResultImplies: what a call has made is kept beside its result where that does not show it.
func TestStretchesThatAResultImplies(t *testing.T) {
	t.Parallel()
	failure := func(kind interpreter.Kind, page int) *interpreter.ErrorObject {
		return &interpreter.ErrorObject{Kind: kind, Page: page}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made := func(failures ...*interpreter.ErrorObject) (all call.Stretches) {
		for i, failed := range failures {
			all = all.WithAttempt(interpreter.ToolInput{Attempt: i + 1, Page: i + 1}, at, at, failed, 0)
		}
		return all
	}
	for _, row := range []struct {
		name    string
		made    call.Stretches
		failure *interpreter.ErrorObject
		want    bool
	}{
		{"nothing", nil, failure(interpreter.KindExpression, 1), true},
		{"pages", made(nil, nil), nil, true},
		{"a failure", made(failure(interpreter.KindHTTP, 1)), failure(interpreter.KindHTTP, 1), true},
		{"a failure that is ignored", made(failure(interpreter.KindHTTP, 1)), nil, false},
		{"a failure whose condition is wrong", made(failure(interpreter.KindHTTP, 1)), failure(interpreter.KindExpression, 1), false},
		{"a page whose condition is wrong", made(nil, nil), failure(interpreter.KindExpression, 2), true},
		{"pages, and no request for the next", made(nil, nil), failure(interpreter.KindExpression, 3), false},
		{"pages and a failure", made(nil, failure(interpreter.KindHTTP, 2)), failure(interpreter.KindHTTP, 2), false},
		{"a wait for a turn", call.Stretches{{Attempt: 1, Page: 1, Turn: 0.5}}, nil, false},
	} {
		require.Equal(t, row.want, row.made.ImpliedBy(row.failure), row.name)
	}
}
