package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/gate"
)

// TestListedIterations passes gate.MostListed: the answer says how many it leaves out.
func TestListedIterations(t *testing.T) {
	t.Parallel()
	l := &Loop{Result: &interpreter.LoopResult{Stats: interpreter.LoopStats{Failed: gate.MostListed + 7}}}
	for i := range gate.MostListed + 7 {
		l.Result.Errors = append(l.Result.Errors, interpreter.LoopError{Index: i, Error: &interpreter.ErrorObject{Message: "HTTP 500"}})
	}
	answer, err := l.iterationRecords()
	require.NoError(t, err)
	require.Len(t, answer.Iterations, gate.MostListed)
	require.Equal(t, 7, answer.Left)
}
