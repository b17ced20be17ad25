package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/interpreter"
)

// admitRuns asks the workflow of a tree of runs how many more may start in it. An
// activity that is delivered again gets the answer that the first delivery got.
func admitRuns(ctx context.Context, admission interpreter.Admission) (admitted interpreter.Admitted, err error) {
	c, info := activity.GetClient(ctx), activity.GetInfo(ctx)
	update := client.UpdateWorkflowOptions{
		UpdateID:   info.WorkflowExecution.RunID + "/" + info.ActivityID,
		WorkflowID: admission.Tree.WorkflowID(), UpdateName: interpreter.TreeUpdate, Args: []any{admission},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}
	handle, err := c.UpdateWorkflow(ctx, update)
	if errors.As(err, new(*serviceerror.NotFound)) {
		handle, err = beginTree(ctx, c, info.TaskQueue, update, admission.Tree)
	}
	if err == nil {
		err = handle.Get(ctx, &admitted)
	}
	if err != nil {
		return admitted, fmt.Errorf("ask whether %d runs may start: %w", admission.Count, err)
	}
	return admitted, nil
}

// beginTree begins the workflow of a tree, where there is none or it has ended, with
// what the last one knew.
func beginTree(
	ctx context.Context, c client.Client, queue string, update client.UpdateWorkflowOptions, tree interpreter.Tree,
) (client.WorkflowUpdateHandle, error) {
	census, err := lastCensus(ctx, c, tree.WorkflowID())
	if err != nil {
		return nil, err
	}
	start := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: tree.WorkflowID(), TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary: fmt.Sprintf("counts the runs below a first run, of which %d may start", tree.Most),
	}, interpreter.TreeWorkflow, census)
	return c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start, UpdateOptions: update})
}

// lastCensus is what the last workflow of a tree knew. The error is that it cannot be
// asked: without its answer more runs than the limit would start.
func lastCensus(ctx context.Context, c client.Client, id string) (census interpreter.Census, err error) {
	answer, err := c.QueryWorkflow(ctx, id, "", interpreter.TreeQuery)
	if errors.As(err, new(*serviceerror.NotFound)) {
		return census, nil
	}
	if err == nil {
		err = answer.Get(&census)
	}
	return census, err
}

const (
	// felledAtOnce is how many runs are cancelled side by side.
	felledAtOnce = 20
	// fellEvery is how often it looks for runs that have started meanwhile, and
	// fellQuiet how often it finds none before it ends: the list is a little late.
	fellEvery = 2 * time.Second
	fellQuiet = 5
)

// cancelTree cancels all runs that belong to one that was cancelled, whatever number of
// runs is between, and has no more start. Who nobody waits for does not belong to it,
// nor do those below.
func cancelTree(ctx context.Context, fell interpreter.Fell) error {
	if fell.Tree.Most > 0 {
		if _, err := admitRuns(ctx, interpreter.Admission{Tree: fell.Tree, Close: fell.Run}); err != nil {
			return err
		}
	}
	cancelled := map[string]bool{}
	for quiet := 0; quiet < fellQuiet; {
		open, err := openBelow(ctx, fell)
		if err != nil {
			return err
		}
		open = slices.DeleteFunc(open, func(run *commonpb.WorkflowExecution) bool { return cancelled[run.GetRunId()] })
		if quiet++; len(open) > 0 {
			quiet = 0
		}
		if err := cancelAll(ctx, fell, open); err != nil {
			return err
		}
		for _, run := range open {
			cancelled[run.GetRunId()] = true
		}
		activity.RecordHeartbeat(ctx)
		if err := sleepUntil(ctx, time.Now().Add(fellEvery)); err != nil {
			return err
		}
	}
	return nil
}

// openBelow are the runs that wait for their end and belong to the cancelled one.
func openBelow(ctx context.Context, fell interpreter.Fell) ([]*commonpb.WorkflowExecution, error) {
	c, all := activity.GetClient(ctx), map[string]*workflowpb.WorkflowExecutionInfo{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: activity.GetInfo(ctx).WorkflowNamespace, PageSize: 1000,
		Query: "ExecutionStatus = 'Running' AND RootWorkflowId = '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(fell.First) + "'",
	}
	for {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the runs below %s: %w", fell.Run, err)
		}
		for _, info := range page.GetExecutions() {
			all[info.GetExecution().GetWorkflowId()] = info
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
		activity.RecordHeartbeat(ctx)
	}
	var open []*commonpb.WorkflowExecution
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].GetType().GetName() == interpreter.PlaybookWorkflow && belongs(all, id, fell.Run) {
			open = append(open, all[id].GetExecution())
		}
	}
	return open, nil
}

// belongs reports whether a workflow is below another, and each one between waits for
// the next.
func belongs(all map[string]*workflowpb.WorkflowExecutionInfo, id, above string) bool {
	for range len(all) {
		info := all[id]
		if _, detached := info.GetMemo().GetFields()[interpreter.DetachedMemo]; info == nil || detached {
			return false
		}
		if id = info.GetParentExecution().GetWorkflowId(); id == above {
			return true
		}
	}
	return false
}

// cancelAll cancels runs, some at a time. One that has ended meanwhile needs none.
func cancelAll(ctx context.Context, fell interpreter.Fell, open []*commonpb.WorkflowExecution) error {
	var group sync.WaitGroup
	places, failed := make(chan struct{}, felledAtOnce), make(chan error, len(open))
	for _, run := range open {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			failed <- requestCancel(ctx, run, "", "the run "+fell.Run+" was cancelled")
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
