package runs

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/interpreter"
)

// EndedCounts counts runs that have ended. Completed includes partial successes: the server groups by its own statuses only.
type EndedCounts struct{ Completed, Failed int }

// CountEnded counts the runs that ended since a time, in one call to the server.
func CountEnded(ctx context.Context, r *Reader, since time.Time) (EndedCounts, error) {
	var counts EndedCounts
	counted, err := countRuns(ctx, r, Filter{EndedSince: since}.queryText()+" GROUP BY ExecutionStatus")
	if err != nil {
		return counts, err
	}
	for _, group := range counted.GetGroups() {
		var status string
		if values := group.GetGroupValues(); len(values) != 1 || converter.GetDefaultDataConverter().FromPayload(values[0], &status) != nil {
			continue
		}
		n := int(group.GetCount())
		switch interpreter.RunStatus(status, "") {
		case interpreter.Completed:
			counts.Completed += n
		case interpreter.Failed:
			counts.Failed += n
		}
	}
	return counts, nil
}

// CountRuns returns how many runs a filter selects, in one call to the server. The error wraps ErrNoAttributes if the
// filter uses a search attribute that the namespace does not have.
func CountRuns(ctx context.Context, r *Reader, filter Filter) (int, error) {
	counted, err := countRuns(ctx, r, filter.pageQuery())
	if connect.IsInvalidArgument(err) {
		return 0, fmt.Errorf("%w: %w", ErrNoAttributes, err)
	}
	return int(counted.GetCount()), err
}

func countRuns(ctx context.Context, r *Reader, query string) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	counted, err := r.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: r.Namespace, Query: query})
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	return counted, nil
}

// mostOpen bounds the open runs that OpenRuns lists. The page of runs lists them with each load, and a namespace may
// have 100,000.
const mostOpen = 500

// OpenRuns lists the newest 500 open runs, in one call to the server; more says that there are others.
func OpenRuns(ctx context.Context, r *Reader) (open []Found, more bool, err error) {
	page, err := r.listPage(ctx, OwnRuns+" AND "+isOpen, mostOpen, nil)
	return page.Runs, page.Next != nil, err
}
