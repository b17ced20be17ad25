// Package histories says which earlier event of a history an event refers to.
package histories

import historypb "go.temporal.io/api/history/v1"

// EndedActivity returns the ID of the event that scheduled the activity whose end the event reports; 0 for other events.
func EndedActivity(event *historypb.HistoryEvent) int64 {
	for _, attributes := range []interface{ GetScheduledEventId() int64 }{
		event.GetActivityTaskCompletedEventAttributes(),
		event.GetActivityTaskFailedEventAttributes(),
		event.GetActivityTaskTimedOutEventAttributes(),
		event.GetActivityTaskCanceledEventAttributes(),
	} {
		if id := attributes.GetScheduledEventId(); id != 0 { // nil attributes give 0
			return id
		}
	}
	return 0
}

// EndedChild returns the ID of the event that initiated the child whose end the event reports; 0 for other events.
func EndedChild(event *historypb.HistoryEvent) int64 {
	for _, attributes := range []interface{ GetInitiatedEventId() int64 }{
		event.GetChildWorkflowExecutionCompletedEventAttributes(),
		event.GetChildWorkflowExecutionFailedEventAttributes(),
		event.GetChildWorkflowExecutionCanceledEventAttributes(),
		event.GetChildWorkflowExecutionTerminatedEventAttributes(),
		event.GetChildWorkflowExecutionTimedOutEventAttributes(),
		event.GetStartChildWorkflowExecutionFailedEventAttributes(),
	} {
		if id := attributes.GetInitiatedEventId(); id != 0 { // nil attributes give 0
			return id
		}
	}
	return 0
}
