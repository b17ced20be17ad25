package interpreter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestSinceWhenACallWaits: a wait begins so long before its end as it takes; one that continues
// in another history began when the attempt before it failed.
func TestSinceWhenACallWaits(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := &interpreter.ErrorObject{At: noon}
	for name, row := range map[string]struct {
		wait  *interpreter.Wait
		until time.Time
		last  *interpreter.ErrorObject
		want  time.Time
	}{
		"a retry":                  {&interpreter.Wait{Reason: interpreter.ReasonFailure, Delay: time.Minute}, noon.Add(3 * time.Minute), nil, noon.Add(2 * time.Minute)},
		"the rest of a retry":      {&interpreter.Wait{Reason: interpreter.ReasonFailure, Delay: time.Minute, Rest: true}, noon.Add(3 * time.Minute), failed, noon},
		"the rest of a poll":       {&interpreter.Wait{Reason: interpreter.ReasonPoll, Delay: time.Minute, Rest: true}, noon.Add(3 * time.Minute), failed, time.Time{}},
		"a person":                 {&interpreter.Wait{Reason: interpreter.ReasonPerson}, time.Time{}, failed, noon},
		"nothing, after a failure": {nil, time.Time{}, failed, time.Time{}},
	} {
		status := interpreter.CallStatus{Since: noon.Add(-time.Hour)}
		status.RecordWait(row.wait, row.until)
		status.SetWaitStart(row.last)
		require.Equal(t, row.want, status.Since, name)
	}
}
