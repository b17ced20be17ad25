package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

const (
	// mostLogged bounds how many running workflows LogRunning describes.
	mostLogged = 8
	// lastEvents is how many events of each workflow are logged.
	lastEvents = 25
)

// LogRunning logs what the open workflows of a task queue wait for: their pending activities, children and workflow
// tasks, and the last events of their histories. It is for a test that failed because something did not happen.
func LogRunning(t testing.TB, c client.Client, queue string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: mostLogged, Query: fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", queue),
	})
	if err != nil {
		t.Logf("what still runs is not known: %v", err)
		return
	}
	for _, execution := range listed.GetExecutions() {
		t.Log(describeWaits(ctx, c, execution))
	}
}

// describeWaits returns what a workflow waits for.
func describeWaits(ctx context.Context, c client.Client, execution *workflow.WorkflowExecutionInfo) string {
	id, runID := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
	var b strings.Builder
	fmt.Fprintf(&b, "still runs: %s %s (%s)", id, runID, execution.GetType().GetName())
	described, err := c.DescribeWorkflowExecution(ctx, id, runID)
	if err != nil {
		return fmt.Sprintf("%s: %v", &b, err)
	}
	if task := described.GetPendingWorkflowTask(); task != nil {
		fmt.Fprintf(&b, "\n  workflow task: %s, attempt %d, scheduled %s",
			task.GetState(), task.GetAttempt(), task.GetScheduledTime().AsTime().Format(time.TimeOnly))
	}
	for _, activity := range described.GetPendingActivities() {
		fmt.Fprintf(&b, "\n  activity %s: %s, attempt %d, last heartbeat %s, last failure %q", activity.GetActivityType().GetName(),
			activity.GetState(), activity.GetAttempt(), activity.GetLastHeartbeatTime().AsTime().Format(time.TimeOnly),
			activity.GetLastFailure().GetMessage())
	}
	for _, child := range described.GetPendingChildren() {
		fmt.Fprintf(&b, "\n  child %s", child.GetWorkflowId())
	}
	run, err := (&collector{client: c}).fetchHistory(ctx, id, runID)
	if err != nil {
		return fmt.Sprintf("%s\n  %v", &b, err)
	}
	events := renderEvents(run.History)
	return b.String() + strings.Join(events[max(0, len(events)-lastEvents):], "")
}

// renderEvents returns the events of a history, one per line, without workflow tasks. Of consecutive events of the
// same type it returns only the last.
func renderEvents(history *historypb.History) (events []string) {
	same, last := 0, enums.EVENT_TYPE_UNSPECIFIED
	for _, event := range history.GetEvents() {
		switch kind := event.GetEventType(); kind {
		case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			continue
		case last:
			same++
			events = events[:len(events)-1]
		default:
			same, last = 1, kind
		}
		line := fmt.Sprintf("\n  %d %s %s", event.GetEventId(), event.GetEventTime().AsTime().Format(time.TimeOnly), event.GetEventType())
		if same > 1 {
			line += fmt.Sprintf(", the last of %d", same)
		}
		for _, payload := range event.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
			line += " " + string(payload.GetData())
		}
		events = append(events, line)
	}
	return events
}
