package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
	"reprise/workflows/protocol"
)

// attemptHistory is that of a run whose one activity has given a result after 3 s.
func attemptHistory(t *testing.T, result interpreter.ToolResult) []*historypb.HistoryEvent {
	t.Helper()
	payloads := func(value any) *commonpb.Payloads {
		encoded, err := converter.GetDefaultDataConverter().ToPayloads(value)
		require.NoError(t, err)
		return encoded
	}
	events := []*historypb.HistoryEvent{
		{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{},
			},
		},
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityId: "2", ActivityType: &commonpb.ActivityType{Name: "http"},
					Input: payloads(interpreter.ToolInput{Tool: "http", Step: "fetch", Visit: 1, Page: 1, Attempt: 1}),
				},
			},
		},
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
				ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 2, Attempt: 1},
			},
		},
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
					ScheduledEventId: 2, StartedEventId: 3, Result: payloads(result),
				},
			},
		},
	}
	for i, event := range events {
		event.EventId, event.EventTime = int64(i+1), timestamppb.New(noon.Add(time.Duration(i)*time.Second))
	}
	return events
}

// TestPutOffIsNoAttempt: an activity that completes without having made its attempt is no event.
func TestPutOffIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		result interpreter.ToolResult
		want   []string
	}{
		"made":   {interpreter.ToolResult{Data: expression.Of(map[string]any{"put_off": true})}, []string{ExecutionStarted, ActionStarted, ActionCompleted}},
		"turn":   {interpreter.ToolResult{PutOff: &interpreter.PutOff{Turn: &ratelimit.Reservation{At: noon}}}, []string{ExecutionStarted}},
		"paused": {interpreter.ToolResult{PutOff: &interpreter.PutOff{Hold: &interpreter.Hold{Version: 1}}}, []string{ExecutionStarted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := project(source{workflow: protocol.PlaybookWorkflowName, first: true}, attemptHistory(t, row.result), EventFilter{}, values{resolve: inline})
			require.NoError(t, err)
			var kinds []string
			for _, event := range p.sorted() {
				kinds = append(kinds, event.Event)
			}
			require.Equal(t, row.want, kinds)
		})
	}
}
