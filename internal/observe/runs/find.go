package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/internal/base/visibility"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// Found is a run as the server lists it.
type Found struct {
	WorkflowID string `json:"workflow_id"`
	// RunID is the first of its chain, as the start of the run gave it; in a list it is
	// the last, where the server does not say which was the first.
	RunID    string `json:"run_id"`
	Playbook string `json:"playbook,omitempty"` // "" where the server does not know
	// Status is running, completed, partial_success, failed or cancelled. A run that
	// was terminated or timed out has failed.
	Status interpreter.Status `json:"status"`
	// Since is when the run began to have the status, zero where that is not known: of one
	// that is running or has ended.
	Since     time.Time `json:"since,omitzero"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// NextRetryAt is when the first retry of a run is due that waits to retry; zero where people
	// decide.
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// DeadLetters counts the iterations that failed, in loops that have ended.
	DeadLetters int `json:"dead_letters,omitempty"`
	// Rows is what the finished steps did to data, for an open run at most a minute old; nil if nothing was counted.
	Rows      *interpreter.RowTotals `json:"rows,omitempty"`
	TaskQueue string                 `json:"task_queue"`
	// Origin is the workflow ID of the run whose iterations this one runs again.
	Origin string `json:"origin,omitempty"`
	// Started is who has started the run on the page of runs, and why; of others it is empty.
	Started interpreter.Said `json:"started,omitzero"`
	// Schedule is the ID of the schedule that has started the run, "" for none.
	Schedule string `json:"-"`
	// Queue is set for a run that waits for its turn under its concurrency key.
	Queue *QueuePosition `json:"queue,omitempty"`

	// Expect is the time within which the run should end, by its playbook; 0 without one, or if the server does not
	// know it.
	Expect time.Duration `json:"-"`
	// TaskSince is since when a task waits for a worker which decides how the run continues; zero for
	// none, and where the run was not described.
	TaskSince time.Time `json:"-"`

	last    string // run ID of the chain's last history
	isChild bool   // a step of another run has started it
	// cancelling says that a cancel was requested, if the run was described; stalled is as in
	// Status.
	cancelling bool
	stalled    string
	// activities are the activities that had not ended, where the run was described.
	activities []*workflowpb.PendingActivityInfo
	// ended is how the server says that it ended.
	ended enumspb.WorkflowExecutionStatus
}

// Ended reports whether the run has ended.
func (f Found) Ended() bool { return !f.EndedAt.IsZero() }

// IsChild reports whether a step of another run has started it.
func (f Found) IsChild() bool { return f.isChild }

// LateBy is how much longer than expected the run takes, or took; 0 for one that is not late.
func (f Found) LateBy(now time.Time) time.Duration {
	if f.Expect == 0 {
		return 0
	}
	return max(0, cmp.Or(f.EndedAt, now).Sub(f.StartedAt)-f.Expect)
}

// NeedsPerson reports whether a person has to act before the open run continues, as far as the server's list says that.
func (f Found) NeedsPerson() bool {
	switch f.Status {
	case interpreter.Awaiting, interpreter.Paused:
		return true
	case interpreter.RetryPending:
		return f.NextRetryAt.IsZero()
	}
	return false
}

// UnknownError says that there is no run with an ID, or beginning with it.
type UnknownError struct {
	ID      string
	RunID   string // that was requested, "" for the latest
	Nearest string // an ID that is like it, "" for none
}

func (e *UnknownError) Error() string {
	if e.ID == "" {
		return "there are no runs yet"
	}
	if e.RunID != "" {
		return fmt.Sprintf("%v: no run with the ID %q has the run ID %q", ErrNotFound, e.ID, e.RunID)
	}
	text := fmt.Sprintf("%v: no run has the ID %q or one that begins with it", ErrNotFound, e.ID)
	if e.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

// Unwrap returns ErrNotFound.
func (e *UnknownError) Unwrap() error { return ErrNotFound }

// AmbiguousError means that several run IDs begin with the given one.
type AmbiguousError struct {
	ID   string
	IDs  []string // some of them, sorted
	More bool     // there are others
}

func (e *AmbiguousError) Error() string {
	text := fmt.Sprintf("%q is the beginning of several IDs: %s", e.ID, strings.Join(e.IDs, ", "))
	if e.More {
		text += " and others"
	}
	return text + "; give more of it"
}

// NoRunError says that a workflow is no run of a playbook.
type NoRunError struct {
	ID, Type string
	// Run is the workflow ID of the run that it is a part of, "" for none.
	Run string
}

func (e *NoRunError) Error() string {
	if e.Run != "" {
		return fmt.Sprintf("%s is a part of the run %s (%s); name that run, and the part with --step and --index", e.ID, e.Run, e.Type)
	}
	return fmt.Sprintf("%s is a %s, no run of a playbook", e.ID, e.Type)
}

// Unwrap returns ErrNotFound.
func (e *NoRunError) Unwrap() error { return ErrNotFound }

// Find finds a run by its workflow ID or the beginning of one, which no other run
// may share; a whole ID comes before beginnings, and a run before its reprocesses.
// An empty ID is the run that was started last, an empty runID the latest run
// with the ID. It takes at most four calls to the server. The error is an
// *UnknownError, *AmbiguousError or *NoRunError where the ID is why.
func (r *Reader) Find(ctx context.Context, id, runID string) (Found, error) {
	if id == "" {
		return r.newestRun(ctx)
	}
	found, err := r.describeRun(ctx, id, runID)
	if _, ok := errors.AsType[*UnknownError](err); !ok {
		return found, err
	}
	if id, err = r.idBeginningWith(ctx, id); err != nil {
		return Found{}, err
	}
	return r.describeRun(ctx, id, runID)
}

// FindChild finds the run that an attempt is, by the event of its start. The error is an
// *UnknownError where the server has deleted it.
func (r *Reader) FindChild(ctx context.Context, event Event) (Found, error) {
	return r.describeRun(ctx, event.Child, event.ChildRunID)
}

// describeRun reads one run.
func (r *Reader) describeRun(ctx context.Context, id, runID string) (Found, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, id, runID)
	if connect.UnknownID(err) {
		return Found{}, &UnknownError{ID: id, RunID: runID}
	}
	if err != nil {
		return Found{}, fmt.Errorf("look for the run %s: %w", id, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if kind := info.GetType().GetName(); kind != protocol.PlaybookWorkflowName {
		no := &NoRunError{ID: id, Type: kind}
		if root := info.GetRootExecution().GetWorkflowId(); root != id {
			no.Run = root
		}
		return Found{}, no
	}
	run := foundOf(info)
	run.cancelling = described.GetWorkflowExtendedInfo().GetCancelRequested()
	run.activities = described.GetPendingActivities()
	run.stalled = stalledBy(run.activities)
	if task := described.GetPendingWorkflowTask(); task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED {
		run.TaskSince = cmp.Or(task.GetOriginalScheduledTime(), task.GetScheduledTime()).AsTime()
	}
	return run, r.readBegin(ctx, &run)
}

// stalledBy is why an activity that is no attempt is delivered again, "" for none. What attempts and
// states wait for is in the progress of the run.
func stalledBy(pending []*workflowpb.PendingActivityInfo) string {
	for _, one := range pending {
		name, failure := one.GetActivityType().GetName(), one.GetLastFailure()
		if interpreter.IsServiceActivity(name) && name != interpreter.StateActivity && failure.GetApplicationFailureInfo() != nil {
			return failure.GetMessage()
		}
	}
	return ""
}

// readBegin reads when a run started that has continued as new.
func (r *Reader) readBegin(ctx context.Context, run *Found) error {
	if run.RunID == run.last {
		return nil
	}
	described, err := r.Client.DescribeWorkflowExecution(ctx, run.WorkflowID, run.RunID)
	if connect.NotFound(err) {
		return nil // so it started earlier than is known
	}
	if err != nil {
		return fmt.Errorf("look for the start of the run %s: %w", run.WorkflowID, err)
	}
	run.StartedAt = described.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	return nil
}

// foundOf takes what the server lists of a run.
func foundOf(info *workflowpb.WorkflowExecutionInfo) Found {
	run := Found{
		WorkflowID: info.GetExecution().GetWorkflowId(), last: info.GetExecution().GetRunId(), ended: info.GetStatus(),
		isChild:   info.GetParentExecution() != nil,
		RunID:     cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		StartedAt: info.GetStartTime().AsTime(), TaskQueue: info.GetTaskQueue(),
	}
	if info.GetCloseTime() != nil {
		run.EndedAt = info.GetCloseTime().AsTime()
	}
	fields := info.GetSearchAttributes().GetIndexedFields()
	readAttribute(fields, protocol.PlaybookAttribute, &run.Playbook)
	readAttribute(fields, protocol.DeadLettersAttribute, &run.DeadLetters)
	readAttribute(fields, protocol.StatusAttribute, &run.Status)
	readAttribute(fields, protocol.OriginAttribute, &run.Origin)
	readAttribute(fields, protocol.ScheduleAttribute, &run.Schedule)
	readAttribute(info.GetMemo().GetFields(), protocol.RowsMemo, &run.Rows)
	run.Started = startedBy(info.GetMemo(), fields)
	var within float64
	readAttribute(info.GetMemo().GetFields(), protocol.ExpectMemo, &within)
	run.Expect = time.Duration(within * float64(time.Second))
	run.Status = interpreter.RunStatus(info.GetStatus().String(), run.Status)
	if run.Status.Ended() {
		return run
	}
	// The memo is written with what it says, the attribute only where the namespace has it.
	run.Queue = queueOf(info.GetMemo())
	switch run.Status {
	case interpreter.Paused:
		run.Since = controlOf(info.GetMemo()).Held[""].At
	case interpreter.RetryPending:
		readAttribute(fields, protocol.NextRetryAttribute, &run.NextRetryAt)
	case interpreter.Running, interpreter.Queued:
		if run.Queue != nil { // where only a child run is queued, there is none
			run.Status, run.Since = interpreter.Queued, run.Queue.Since
		}
	}
	return run
}

// startedBy reads from the memo of a run who has started it or triggered its schedule, and why. Fields are its
// search attributes.
func startedBy(memo *commonpb.Memo, fields map[string]*commonpb.Payload) interpreter.Said {
	var said interpreter.Said
	var scheduled time.Time
	var triggers map[string]interpreter.Said
	if readAttribute(fields, protocol.ScheduledAttribute, &scheduled); !scheduled.IsZero() {
		readAttribute(memo.GetFields(), protocol.TriggersMemo, &triggers)
		said = triggers[protocol.TriggerKey(scheduled)]
	}
	readAttribute(memo.GetFields(), protocol.StartedByMemo, &said.By)
	readAttribute(memo.GetFields(), protocol.StartReasonMemo, &said.Reason)
	return said
}

// readAttribute reads a search attribute; it leaves into unchanged if there is none.
func readAttribute(fields map[string]*commonpb.Payload, name string, into any) {
	if payload := fields[name]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, into)
	}
}

const (
	// listPage is how many runs one call lists.
	listPage = 100
	// shownBeginnings bounds the IDs that an AmbiguousError names.
	shownBeginnings = 5
)

// ofPlaybooks is the query for all runs; of a chain only the last history.
const ofPlaybooks = "WorkflowType = '" + protocol.PlaybookWorkflowName + "' AND ExecutionStatus != 'ContinuedAsNew'"

// OwnRuns is the list filter for runs. It leaves out other workflows, and runs that steps of other runs started: those
// have the same search attributes.
const OwnRuns = ofPlaybooks + " AND ParentWorkflowId IS NULL"

// idBeginningWith finds the one workflow ID that begins with a text.
func (r *Reader) idBeginningWith(ctx context.Context, text string) (string, error) {
	query := OwnRuns
	if strings.Contains(text, "/") {
		query = ofPlaybooks // it may be one that a step has started
	}
	page, err := r.listRuns(ctx, query+" AND WorkflowId STARTS_WITH "+visibility.Quote(text), listPage, nil)
	if err != nil {
		return "", err
	}
	ids := lists.Map(page.GetExecutions(), func(info *workflowpb.WorkflowExecutionInfo) string { return info.GetExecution().GetWorkflowId() })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	all := slices.Clone(ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { // a reprocess, beside its run
		return slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(id, other+"/") })
	})
	switch {
	case slices.Contains(ids, text): // the whole ID of a run that was not meant
		return text, nil
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) == 0:
		return "", r.unknownError(ctx, text)
	}
	more := len(ids) > shownBeginnings || len(page.GetNextPageToken()) > 0
	return "", &AmbiguousError{ID: text, IDs: ids[:min(len(ids), shownBeginnings)], More: more}
}

// unknownError returns the error for an ID that no run has. It suggests the most similar ID.
func (r *Reader) unknownError(ctx context.Context, id string) error {
	page, err := r.listRuns(ctx, OwnRuns, listPage, nil)
	if err != nil {
		return err
	}
	ids := lists.Map(page.GetExecutions(), func(info *workflowpb.WorkflowExecutionInfo) string { return info.GetExecution().GetWorkflowId() })
	return &UnknownError{ID: id, Nearest: expression.Suggest(id, ids)}
}

// newestRun finds the run that was started last. The server lists running ones first and
// the others by their end, so a first page may not have it.
func (r *Reader) newestRun(ctx context.Context) (Found, error) {
	var newest *workflowpb.WorkflowExecutionInfo
	query := OwnRuns
	for {
		page, err := r.listRuns(ctx, query, listPage, nil)
		if err != nil {
			return Found{}, err
		}
		for _, info := range page.GetExecutions() {
			if newest == nil || info.GetStartTime().AsTime().After(newest.GetStartTime().AsTime()) {
				newest = info
			}
		}
		if newest == nil {
			return Found{}, &UnknownError{}
		}
		if len(page.GetNextPageToken()) == 0 {
			return r.describeRun(ctx, newest.GetExecution().GetWorkflowId(), newest.GetExecution().GetRunId())
		}
		query = fmt.Sprintf("%s AND StartTime > '%s'", OwnRuns, newest.GetStartTime().AsTime().UTC().Format(time.RFC3339Nano))
	}
}

func (r *Reader) listRuns(
	ctx context.Context, query string, size int, token []byte,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page, err := r.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: r.Namespace, Query: query, PageSize: int32(size), NextPageToken: token, // at most listPage
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return page, nil
}
