package runs

import (
	"cmp"
	"context"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"reprise/interpreter"
)

// readActivities adds the pending activities of the run, and the progress of their calls, which only heartbeats show
// until the activity ends. It uses the earlier description of the run and makes no call to the server.
func (q *inquiry) readActivities(ctx context.Context) {
	for _, pending := range slices.Concat(q.run.activities, q.ofCalls) {
		shown := activityOf(pending)
		if hosted := q.hostedStep(ctx, pending); hosted != nil {
			shown.Step, shown.Progress = hosted.Step, hosted.At
			for i := range q.status.Steps {
				if step := &q.status.Steps[i]; step.Step == hosted.Step && step.Visit == hosted.Visit && step.EndedAt.IsZero() {
					step.Rows = cmp.Or(hosted.Rows, step.Rows)
					if hosted.Incremental != nil {
						step.Incremental = newIncremental(hosted.Incremental, q.status.At)
					}
				}
			}
		}
		q.status.Activities = append(q.status.Activities, shown)
	}
}

func activityOf(pending *workflowpb.PendingActivityInfo) PendingActivity {
	shown := PendingActivity{
		Type: pending.GetActivityType().GetName(), Worker: pending.GetLastWorkerIdentity(), Deliveries: pending.GetAttempt(),
		Running: pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED, LastFailure: pending.GetLastFailure().GetMessage(),
	}
	if at := pending.GetLastStartedTime(); at != nil {
		shown.Since = at.AsTime()
	}
	if at := pending.GetLastHeartbeatTime(); at != nil {
		shown.Heartbeat = at.AsTime()
	}
	return shown
}

// hostedStep returns the progress of a step's call that runs in an activity; nil if heartbeats do not show it.
func (q *inquiry) hostedStep(ctx context.Context, pending *workflowpb.PendingActivityInfo) *interpreter.HostedStep {
	var read hostHeartbeat
	if len(pending.GetHeartbeatDetails().GetPayloads()) == 0 || q.newValues(ctx).decodeInput(q.run.WorkflowID, pending.GetHeartbeatDetails(), &read) != nil {
		return nil
	}
	return read.Step
}
