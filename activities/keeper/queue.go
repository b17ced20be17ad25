package keeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/interpreter"
	"reprise/interpreter/queue"
)

// QueueActivities returns the activities of runs that share a concurrency key, and of the key's workflow, by name.
func QueueActivities() map[string]any {
	return map[string]any{
		queue.EnterActivity:    enterQueue,
		queue.EndedActivity:    endedRuns,
		queue.CancelActivity:   cancelRun,
		queue.DeadlockActivity: findDeadlock,
	}
}

// enterQueue passes a run's request to the workflow of its key, and starts that workflow if
// need be. It answers the run with a signal, so this activity does not wait.
func enterQueue(ctx context.Context, enter queue.Enter) error {
	id, c := enter.Name.WorkflowID(), activity.GetClient(ctx)
	if err := awaitContinuation(ctx, c, id); err != nil {
		return err
	}
	err := c.SignalWorkflow(ctx, id, "", queue.RequestSignal, enter.Request)
	if connect.IsNotFound(err) {
		err = startQueue(ctx, c, id, enter)
	}
	if err != nil {
		return fmt.Errorf("request a slot under %s: %w", enter.Name.Describe(), err)
	}
	return nil
}

const (
	// mostContinuing bounds each wait of a request while the workflow of its key continues as
	// new: one that no worker runs is not waited for. All waits together are less than the
	// time that the activity has.
	mostContinuing = 3 * time.Second
	// firstContinuing is the first wait between two checks; each later one is twice as long,
	// because hundreds may check at once.
	firstContinuing = 250 * time.Millisecond
)

// awaitContinuation waits while a workflow is about to continue as new. The server refuses that
// as long as signals arrive, and each refusal makes the worker read the whole history again:
// under a flood of requests this would last until the last of them.
func awaitContinuation(ctx context.Context, c client.Client, id string) error {
	for wait := firstContinuing; wait < mostContinuing; wait *= 2 {
		described, err := c.DescribeWorkflowExecution(ctx, id, "")
		if connect.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look whether %s continues as new: %w", id, err)
		}
		info := described.GetWorkflowExecutionInfo()
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING ||
			info.GetHistoryLength() <= interpreter.LongHistory && info.GetHistorySizeBytes() <= interpreter.LargeHistory {
			return nil
		}
		if err := waitFor(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// startQueue begins the workflow of a key with a run's request. A run that leaves
// needs no queue that does not exist.
func startQueue(ctx context.Context, c client.Client, id string, enter queue.Enter) error {
	last, err := lastQueue(ctx, c, id)
	if err != nil {
		return err
	}
	if enter.Request.Leave && last.Empty() {
		return nil
	}
	last.Name = enter.Name
	_, err = c.SignalWithStartWorkflow(ctx, id, queue.RequestSignal, enter.Request,
		client.StartWorkflowOptions{ID: id, TaskQueue: activity.GetInfo(ctx).TaskQueue, StaticSummary: queueSummary(enter.Name)},
		queue.WorkflowName, last)
	return err
}

// lastQueue returns the queue of a key's last workflow if that was ended from outside. If it
// ended normally, it had no runs. It fails if it cannot be queried: without its answer, turns
// could be granted twice.
func lastQueue(ctx context.Context, c client.Client, id string) (queue.Queue, error) {
	var last queue.Queue
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if connect.IsNotFound(err) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	info := described.GetWorkflowExecutionInfo()
	if status := info.GetStatus(); status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return last, nil
	}
	last, err = queryQueue(ctx, c, id, info.GetExecution().GetRunId())
	if err != nil {
		return last, fmt.Errorf("the workflow %s of the key was ended from outside, so the runs with slots cannot be queried: %w", id, err)
	}
	return last.RecoveredQueue(), nil
}

// queryQueue queries the workflow of a key, which may have ended, for its whole state. A worker
// of its task queue responds.
func queryQueue(ctx context.Context, c client.Client, id, runID string) (found queue.Queue, err error) {
	answer, err := c.QueryWorkflow(ctx, id, runID, queue.SnapshotQuery)
	if err != nil {
		return found, err
	}
	return found, answer.Get(&found)
}

// queueSummary is shown in Temporal's UI next to the workflow of a key.
func queueSummary(name queue.Name) string {
	if name.State {
		return tool.CutText("runs whose steps keep the state "+name.Key, mostSummary)
	}
	summary := "runs of the concurrency key " + name.Key
	if name.Playbook != "" {
		summary += ", playbook " + name.Playbook
	}
	return tool.CutText(summary, mostSummary)
}

// endedRuns returns which of the runs have ended or do not exist any more: a terminated run
// cannot release its slot.
func endedRuns(ctx context.Context, members []queue.Member) ([]queue.Member, error) {
	ended := []queue.Member{}
	for _, member := range members {
		running, err := isRunning(ctx, member)
		if err != nil {
			return nil, err
		}
		if !running {
			ended = append(ended, member)
		}
	}
	return ended, nil
}

// isRunning reports whether a run is open.
func isRunning(ctx context.Context, member queue.Member) (bool, error) {
	described, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, member.WorkflowID, "")
	if connect.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether the run %s is open: %w", member.WorkflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetFirstRunId() == member.RunID, nil
}

// cancelRun asks a run to cancel, and says in its history why.
func cancelRun(ctx context.Context, cancel queue.Cancel) error {
	return requestCancel(ctx, &commonpb.WorkflowExecution{WorkflowId: cancel.WorkflowID}, cancel.RunID, cancel.Reason)
}

// requestCancel asks a run to cancel; first is the ID of its first history, "" for any.
// One that has ended needs no cancel, nor does one that is being cancelled.
func requestCancel(ctx context.Context, run *commonpb.WorkflowExecution, first, reason string) error {
	info := activity.GetInfo(ctx)
	_, err := activity.GetClient(ctx).WorkflowService().RequestCancelWorkflowExecution(ctx,
		&workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace:         info.Namespace,
			WorkflowExecution: run,
			Identity:          info.WorkflowExecution.ID, RequestId: info.WorkflowExecution.RunID + info.ActivityID,
			FirstExecutionRunId: first, Reason: reason,
		})
	if err != nil && !connect.IsNotFound(err) && !connect.CancelRequested(err) {
		return fmt.Errorf("cancel the run %s: %w", run.GetWorkflowId(), err)
	}
	return nil
}

const (
	// mostQueues bounds the queues that are queried for one deadlock, and queryTimeout each
	// query. Without it a chain of waiting runs that is not closed would be followed through
	// the whole namespace, within the one request of a run that waits.
	mostQueues   = 50
	queryTimeout = 2 * time.Second
	// mostInDeadlock bounds the runs of a deadlock that are checked again before one of them
	// fails: each check is a request to the server.
	mostInDeadlock = 50
)

// findDeadlock finds the run of this queue that has to fail because runs wait for each other
// forever; none if that run waits in another queue. Queues are queried one after the other and
// may change in between, so they are queried twice: what both rounds show was true at one time.
func findDeadlock(ctx context.Context, id string) (queue.Victim, error) {
	none, c := queue.Victim{}, activity.GetClient(ctx)
	before := queue.FindDeadlocks(queuesAround(ctx, c, id))
	if len(before) == 0 {
		return none, nil
	}
	queues := queuesAround(ctx, c, id)
	waits := queue.FindDeadlocks(queues)
	if !slices.EqualFunc(before, waits, queue.Deadlock.Equal) {
		return none, nil
	}
	victim, in := queue.ChooseVictim(waits, queues)
	if in != id {
		return none, nil
	}
	var members []queue.Member
	for _, wait := range waits[:min(len(waits), mostInDeadlock)] {
		members = append(members, wait.Run, wait.Holder)
	}
	ended, err := endedRuns(ctx, members)
	if err != nil || len(ended) > 0 {
		return none, err
	}
	return victim, nil
}

// queuesAround returns the queues that may be part of a deadlock. A queue that does not respond
// is assumed to grant its slots.
func queuesAround(ctx context.Context, c client.Client, id string) map[string]queue.Queue {
	queues, seen, ahead := map[string]queue.Queue{}, map[string]bool{id: true}, []string{id}
	for len(ahead) > 0 && len(seen) <= mostQueues {
		next := ahead[0]
		ahead = ahead[1:]
		short, stop := context.WithTimeout(ctx, queryTimeout)
		found, err := queryQueue(short, c, next, "")
		stop()
		if err != nil {
			continue
		}
		queues[next] = found
		for _, parent := range found.ParentQueues() {
			if !seen[parent] {
				seen[parent] = true
				ahead = append(ahead, parent)
			}
		}
	}
	return queues
}
