package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/program/start"
)

func TestFairnessFlags(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		flags FairnessFlags
		want  temporal.Priority
	}{
		{FairnessFlags{Priority: 3, Weight: 1}, temporal.Priority{FairnessKey: "run"}},
		{FairnessFlags{Priority: 1, Weight: 1}, temporal.Priority{PriorityKey: 1, FairnessKey: "run"}},
		{FairnessFlags{Priority: 3, Weight: 0.5}, temporal.Priority{FairnessKey: "run", FairnessWeight: 0.5}},
		{FairnessFlags{Priority: 5, key: "night", Weight: 2}, temporal.Priority{PriorityKey: 5, FairnessKey: "night", FairnessWeight: 2}},
	} {
		require.NoError(t, row.flags.Check())
		require.Equal(t, row.want, (&start.Plan{WorkflowID: "run", Fairness: row.flags.PrioritySettings()}).Priority())
	}
}
