package runs

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/base/terminal"
)

// Silence is why a run did not respond although workers poll its task queue.
type Silence struct {
	// HeldBy is HeldByStore or HeldByTask, or HeldByNoWorker if no failure is known.
	HeldBy string
	// Failure is the message of the last failed query or workflow task; "" for HeldByNoWorker.
	Failure string
	// calls is how many calls to the server were needed to find out.
	calls int
}

// Text describes the reason for a run of a task queue; since is "" or says since when.
func (s Silence) Text(run Found, since string) string {
	switch s.HeldBy {
	case HeldByStore:
		return fmt.Sprintf("workers poll the task queue %q, but the payload store fails: %s", run.TaskQueue, terminal.Shorten(s.Failure, mostFailure))
	case HeldByTask:
		return fmt.Sprintf("workers poll the task queue %q, but cannot continue the run: %s", run.TaskQueue, terminal.Shorten(s.Failure, mostFailure))
	}
	if run.pinned() {
		return fmt.Sprintf("the run is pinned to build %s, none of whose workers responds%s", run.Build.ID, since)
	}
	return fmt.Sprintf("no worker of the task queue %q responds%s", run.TaskQueue, since)
}

// mostFailure bounds a failure's message, in characters: it may quote a whole value.
const mostFailure = 600

// silenceCalls is the maximum number of calls to the server by Silence.
const silenceCalls = 2

// Silence finds out why a run did not respond. unanswered is the error of a query or an update.
func (r *Reader) Silence(ctx context.Context, run Found, unanswered error) Silence {
	if failure, failed := connect.QueryFailure(unanswered); failed {
		return silenceOf(failure)
	}
	ctx, cancel := context.WithTimeout(ctx, r.patienceTime())
	defer cancel()
	described, err := r.Client.DescribeWorkflowExecution(ctx, run.WorkflowID, run.last)
	if err != nil || described.GetPendingWorkflowTask().GetAttempt() < 2 {
		return Silence{HeldBy: HeldByNoWorker, calls: 1}
	}
	silence := silenceOf(r.lastTaskFailure(ctx, run))
	silence.calls = silenceCalls
	return silence
}

// taskFailureEvents is how many of a run's last events are searched for the failure of its workflow task. Only the
// first failure of a task is an event; signals, ended activities and timers may follow it.
const taskFailureEvents = 100

// lastTaskFailure reads why the run's workflow task failed; nil if unknown.
func (r *Reader) lastTaskFailure(ctx context.Context, run Found) *failurepb.Failure {
	page, err := r.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: r.Namespace, MaximumPageSize: taskFailureEvents,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.last},
	})
	if err != nil {
		return nil
	}
	for _, event := range page.GetHistory().GetEvents() {
		if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			return failed.GetFailure()
		}
		if event.GetWorkflowTaskCompletedEventAttributes() != nil {
			return nil // what failed before is over
		}
	}
	return nil
}

// silenceOf classifies the failure of a query or a workflow task.
func silenceOf(failure *failurepb.Failure) Silence {
	if failure.GetMessage() == "" {
		return Silence{HeldBy: HeldByNoWorker}
	}
	for cause := failure; cause != nil; cause = cause.GetCause() {
		if cause.GetApplicationFailureInfo().GetType() == payload.FailureType {
			return Silence{HeldBy: HeldByStore, Failure: cause.GetMessage()}
		}
	}
	return Silence{HeldBy: HeldByTask, Failure: failure.GetMessage()}
}
