package cost

import (
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/heartbeat"
	"reprise/internal/observe/histories"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// OfHistory returns the cost of a workflow run, open or closed, from all of its events. What a run costs that its
// history does not have is left out: queries, updates that were refused, and the workflows of rate limits, states and
// other things that runs share.
func OfHistory(events []*historypb.HistoryEvent) Cost {
	h := reading{cost: Cost{Workflows: 1}, scheduled: map[int64]*historypb.ActivityTaskScheduledEventAttributes{}, started: map[int64]time.Time{}}
	for _, event := range events {
		h.cost.HistoryBytes += proto.Size(event)
		h.cost.Actions += h.actionsOf(event)
		h.addHeartbeats(event)
	}
	if len(events) > 0 {
		h.endOpen(events[len(events)-1].GetEventTime().AsTime())
	}
	h.cost.Actions += h.cost.Heartbeats
	return h.cost
}

// reading is the state of reading a history.
type reading struct {
	cost      Cost
	scheduled map[int64]*historypb.ActivityTaskScheduledEventAttributes // by event ID
	started   map[int64]time.Time                                       // when open activities began, by the event ID that scheduled them
	// marked is the workflow task with the last marker: all markers of a task are one action.
	marked int64
}

// actionsOf returns the actions that led to an event.
func (h *reading) actionsOf(event *historypb.HistoryEvent) int {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return startActions(event.GetWorkflowExecutionStartedEventAttributes())
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		return 2
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		enumspb.EVENT_TYPE_TIMER_STARTED,
		enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
		enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
		return 1
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		if event.GetWorkflowExecutionSignaledEventAttributes().GetExternalWorkflowExecution() != nil {
			return 0 // counted where it was sent
		}
		return 1
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		task := event.GetMarkerRecordedEventAttributes().GetWorkflowTaskCompletedEventId()
		if task == h.marked {
			return 0
		}
		h.marked = task
		return 1
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		return int(event.GetActivityTaskStartedEventAttributes().GetAttempt()) - 1 // each delivery beyond the first
	default:
		return 0
	}
}

// startActions returns the actions of a start: children and continuations are counted where they are requested.
func startActions(started *historypb.WorkflowExecutionStartedEventAttributes) int {
	if started.GetParentWorkflowExecution() != nil || started.GetContinuedExecutionRunId() != "" {
		return 0
	}
	return 1
}

// addHeartbeats counts the heartbeats of an activity that ends: one for each interval that it ran.
func (h *reading) addHeartbeats(event *historypb.HistoryEvent) {
	id := event.GetEventId()
	if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
		h.scheduled[id] = scheduled
	}
	if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
		h.started[started.GetScheduledEventId()] = event.GetEventTime().AsTime()
	}
	if by := histories.EndedActivity(event); by != 0 {
		h.endActivity(by, event.GetEventTime().AsTime())
	}
}

// endOpen counts the heartbeats of activities that have no end, so far.
func (h *reading) endOpen(at time.Time) {
	for by := range h.started {
		h.endActivity(by, at)
	}
}

func (h *reading) endActivity(by int64, at time.Time) {
	if began, found := h.started[by]; found {
		h.cost.Heartbeats += heartbeatsOf(h.scheduled[by], at.Sub(began))
	}
	delete(h.started, by)
	delete(h.scheduled, by)
}

// reporters are the activities whose heartbeats report progress: those that host calls, and transfers.
var reporters = []string{call.DriveActivity, "transfer"}

// heartbeatsOf returns how many heartbeats an activity sends in a time.
func heartbeatsOf(activity *historypb.ActivityTaskScheduledEventAttributes, took time.Duration) int {
	interval := activity.GetHeartbeatTimeout().AsDuration() / interpreter.MissedHeartbeats
	if interval <= 0 {
		return 0
	}
	if slices.Contains(reporters, activity.GetActivityType().GetName()) {
		interval = heartbeat.ProgressOf(interval)
	}
	return int(took / interval)
}
