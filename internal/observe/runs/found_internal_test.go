package runs

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// notInAnEntry are the fields of a run that do not come from the server's entry of it, and from where they come.
var notInAnEntry = map[string]string{
	"HeldBy":      "the status decides (holderListed)",
	"Late":        "Expect and the time decide (noteLate)",
	"LateSeconds": "Expect and the time decide (noteLate)",
	"TaskSince":   "only the description of a run has it",
}

// payloadsOf encodes values as the server stores them.
func payloadsOf(t *testing.T, values map[string]any) map[string]*commonpb.Payload {
	t.Helper()
	encoded := map[string]*commonpb.Payload{}
	for name, value := range values {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		encoded[name] = payload
	}
	return encoded
}

// TestEachFieldOfARunIsRead: a value that lists show of a run is read from the server's entry, or made of what is read.
func TestEachFieldOfARunIsRead(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)
	entry := func(status interpreter.Status, ended enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
		info := &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: "daily-1", RunId: "r"}, StartTime: timestamppb.New(began), TaskQueue: "reprise", Status: ended,
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: payloadsOf(t, map[string]any{
				protocol.StatusAttribute: status, protocol.PlaybookAttribute: "daily", protocol.DeadLettersAttribute: 3,
				protocol.NextRetryAttribute: began.Add(time.Hour), protocol.OriginAttribute: "daily-0", protocol.ScheduleAttribute: "nightly",
				buildAttribute: "clinic:v0.1.0", behaviorAttribute: "Pinned",
			})},
			Memo: &commonpb.Memo{Fields: payloadsOf(t, map[string]any{
				protocol.StartedByMemo: "ada", protocol.StartReasonMemo: "late data", protocol.ExpectMemo: 60.0, protocol.RowsMemo: interpreter.RowTotals{Read: 5}, protocol.PartitionMemo: "2026-02-28",
				queue.Memo: queue.Ticket{Queue: "q", Since: began},
			})},
		}
		if ended != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			info.CloseTime = timestamppb.New(began.Add(time.Hour))
		}
		return info
	}
	entries := []Found{
		foundOf(entry(interpreter.Queued, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)),
		foundOf(entry(interpreter.RetryPending, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)),
		foundOf(entry(interpreter.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)),
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Found]()) {
		if !field.IsExported() {
			continue
		}
		read := false
		for _, run := range entries {
			read = read || !reflect.ValueOf(run).FieldByIndex(field.Index).IsZero()
		}
		elsewhere := notInAnEntry[field.Name]
		assert.True(t, read || elsewhere != "", "runs.Found.%s is read from nothing: read its memo or search attribute in foundOf (internal/observe/runs/find.go) "+
			"and give this test's entry one, or write in notInAnEntry where it comes from", field.Name)
		assert.False(t, read && elsewhere != "", "runs.Found.%s is in the entry: remove it from notInAnEntry", field.Name)
	}
}
