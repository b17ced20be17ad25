package runs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/internal/base/connect"
	"reprise/internal/base/visibility"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// Page is a part of the runs that a filter selects, in the order of List.
type Page struct {
	Runs []Found
	// Next is the token of the next page; nil on the last one.
	Next []byte
}

// Page lists one page of runs, in one call to the server. The error wraps ErrNoAttributes if the filter uses
// attributes that the namespace lacks.
func (r *Reader) Page(ctx context.Context, filter Filter, size int, token []byte) (Page, error) {
	return r.listPage(ctx, filter.pageQuery(), min(size, listPage), token)
}

// pageQuery returns the query of a filter, including the conditions that only Page uses.
func (f Filter) pageQuery() string {
	query := f.queryText()
	if f.NeedsPerson {
		query += fmt.Sprintf(" AND %s AND (%s IN ('%s', '%s') OR (%s = '%s' AND %s IS NULL))", isOpen,
			protocol.StatusAttribute, interpreter.Paused, interpreter.Awaiting,
			protocol.StatusAttribute, interpreter.RetryPending, protocol.NextRetryAttribute) // what waits without a time waits for a person
	}
	if f.WithFailed {
		query += fmt.Sprintf(" AND %s > 0 AND %s IS NULL", protocol.DeadLettersAttribute, protocol.OriginAttribute)
	}
	if f.Broken {
		failed, _ := interpreter.Failed.Info()
		query += fmt.Sprintf(" AND (%s OR (ExecutionStatus = 'Completed' AND (%s = '%s' OR (%s > 0 AND %s IS NULL))))",
			executionCondition(failed.List.Executions), protocol.StatusAttribute, interpreter.Partial, protocol.DeadLettersAttribute, protocol.OriginAttribute)
	}
	return query
}

// listPage lists one page of a query's runs. The error wraps ErrNoAttributes if the query uses attributes that the
// namespace lacks.
func (r *Reader) listPage(ctx context.Context, query string, size int, token []byte) (page Page, err error) {
	listed, err := r.listRuns(ctx, query, size, token)
	if connect.IsInvalidArgument(err) {
		return page, fmt.Errorf("%w: %w", ErrNoAttributes, err)
	}
	page.Runs = lists.Map(listed.GetExecutions(), foundOf)
	if next := listed.GetNextPageToken(); len(next) > 0 {
		page.Next = next
	}
	return page, err
}

// Reprocesses finds the reprocesses of the given runs, in one call to the server: the newest hundred. The result maps
// workflow IDs of the origins to them.
func (r *Reader) Reprocesses(ctx context.Context, of []Found) (map[string][]Found, error) {
	all := map[string][]Found{}
	of = lists.Filter(of, func(run Found) bool { return run.Origin == "" }) // what a reprocess leaves is reprocessed in the name of its origin
	if len(of) == 0 {
		return all, nil
	}
	ids := lists.Map(of, func(run Found) string { return visibility.Quote(run.WorkflowID) })
	query := fmt.Sprintf("%s AND %s IN (%s)", ofPlaybooks, protocol.OriginAttribute, strings.Join(ids, ", "))
	page, err := r.listPage(ctx, query, listPage, nil)
	for _, run := range page.Runs {
		all[run.Origin] = append(all[run.Origin], run)
	}
	return all, err
}

// LastRunID returns the last known run ID of the chain.
func (f Found) LastRunID() string { return f.last }

// Glance reads the Status of an open run with a limited number of calls to the server. It neither counts workers nor
// reads queues.
func (r *Reader) Glance(ctx context.Context, run Found, now time.Time, calls int) (*Status, error) {
	status := &Status{Found: run, Workers: -1, Steps: []Step{}, At: now, Calls: max(0, StatusCalls-calls)}
	q := &inquiry{Reader: r, status: status, run: run}
	q.spendCall()
	progress, err := q.Progress(ctx, run.WorkflowID, "")
	if err != nil {
		return nil, err
	}
	status.noteLate(now)
	status.Control, status.Late = progress.Control, status.Late || progress.Late
	for _, record := range progress.Steps {
		q.addStep(ctx, record)
	}
	status.Rows = rowsSoFar(progress.Rows, status.Steps)
	if status.Status != interpreter.Queued {
		status.deriveStatus()
	}
	return status, nil
}
