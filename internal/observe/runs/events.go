package runs

import (
	"context"
	"errors"
	"fmt"

	"reprise/internal/base/connect"
	"reprise/workflows/protocol"
)

// Events emits the events of a run in order, each once. Histories of iterations are read only if they are requested.
// It holds in memory no more than the histories of workflows that were open at the same time.
func (r *Reader) Events(ctx context.Context, run Found, filter EventFilter, emit func(Event) error) (EventsInfo, error) {
	root := source{workflowID: run.WorkflowID, runID: run.RunID, workflow: protocol.PlaybookWorkflowName, first: true}
	return mergeEvents(ctx, &serverOrigin{Reader: r, run: run}, root, filter, emit)
}

// serverOrigin reads the events of a run from the server.
type serverOrigin struct {
	*Reader
	run Found
}

// load implements origin.
func (o *serverOrigin) load(ctx context.Context, from source, filter EventFilter) (*projector, error) {
	recorded, err := o.recordedEvents(ctx, from.workflowID, from.runID)
	if err != nil {
		return nil, err
	}
	p, err := projectHistory(from, recorded, filter, o.newValues(ctx))
	if err != nil || !p.isOpen() || len(p.made) == len(p.ended) { // no attempt is pending
		return p, err
	}
	described, err := o.Client.DescribeWorkflowExecution(ctx, from.workflowID, from.runID)
	if err != nil {
		return nil, fmt.Errorf("look for what %s does: %w", from.workflowID, err)
	}
	p.addPending(described.GetPendingActivities())
	return p, nil
}

// revision implements origin.
func (o *serverOrigin) revision(ctx context.Context, of source) (string, error) {
	described, err := o.Client.DescribeWorkflowExecution(ctx, of.workflowID, of.runID)
	if err != nil {
		return "", fmt.Errorf("find out whether %s is open: %w", of.workflowID, err)
	}
	revision := fmt.Sprint(described.GetWorkflowExecutionInfo().GetHistoryLength())
	for _, activity := range described.GetPendingActivities() {
		revision += fmt.Sprint(" ", activity.GetActivityId(), activity.GetState())
	}
	return revision, nil
}

// records implements origin.
func (o *serverOrigin) records(ctx context.Context, latest bool) ([]protocol.StepRecord, string, error) {
	found, err := o.describeRun(ctx, o.run.WorkflowID, o.run.last)
	if err != nil {
		return nil, "", err
	}
	if latest { // it may have continued as another
		if last, err := o.describeRun(ctx, o.run.WorkflowID, ""); err == nil && last.RunID == o.run.RunID {
			found = last
		}
	}
	if found.Ended() {
		result, err := o.lastResult(ctx, found)
		if err != nil || result.Status != "" || result.Error != nil {
			return result.Steps, "", err
		}
	}
	progress, err := o.Progress(ctx, found.WorkflowID, found.last)
	if err == nil {
		return progress.Steps, "", nil
	}
	if ctx.Err() != nil || connect.IsUnavailable(err) {
		return nil, "", errors.Join(ctx.Err(), err)
	}
	return nil, o.Silence(ctx, found, err).Text(found, "") + ", so the starts and ends of steps are left out", nil
}
