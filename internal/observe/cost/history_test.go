package cost_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/internal/observe/cost"
)

// recorder makes the events of a history.
type recorder struct {
	events []*historypb.HistoryEvent
	at     time.Time
}

func (r *recorder) add(kind enumspb.EventType, fill func(*historypb.HistoryEvent)) {
	event := &historypb.HistoryEvent{EventId: int64(len(r.events) + 1), EventType: kind, EventTime: timestamppb.New(r.at)}
	if fill != nil {
		fill(event)
	}
	r.events = append(r.events, event)
}

func (r *recorder) start(fill func(*historypb.WorkflowExecutionStartedEventAttributes)) {
	attributes := &historypb.WorkflowExecutionStartedEventAttributes{}
	fill(attributes)
	r.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: attributes}
	})
}

func (r *recorder) marker(task int64) {
	r.add(enumspb.EVENT_TYPE_MARKER_RECORDED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{WorkflowTaskCompletedEventId: task}}
	})
}

// activity runs for a time; ended is false for one that is still open.
func (r *recorder) activity(name string, timeout, took time.Duration, attempt int32, ended bool) {
	scheduled := int64(len(r.events) + 1)
	r.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: name}, HeartbeatTimeout: durationpb.New(timeout),
		}}
	})
	r.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: attempt}}
	})
	r.at = r.at.Add(took)
	if !ended {
		r.add(enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, nil)
		return
	}
	r.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled}}
	})
}

func (r *recorder) signal(from *commonpb.WorkflowExecution) {
	r.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{ExternalWorkflowExecution: from}}
	})
}

// TestActionsOfHistories: the expectations are those of Temporal Cloud's list of actions.
func TestActionsOfHistories(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second // five heartbeats, of 2 s each
	other := &commonpb.WorkflowExecution{WorkflowId: "other"}
	for name, test := range map[string]struct {
		record              func(r *recorder)
		actions, heartbeats int
	}{
		"nothing":           {func(*recorder) {}, 0, 0},
		"start by a client": {func(r *recorder) { r.start(func(*historypb.WorkflowExecutionStartedEventAttributes) {}) }, 1, 0},
		"start by a parent": {func(r *recorder) {
			r.start(func(s *historypb.WorkflowExecutionStartedEventAttributes) { s.ParentWorkflowExecution = other })
		}, 0, 0},
		"continuation": {func(r *recorder) {
			r.start(func(s *historypb.WorkflowExecutionStartedEventAttributes) { s.ContinuedExecutionRunId = "first" })
		}, 0, 0},
		"child": {func(r *recorder) { r.add(enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, nil) }, 2, 0},
		"one each": {func(r *recorder) {
			for _, kind := range []enumspb.EventType{
				enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
				enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
				enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
				enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
			} {
				r.add(kind, nil)
			}
		}, 7, 0},
		"none": {func(r *recorder) {
			for _, kind := range []enumspb.EventType{
				enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_TIMER_FIRED, enumspb.EVENT_TYPE_TIMER_CANCELED,
				enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			} {
				r.add(kind, nil)
			}
		}, 0, 0},
		"markers of two tasks":        {func(r *recorder) { r.marker(4); r.marker(4); r.marker(9) }, 2, 0},
		"signal of a person":          {func(r *recorder) { r.signal(nil) }, 1, 0},
		"signal of a workflow":        {func(r *recorder) { r.signal(other) }, 0, 0},
		"short activity":              {func(r *recorder) { r.activity("http", timeout, time.Second, 1, true) }, 1, 0},
		"long activity":               {func(r *recorder) { r.activity("http", timeout, 21*time.Second, 1, true) }, 11, 10},
		"activity of calls":           {func(r *recorder) { r.activity("drive", timeout, 21500*time.Millisecond, 1, true) }, 22, 21},
		"calls with rare heartbeats":  {func(r *recorder) { r.activity("drive", 5*timeout, 21*time.Second, 1, true) }, 3, 2},
		"open activity":               {func(r *recorder) { r.activity("http", timeout, 21*time.Second, 1, false) }, 11, 10},
		"activity without heartbeats": {func(r *recorder) { r.activity("http", 0, 21*time.Second, 1, true) }, 1, 0},
		"third delivery":              {func(r *recorder) { r.activity("http", timeout, time.Second, 3, true) }, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			test.record(r)
			size := 0
			for _, event := range r.events {
				size += proto.Size(event)
			}
			require.Equal(t, cost.Cost{Actions: test.actions, Heartbeats: test.heartbeats, Workflows: 1, HistoryBytes: size}, cost.OfHistory(r.events))
		})
	}
}
