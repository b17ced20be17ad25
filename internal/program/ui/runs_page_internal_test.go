package ui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestShareCalls: runs that run get the calls that others need not, and a page never takes more than
// it may.
func TestShareCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		running, others int
		want            []int // of a running one, and of another one
	}{
		"nothing is open":       {0, 0, []int{0, 0}},
		"one":                   {1, 0, []int{callsPerPage, 0}},
		"one beside others":     {1, 5, []int{4, 1}},
		"several beside others": {2, 3, []int{3, 1}},
		"none runs":             {0, 4, []int{0, 1}},
		"as many as there are":  {callsPerPage, 0, []int{1, 0}},
	} {
		var open []*runRow
		for i := range row.running {
			open = append(open, &runRow{Status: []interpreter.Status{interpreter.Running, interpreter.RetryPending}[i%2]})
		}
		for range row.others {
			open = append(open, &runRow{Status: interpreter.Awaiting})
		}
		calls, sum := shareCalls(open), 0
		require.Len(t, calls, len(open), name)
		for i, n := range calls {
			sum += n
			if i < row.running {
				require.Equal(t, row.want[0], n, name)
			} else {
				require.Equal(t, row.want[1], n, name)
			}
		}
		require.LessOrEqual(t, sum, callsPerPage, name)
	}
}
