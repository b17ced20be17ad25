package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/heartbeat"
	"reprise/internal/base/slots"
	"reprise/internal/base/visibility"
	"reprise/interpreter"
	"reprise/interpreter/tree"
)

const (
	// admissionsOfOne is how many admissions the activities of a worker request of one
	// tree at a time. The server takes ten updates of a workflow at a time. With the
	// eleventh it drops the workflow task that was to answer them, and all ten are sent
	// again: where many workers request as fast as they can, none is answered.
	admissionsOfOne = 2
	// rememberedClosed is how many cancelled runs a worker remembers.
	rememberedClosed = 100
)

// TreeActivities returns the activities of runs that start others, by name. hold returns what holds an attempt to
// start a run, nil for nothing; cancelled reports whether a run was last known to be cancelled.
func TreeActivities(
	hold func(ctx context.Context, attempt interpreter.PausedBy) (*interpreter.Hold, error), cancelled func(ctx context.Context, run string) bool,
) map[string]any {
	t := &trees{holds: hold, cancelled: cancelled, slots: slots.New(admissionsOfOne, 0)}
	return map[string]any{
		tree.AdmitActivity:    t.admitRuns,
		tree.MayStartActivity: t.mayStart,
		tree.CancelActivity:   t.cancelTree,
	}
}

// trees requests admissions for the activities of a worker, and cancels trees.
type trees struct {
	holds     func(context.Context, interpreter.PausedBy) (*interpreter.Hold, error)
	cancelled func(ctx context.Context, run string) bool
	slots     *slots.ByKey // of each tree
	mu        sync.Mutex
	closed    []closedRun // those that were cancelled last
}

// closedRun is a cancelled run: no more start that it waits for.
type closedRun struct{ tree, run string }

// admitRuns asks the workflow of a tree of runs to admit more runs, in their order, and reports
// whether they may start now.
func (t *trees) admitRuns(ctx context.Context, start tree.RunStart) (tree.AdmissionAnswer, error) {
	defer heartbeat.StartSending(ctx)()
	leave, err := t.slots.Enter(ctx, start.Tree.WorkflowID())
	if err != nil {
		return tree.AdmissionAnswer{}, err
	}
	defer leave()
	if start.Count > 0 && t.isClosed(ctx, start.Admission) {
		return tree.AdmissionAnswer{Closed: true}, nil
	}
	admitted, err := admitRuns(ctx, start.Admission)
	if err != nil || admitted.Count == 0 {
		return admitted, err
	}
	admitted.Hold, err = t.startHold(ctx, start.Attempt)
	return admitted, err
}

// mayStart answers for a run that has been admitted already: whether its tree is closed, and
// whether a person holds its attempt.
func (t *trees) mayStart(ctx context.Context, start tree.RunStart) (admitted tree.AdmissionAnswer, err error) {
	if admitted.Closed = t.isClosed(ctx, start.Admission); admitted.Closed {
		return admitted, nil
	}
	admitted.Hold, err = t.startHold(ctx, start.Attempt)
	return admitted, err
}

// startHold returns what holds an attempt to start a run, nil for nothing. It passes the same
// gate as all attempts.
func (t *trees) startHold(ctx context.Context, attempt *interpreter.PausedBy) (*interpreter.Hold, error) {
	if attempt == nil {
		return nil, nil
	}
	return t.holds(ctx, *attempt)
}

// closeTree makes the tree's workflow refuse further runs that other runs wait for. The request does not wait in the
// queue of this worker's admissions.
func (t *trees) closeTree(ctx context.Context, of tree.Tree, run string) error {
	if _, err := admitRuns(ctx, tree.Admission{Tree: of, Close: run}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = append(t.closed, closedRun{of.WorkflowID(), run})
	t.closed = t.closed[max(0, len(t.closed)-rememberedClosed):]
	return nil
}

// isClosed reports whether this worker knows that a run that waits for the requested ones was cancelled: the root,
// or a run whose tree this worker has cancelled. The tree's workflow knows about the others.
func (t *trees) isClosed(ctx context.Context, admission tree.Admission) bool {
	t.mu.Lock()
	closed := slices.ContainsFunc(t.closed, func(closed closedRun) bool {
		return closed.tree == admission.Tree.WorkflowID() && slices.Contains(admission.Runs, closed.run)
	})
	t.mu.Unlock()
	if closed || len(admission.Runs) == 0 {
		return closed
	}
	return t.cancelled(ctx, admission.Runs[0])
}

// admitRuns has the workflow of a tree of runs admit more of them. An
// activity that is delivered again gets the answer that the first delivery got.
func admitRuns(ctx context.Context, admission tree.Admission) (admitted tree.AdmissionAnswer, err error) {
	info, census := activity.GetInfo(ctx), lasting{
		name: tree.WorkflowName, id: admission.Tree.WorkflowID(), query: tree.CensusQuery, priority: 1, // many wait for it
		summary: fmt.Sprintf("counts the child runs of a first run, of which %d may start", admission.Tree.Most),
	}
	err = updateLasting[tree.Census](ctx, census, client.UpdateWorkflowOptions{
		UpdateID: info.WorkflowExecution.RunID + "/" + info.ActivityID, UpdateName: tree.AdmitUpdate, Args: []any{admission},
	}, &admitted)
	if err != nil {
		return admitted, fmt.Errorf("ask whether %d runs may start: %w", admission.Count, err)
	}
	return admitted, nil
}

const (
	// cancelledAtOnce bounds the runs that are cancelled at the same time.
	cancelledAtOnce = 20
	// cancelEvery is how often to search for runs that have started in the meantime, and
	// cancelQuiet how many searches must find none before it ends: the list is a little late.
	cancelEvery = 2 * time.Second
	cancelQuiet = 5
)

// cancelTree cancels all workflows that belong to a cancelled run, at any depth, and prevents
// further ones. Runs that no other run waits for do not belong to it, nor do their children.
func (t *trees) cancelTree(ctx context.Context, cancel tree.CancelRequest) error {
	defer heartbeat.StartSending(ctx)()
	if cancel.Tree.Most > 0 {
		if err := t.closeTree(ctx, cancel.Tree, cancel.Run); err != nil {
			return err
		}
	}
	cancelled := map[string]bool{}
	for quiet := 0; quiet < cancelQuiet; quiet++ {
		levels, err := openDescendants(ctx, cancel)
		if err != nil {
			return err
		}
		for _, level := range levels {
			level = slices.DeleteFunc(level, func(w *commonpb.WorkflowExecution) bool { return cancelled[w.GetRunId()] })
			if err := cancelAll(ctx, cancel, level); err != nil {
				return err
			}
			for _, w := range level {
				cancelled[w.GetRunId()], quiet = true, 0
			}
		}
		if err := waitFor(ctx, cancelEvery); err != nil {
			return err
		}
	}
	return nil
}

// openDescendants returns the workflows that belong to the cancelled run, the nearest first. A
// parent is cancelled before the child that it waits for, so that it does not take the child's
// end for a failure.
func openDescendants(ctx context.Context, cancel tree.CancelRequest) ([][]*commonpb.WorkflowExecution, error) {
	c, all := activity.GetClient(ctx), map[string]*workflowpb.WorkflowExecutionInfo{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: activity.GetInfo(ctx).Namespace, PageSize: 1000,
		Query: "ExecutionStatus = 'Running' AND RootWorkflowId = " + visibility.Quote(cancel.First),
	}
	for {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the child runs of %s: %w", cancel.Run, err)
		}
		for _, info := range page.GetExecutions() {
			all[info.GetExecution().GetWorkflowId()] = info
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	var levels [][]*commonpb.WorkflowExecution
	for _, id := range slices.Sorted(maps.Keys(all)) {
		level := depthUnder(all, id, cancel.Run)
		for len(levels) < level {
			levels = append(levels, nil)
		}
		if level > 0 {
			levels[level-1] = append(levels[level-1], all[id].GetExecution())
		}
	}
	return levels, nil
}

// depthUnder is how many levels a workflow is below an ancestor, where each level waits for the
// next; 0 if there is no such chain.
func depthUnder(all map[string]*workflowpb.WorkflowExecutionInfo, id, ancestor string) int {
	for depth := 1; depth <= len(all); depth++ {
		info := all[id]
		if _, detached := info.GetMemo().GetFields()[tree.DetachedMemo]; info == nil || detached {
			return 0
		}
		if id = info.GetParentExecution().GetWorkflowId(); id == ancestor {
			return depth
		}
	}
	return 0
}

// cancelAll cancels workflows, some at a time.
func cancelAll(ctx context.Context, cancel tree.CancelRequest, open []*commonpb.WorkflowExecution) error {
	var group errgroup.Group
	group.SetLimit(cancelledAtOnce)
	for _, w := range open {
		group.Go(func() error { return requestCancel(ctx, w, "", "the run "+cancel.Run+" was cancelled") })
	}
	return group.Wait()
}
