package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/connect"
	"reprise/internal/base/visibility"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// ErrNoAttributes means that the namespace lacks the search attributes of Reprise, so runs cannot be filtered by them.
var ErrNoAttributes = errors.New("the namespace does not have the search attributes of Reprise")

// Filter selects runs; its zero value selects all but child runs.
type Filter struct {
	Status   interpreter.Status // one that runs can have
	Playbook string             // its name
	Label    string             // name=value, of its playbook
	Since    time.Time
	// Children also selects runs that steps of other runs started.
	Children bool
	Limit    int // 0 is none
	// EndedSince selects only runs that ended since then.
	EndedSince time.Time
	// StartedBefore selects only runs that started before then.
	StartedBefore time.Time
	// OtherThan leaves out the runs of these playbooks, and runs whose playbook the server does not know.
	OtherThan []string
	// Schedules selects only runs that these schedules started.
	Schedules []string
	// Search is the beginning of a workflow ID or playbook name, or a complete label.
	Search string
	// Doing selects only open runs that are doing this.
	Doing string
	// Build selects only runs that are on this build, pinned or not; the zero value selects all.
	Build Build
	// NeedsPerson selects only runs that continue when people act, and WithFailed those with failed iterations; only
	// Page uses them.
	NeedsPerson, WithFailed bool
	// Broken takes only runs that have failed or succeeded in part, or that have completed with failed iterations; Page alone
	// reads it.
	Broken bool
}

// What open runs are doing, as far as the server's list shows it.
const (
	DoingWork = "running" // some of it runs
	DoingWait = "waiting" // all of it waits for a retry whose time is known, or the run is queued
)

const isOpen = "ExecutionStatus = 'Running'"

// List holds the runs that a filter selects: running ones, newest first, then ended ones, the last to end first.
type List struct {
	Runs []Found `json:"runs"`
	// More is set if the limit left out some runs.
	More bool `json:"more"`
	// NoWorker are the task queues of open runs in the list that no worker polls, if FindUnpolled was called.
	NoWorker []string `json:"no_worker,omitempty"`
	// NoWorkerBuilds are the builds to which open runs in the list are pinned and that have no workers, if FindUnpolled was called.
	NoWorkerBuilds []Build `json:"no_worker_builds,omitempty"`
}

// mostTaskQueues bounds the task queues that FindUnpolled describes, each a request to the server.
const mostTaskQueues = 20

// FindUnpolled finds the task queues of open runs in the list, and the builds that such runs are pinned to, whose workers do not
// respond. It makes at most four calls for each queue and build, for most of them one or two.
func (r *Reader) FindUnpolled(ctx context.Context, list *List, now time.Time) {
	var groups []Found // one run of each
	for _, run := range list.Runs {
		if !run.Ended() && run.TaskQueue != "" && len(groups) < mostTaskQueues && !slices.ContainsFunc(groups, run.HasWorkersOf) {
			groups = append(groups, run)
		}
	}
	unpolled := make([]bool, len(groups))
	runConcurrently(len(groups), func(i int) {
		unpolled[i] = isUnserved(ctx, r, groups[i], now)
	})
	for i, run := range groups {
		switch {
		case !unpolled[i]:
		case run.pinned():
			list.NoWorkerBuilds = append(list.NoWorkerBuilds, *run.Build)
		default:
			list.NoWorker = append(list.NoWorker, run.TaskQueue)
		}
	}
}

// freshPoll is how old the last poll of a task queue may be before FindUnpolled queries a run of it: a poll takes up to a
// minute, so workers that have died since then look like workers without work.
const freshPoll = 15 * time.Second

// isUnserved reports whether no worker responds for an open run. A run that has only just started is not queried: its first
// task may be on its way.
func isUnserved(ctx context.Context, r *Reader, run Found, now time.Time) bool {
	workers, err := r.WorkersOf(ctx, run)
	switch {
	case err != nil:
		return false
	case !workers.HavePolled(now):
		return true
	case now.Sub(workers.LastPoll) <= freshPoll || now.Sub(run.StartedAt) <= freshPoll:
		return false
	}
	_, err = r.Progress(ctx, run.WorkflowID, run.last)
	return err != nil && connect.QueryUnanswered(err) && r.Silence(ctx, run, err).HeldBy == HeldByNoWorker
}

// DescribeOpen sets what holds the open runs of the list, and by how much they are late. It needs no call to the server, but
// FindUnpolled before it.
func (l *List) DescribeOpen(now time.Time) {
	for i := range l.Runs {
		run := &l.Runs[i]
		if run.Ended() {
			continue
		}
		run.noteLate(now)
		run.HeldBy = run.holderListed()
		if run.pinned() && slices.Contains(l.NoWorkerBuilds, *run.Build) || !run.pinned() && slices.Contains(l.NoWorker, run.TaskQueue) {
			run.HeldBy = HeldByNoWorker
		}
	}
}

// List lists runs, with one call for each hundred. The error wraps ErrNoAttributes if the filter uses attributes that
// the namespace lacks.
func (r *Reader) List(ctx context.Context, filter Filter) (List, error) {
	list, query := List{Runs: []Found{}}, filter.queryText()
	var token []byte
	for {
		size := listPage
		if filter.Limit > 0 {
			size = min(size, filter.Limit-len(list.Runs)+1)
		}
		page, err := r.listPage(ctx, query, size, token)
		if err != nil {
			return list, err
		}
		if list.Runs = append(list.Runs, page.Runs...); filter.Limit > 0 && len(list.Runs) > filter.Limit {
			list.Runs, list.More = list.Runs[:filter.Limit], true
			return list, nil
		}
		if token = page.Next; len(token) == 0 {
			return list, nil
		}
	}
}

func (f Filter) queryText() string {
	query := OwnRuns
	if f.Children {
		query = ofPlaybooks
	}
	if info, known := f.Status.Info(); known {
		query += " AND " + executionCondition(info.List.Executions)
		if info.List.Attribute {
			query += fmt.Sprintf(" AND %s = %s", protocol.StatusAttribute, visibility.Quote(string(f.Status)))
		}
	}
	if f.Playbook != "" {
		query += fmt.Sprintf(" AND %s = %s", protocol.PlaybookAttribute, visibility.Quote(f.Playbook))
	}
	if f.Label != "" {
		query += fmt.Sprintf(" AND %s = %s", protocol.LabelsAttribute, visibility.Quote(f.Label))
	}
	if !f.Since.IsZero() {
		query += fmt.Sprintf(" AND StartTime >= '%s'", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if f.Build != (Build{}) {
		query += " AND " + f.Build.listFilter()
	}
	if !f.EndedSince.IsZero() {
		query += fmt.Sprintf(" AND CloseTime >= '%s'", f.EndedSince.UTC().Format(time.RFC3339Nano))
	}
	if !f.StartedBefore.IsZero() {
		query += fmt.Sprintf(" AND StartTime < '%s'", f.StartedBefore.UTC().Format(time.RFC3339Nano))
	}
	if len(f.OtherThan) > 0 {
		query += fmt.Sprintf(" AND %s NOT IN (%s)", protocol.PlaybookAttribute, strings.Join(lists.Map(f.OtherThan, visibility.Quote), ", "))
	}
	if len(f.Schedules) > 0 {
		query += fmt.Sprintf(" AND %s IN (%s)", protocol.ScheduleAttribute, strings.Join(lists.Map(f.Schedules, visibility.Quote), ", "))
	}
	if f.Search != "" {
		text := visibility.Quote(f.Search)
		query += fmt.Sprintf(" AND (WorkflowId STARTS_WITH %s OR %s STARTS_WITH %s OR %s = %s)", text, protocol.PlaybookAttribute, text, protocol.LabelsAttribute, text)
	}
	switch f.Doing {
	case DoingWork:
		query += fmt.Sprintf(" AND %s AND (%s IS NULL OR %s = '%s')", isOpen, protocol.StatusAttribute, protocol.StatusAttribute, interpreter.Running)
	case DoingWait:
		query += fmt.Sprintf(" AND %s AND (%s = '%s' OR (%s = '%s' AND %s IS NOT NULL))", isOpen, protocol.StatusAttribute, interpreter.Queued,
			protocol.StatusAttribute, interpreter.RetryPending, protocol.NextRetryAttribute)
	}
	return query
}

// executionCondition returns a list filter for runs with one of some Temporal statuses.
func executionCondition(statuses []string) string {
	if len(statuses) == 1 {
		return "ExecutionStatus = " + visibility.Quote(statuses[0])
	}
	texts := lists.Map(statuses, visibility.Quote)
	return "ExecutionStatus IN (" + strings.Join(texts, ", ") + ")"
}

// QueryError is the error if the server refused a list filter.
type QueryError struct {
	Query string
	Err   error
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("the query %s was refused: %v", e.Query, e.Err)
}

// Unwrap returns the server's reason.
func (e *QueryError) Unwrap() error { return e.Err }

// Running lists the running runs that a Temporal list filter selects, without child runs. It makes one call for each
// hundred. The error is a *QueryError if the filter is the reason.
func (r *Reader) Running(ctx context.Context, filter string) ([]Found, error) {
	var all []Found
	var token []byte
	if err := unclosedError(filter); err != nil {
		return nil, &QueryError{Query: filter, Err: err}
	}
	for {
		page, err := r.listRuns(ctx, OwnRuns+" AND "+isOpen+" AND ("+filter+")", listPage, token)
		if connect.IsInvalidArgument(err) {
			return nil, &QueryError{Query: filter, Err: errors.Unwrap(err)}
		}
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() { // whatever the server makes of the filter
			run := foundOf(info)
			if info.GetType().GetName() == protocol.PlaybookWorkflowName && !run.Ended() && info.GetParentExecution() == nil {
				all = append(all, run)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return all, nil
		}
	}
}

// unclosedError returns why a list filter cannot be put in parentheses: an unbalanced closing parenthesis would end
// ours, and include runs that we exclude. The server's SQL has strings in both kinds of quotes with escapes, names in
// backquotes without escapes, and comments; quotes and parentheses inside these do not count. Comments are refused:
// no filter needs them.
func unclosedError(filter string) error {
	open := 0
	for i := 0; i < len(filter); i++ {
		switch c := filter[i]; c {
		case '\'', '"', '`':
			length := quotedLength(filter[i+1:], c)
			if length < 0 {
				return errors.New("a quote in it is not closed")
			}
			i += length + 1
		case '(':
			open++
		case ')':
			if open--; open < 0 {
				return errors.New("it closes a bracket that it has not opened")
			}
		case '#', ';':
			return errors.New("it has a " + string(c) + " outside of texts")
		case '-', '/':
			if strings.HasPrefix(filter[i:], "--") || strings.HasPrefix(filter[i:], "/*") || strings.HasPrefix(filter[i:], "//") {
				return errors.New("it has a comment")
			}
		}
	}
	if open > 0 {
		return errors.New("a bracket in it is not closed")
	}
	return nil
}

// quotedLength returns the length of a text up to the quote that ends it; -1 if there is none.
func quotedLength(text string, end byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == end:
			return i
		case text[i] == '\\' && end != '`':
			i++
		}
	}
	return -1
}
