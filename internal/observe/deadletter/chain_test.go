package deadletter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/deadletter"
	"reprise/interpreter"
	"reprise/interpreter/call/sink"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func letter(index int, state string, class interpreter.Class, at time.Time) deadletter.Letter {
	return deadletter.Letter{State: state, DeadLetter: sink.DeadLetter{
		Step: "fetch", Visit: 1, Index: index, LastAttemptAt: at, Error: &interpreter.ErrorObject{Class: class},
	}}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	letters := []deadletter.Letter{
		letter(0, deadletter.Open, interpreter.ClassFinal, noon),
		letter(1, deadletter.Reprocessing, interpreter.ClassRetryable, noon.Add(time.Second)),
		letter(2, deadletter.Resolved, interpreter.ClassRetryable, noon.Add(2*time.Second)),
	}
	for name, test := range map[string]struct {
		filter deadletter.Filter
		want   []int
	}{
		"what is not resolved": {deadletter.Filter{}, []int{0, 1}},
		"all":                  {deadletter.Filter{All: true}, []int{0, 1, 2}},
		"a step":               {deadletter.Filter{Step: "fetch"}, []int{0, 1}},
		"another step":         {deadletter.Filter{Step: "load"}, nil},
		"a class":              {deadletter.Filter{Class: interpreter.ClassRetryable}, []int{1}},
		"since its very time":  {deadletter.Filter{Since: noon}, []int{0, 1}},
		"since later":          {deadletter.Filter{Since: noon.Add(time.Nanosecond), All: true}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := deadletter.Chain{Letters: letters}
			var found []int
			for _, letter := range chain.Select(test.filter) {
				found = append(found, letter.Index)
			}
			require.Equal(t, test.want, found)
		})
	}
}

// TestNewest: by the time of the last attempt, and at one time by place.
func TestNewest(t *testing.T) {
	t.Parallel()
	letters := []deadletter.Letter{
		letter(10, "", "", noon), letter(9, "", "", noon), letter(1, "", "", noon.Add(-time.Second)), letter(2, "", "", noon.Add(time.Second)),
	}
	slices.SortFunc(letters, deadletter.CompareNewest)
	var indexes []int
	for _, letter := range letters {
		indexes = append(indexes, letter.Index)
	}
	require.Equal(t, []int{2, 9, 10, 1}, indexes)
}

// TestRoundIDDistinguishesRuns: runs may have had one workflow ID.
func TestRoundIDDistinguishesRuns(t *testing.T) {
	t.Parallel()
	require.Equal(t, "nightly/reprocess-dc714c7f8f25-2", deadletter.RoundID("nightly", "01a1ff0d-6930-7df8-91a5-dc714c7f8f25", 2))
	require.Equal(t, "nightly/reprocess-short-1", deadletter.RoundID("nightly", "short", 1))
}
