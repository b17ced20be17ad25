package rollout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/rollout"
)

// buildsOf are n builds, the newest of which is current.
func buildsOf(n int) rollout.Builds {
	all := rollout.Builds{Deployment: "clinic"}
	for i := range n {
		all.Builds = append(all.Builds, rollout.BuildStatus{ID: fmt.Sprintf("v%d", n-i), Status: rollout.Drained})
	}
	all.Builds[0].Status, all.Builds[0].Workers = rollout.Current, 2
	return all
}

// TestNotesOfBuilds: a warning from 75 builds on, because the server refuses workers of the 101st; and what keeps runs
// from starting or continuing.
func TestNotesOfBuilds(t *testing.T) {
	t.Parallel()
	require.Empty(t, buildsOf(1).OperatorNotes())
	require.Empty(t, buildsOf(74).OperatorNotes())
	for _, n := range []int{75, 100} {
		notes := buildsOf(n).OperatorNotes()
		require.Len(t, notes, 1)
		require.False(t, notes[0].Stops)
		require.Contains(t, notes[0].Text, fmt.Sprintf("deployment clinic has %d builds, and the server refuses workers of the 101st", n))
	}
	all := buildsOf(2)
	all.Builds[0].Status, all.Builds[1].OpenRuns = rollout.Inactive, 1
	notes := all.OperatorNotes()
	require.Len(t, notes, 2)
	require.Contains(t, notes[0].Text, "build v1 has 1 open run and no workers")
	require.Contains(t, notes[1].Text, "no build of deployment clinic is current")
	require.True(t, notes[0].Stops && notes[1].Stops)
}
