package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextsOfMismatches: the SDK's words for a history that does not fit are taken apart. Listing passes mostCandidates only on a
// server with as many closed workflows of a type.
func TestTextsOfMismatches(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]string{
		"[TMPRL1100] nondeterministic workflow: history event is TimerStarted: (TimerId:5), replay command is ScheduleActivityTask: (ActivityId:5)": {"TimerStarted: (TimerId:5)", "ScheduleActivityTask: (ActivityId:5)"},
		"nondeterministic workflow: missing replay command for TimerStarted: (TimerId:5)":                                                           {"TimerStarted: (TimerId:5)", ""},
		"nondeterministic workflow: extra replay command for StartTimer":                                                                            {"", "StartTimer"},
		"something else": {"", ""},
	} {
		expected, got := compareTexts(message)
		require.Equal(t, want, [2]string{expected, got}, message)
	}
	require.Contains(t, workflowTypes(), "PlaybookWorkflow")
	require.Less(t, listPage, mostCandidates)
}
