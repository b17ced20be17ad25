package answers

import (
	"testing"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"

	"reprise/interpreter/mailbox"
)

// TestFullMailboxes passes mailbox.MaxAnswers and mailbox.MaxBytes.
func TestFullMailboxes(t *testing.T) {
	t.Parallel()
	for want, info := range map[bool][]*workflowpb.WorkflowExecutionInfo{
		false: {{HistoryLength: mailbox.MaxAnswers, HistorySizeBytes: mailbox.MaxBytes - 1}},
		true:  {{HistoryLength: otherEvents + mailbox.MaxAnswers}, {HistorySizeBytes: mailbox.MaxBytes}},
	} {
		for _, one := range info {
			require.Equal(t, want, isFull(one))
		}
	}
}
