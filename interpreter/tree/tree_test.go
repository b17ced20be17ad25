package tree_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/tree"
)

// TestCensus counts runs of one tree, question by question.
// It passes mostClosed.
func TestCensus(t *testing.T) {
	t.Parallel()
	counted := tree.Tree{Root: "r", Most: 10}
	var census tree.Census
	for _, c := range []struct {
		asked tree.Admission
		want  tree.AdmissionAnswer
		count int
	}{
		{tree.Admission{Count: 6}, tree.AdmissionAnswer{Count: 6}, 6},
		{tree.Admission{Count: 6}, tree.AdmissionAnswer{Count: 4}, 10},
		{tree.Admission{Count: 1}, tree.AdmissionAnswer{}, 10},
		{tree.Admission{Count: -3}, tree.AdmissionAnswer{}, 7},
		{tree.Admission{Close: "a"}, tree.AdmissionAnswer{}, 7},
		{tree.Admission{Count: 1, Runs: []string{"first", "a", "b"}}, tree.AdmissionAnswer{Closed: true}, 7},
		{tree.Admission{Count: 1, Runs: []string{"first", "b"}}, tree.AdmissionAnswer{Count: 1}, 8},
		{tree.Admission{Count: -100}, tree.AdmissionAnswer{}, 0},
	} {
		c.asked.Tree = counted
		require.NoError(t, c.asked.Check())
		require.Equal(t, c.want, census.AdmitRuns(c.asked), "%+v", c.asked)
		require.Equal(t, c.count, census.Admitted, "%+v", c.asked)
	}
	for i := range 1000 {
		census.AdmitRuns(tree.Admission{Tree: counted, Close: fmt.Sprint(i)})
	}
	require.NoError(t, census.Check())
	require.Len(t, census.Closed, 100)
}

func TestAdmissionsThatNobodyAsks(t *testing.T) {
	t.Parallel()
	counted := tree.Tree{Root: "r", Most: 10}
	for _, asked := range []tree.Admission{
		{},
		{Tree: counted},
		{Count: 1},
		{Tree: tree.Tree{Root: "r"}, Count: 1},
		{Tree: tree.Tree{Most: 1}, Count: 1},
		{Tree: tree.Tree{Root: "r", Most: -1}, Count: 1},
	} {
		require.Error(t, asked.Check(), "%+v", asked)
	}
	require.Error(t, tree.Census{Admitted: -1}.Check())
}
