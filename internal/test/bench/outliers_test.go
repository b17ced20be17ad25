package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter/lists"
)

// TestOutliers: a pass is an outlier from 3 s above the median of its case on, whatever the others took.
func TestOutliers(t *testing.T) {
	t.Parallel()
	of := func(seconds ...float64) []figures {
		return lists.Map(seconds, func(s float64) figures { return figures{took: time.Duration(s * float64(time.Second))} })
	}
	require.Empty(t, outlyingPasses(of(2)))
	require.Empty(t, outlyingPasses(of(2, 5, 2)))
	require.Equal(t, of(5.1, 10), outlyingPasses(of(2, 5.1, 2, 10, 2)))
	require.Empty(t, outlyingPasses(of(20, 21, 23.4)), "slow alike")
}

// TestGaps: a gap has the events on both sides, with the queue that a workflow task waited on.
func TestGaps(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 2, 36, 28, 0, time.UTC)
	event := func(after time.Duration, kind enumspb.EventType) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventType: kind, EventTime: timestamppb.New(start.Add(after))}
	}
	scheduled := event(100*time.Millisecond, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED)
	scheduled.Attributes = &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{
			TaskQueue: &taskqueuepb.TaskQueue{Kind: enumspb.TASK_QUEUE_KIND_STICKY}, Attempt: 1,
		},
	}
	timedOut := event(12*time.Second, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
	timedOut.Attributes = &historypb.HistoryEvent_WorkflowTaskTimedOutEventAttributes{
		WorkflowTaskTimedOutEventAttributes: &historypb.WorkflowTaskTimedOutEventAttributes{TimeoutType: enumspb.TIMEOUT_TYPE_START_TO_CLOSE},
	}
	found := gapsIn("run/7", []*historypb.HistoryEvent{
		event(0, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED), scheduled,
		event(2*time.Second, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED), timedOut,
	})
	require.Equal(t, []string{
		"1.9 s from WorkflowTaskScheduled (sticky queue, attempt 1) at 02:36:28.100 to WorkflowTaskStarted of run/7",
		"10.0 s from WorkflowTaskStarted at 02:36:30.000 to WorkflowTaskTimedOut (StartToClose) of run/7",
	}, lists.Map(found, gap.String))
	require.Empty(t, gapsIn("run/8", nil))
}

// TestLongest: the longest gap is first. Of the same length it is the one that began last: a parent waits for its child.
func TestLongest(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 2, 36, 28, 0, time.UTC)
	of := func(workflow string, at, took time.Duration) gap {
		return gap{workflow: workflow, at: start.Add(at), took: took}
	}
	all := []gap{of("parent", 0, 8010*time.Millisecond), of("short", 5*time.Second, time.Second), of("child", 20*time.Millisecond, 7990*time.Millisecond)}
	require.Equal(t, []string{"child", "parent", "short"}, lists.Map(longestGaps(all), func(g gap) string { return g.workflow }))
	require.Len(t, longestGaps(make([]gap, mostGaps+1)), mostGaps)
}
