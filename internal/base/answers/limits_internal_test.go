package answers

import (
	"testing"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"

	"reprise/interpreter"
)

// TestFullMailboxes passes interpreter.MaxMailboxAnswers and interpreter.MaxMailboxBytes.
func TestFullMailboxes(t *testing.T) {
	t.Parallel()
	for want, info := range map[bool][]*workflowpb.WorkflowExecutionInfo{
		false: {{HistoryLength: interpreter.MaxMailboxAnswers, HistorySizeBytes: interpreter.MaxMailboxBytes - 1}},
		true:  {{HistoryLength: otherEvents + interpreter.MaxMailboxAnswers}, {HistorySizeBytes: interpreter.MaxMailboxBytes}},
	} {
		for _, one := range info {
			require.Equal(t, want, isFull(one))
		}
	}
}
