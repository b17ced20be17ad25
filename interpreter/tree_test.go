package interpreter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestCensus counts runs of one tree, question by question.
// It passes mostClosed.
func TestCensus(t *testing.T) {
	t.Parallel()
	tree := interpreter.Tree{Root: "r", Most: 10}
	var census interpreter.Census
	for _, c := range []struct {
		asked interpreter.Admission
		want  interpreter.AdmissionAnswer
		count int
	}{
		{interpreter.Admission{Count: 6}, interpreter.AdmissionAnswer{Count: 6}, 6},
		{interpreter.Admission{Count: 6}, interpreter.AdmissionAnswer{Count: 4}, 10},
		{interpreter.Admission{Count: 1}, interpreter.AdmissionAnswer{}, 10},
		{interpreter.Admission{Count: -3}, interpreter.AdmissionAnswer{}, 7},
		{interpreter.Admission{Close: "a"}, interpreter.AdmissionAnswer{}, 7},
		{interpreter.Admission{Count: 1, Runs: []string{"first", "a", "b"}}, interpreter.AdmissionAnswer{Closed: true}, 7},
		{interpreter.Admission{Count: 1, Runs: []string{"first", "b"}}, interpreter.AdmissionAnswer{Count: 1}, 8},
		{interpreter.Admission{Count: -100}, interpreter.AdmissionAnswer{}, 0},
	} {
		c.asked.Tree = tree
		require.NoError(t, c.asked.Check())
		require.Equal(t, c.want, census.AdmitRuns(c.asked), "%+v", c.asked)
		require.Equal(t, c.count, census.Admitted, "%+v", c.asked)
	}
	for i := range 1000 {
		census.AdmitRuns(interpreter.Admission{Tree: tree, Close: fmt.Sprint(i)})
	}
	require.NoError(t, census.Check())
	require.Len(t, census.Closed, 100)
}

func TestAdmissionsThatNobodyAsks(t *testing.T) {
	t.Parallel()
	tree := interpreter.Tree{Root: "r", Most: 10}
	for _, asked := range []interpreter.Admission{
		{},
		{Tree: tree},
		{Count: 1},
		{Tree: interpreter.Tree{Root: "r"}, Count: 1},
		{Tree: interpreter.Tree{Most: 1}, Count: 1},
		{Tree: interpreter.Tree{Root: "r", Most: -1}, Count: 1},
	} {
		require.Error(t, asked.Check(), "%+v", asked)
	}
	require.Error(t, interpreter.Census{Admitted: -1}.Check())
}
