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
	"reprise/interpreter/service"
	"reprise/workflows/protocol"
)

// Found is a run as the server lists it.
type Found struct {
	WorkflowID string `json:"workflow_id"`
	// RunID is the first run ID of the chain, which the start of the run returned. In a list it is the last one if
	// the server does not report the first.
	RunID    string `json:"run_id"`
	Playbook string `json:"playbook,omitempty"` // "" where the server does not know
	// Status is the published status of the run. A run that was terminated or timed out is failed.
	Status interpreter.Status `json:"status"`
	// Since is when the run got its status; zero if unknown, and for runs that are running or have ended.
	Since     time.Time `json:"since,omitzero"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// NextRetryAt is when the first retry of a run is due that waits to retry; zero if people decide.
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// DeadLetters counts the failed iterations in loops that have ended.
	DeadLetters int `json:"dead_letters,omitempty"`
	// Rows is what the finished steps did to data; for an open run it is up to a minute old. Nil if nothing was
	// counted.
	Rows *interpreter.RowTotals `json:"rows,omitempty"`
	// Partition is the key of the partition that the run was started for; "" for none.
	Partition string `json:"partition,omitempty"`
	TaskQueue string `json:"task_queue"`
	// Build is the build of workers that the run is on; nil if its workers have none.
	Build *Build `json:"build,omitempty"`
	// Origin is the workflow ID of the run whose iterations this run repeats.
	Origin string `json:"origin,omitempty"`
	// Started is who started the run on the page of runs, and why; empty for other runs.
	Started interpreter.Said `json:"started,omitzero"`
	// Schedule is the ID of the schedule that started the run; "" for none.
	Schedule string `json:"-"`
	// Queue is set while the run is queued under its concurrency key.
	Queue *QueuePosition `json:"queue,omitempty"`
	// HeldBy is what holds the whole run, "" for nothing. In a list it is what the server's list says of open runs: no
	// worker, a person, an answer, a pause or a queue.
	HeldBy string `json:"held_by,omitempty"`
	// Late is set if the run takes longer than it was expected to, or did; LateSeconds is by how much an open one does,
	// in seconds, where the server knows what was expected.
	Late        bool    `json:"late,omitempty"`
	LateSeconds float64 `json:"late_seconds,omitempty"`

	// Expect is the time within which the run should end according to its playbook; 0 if it does not say or the
	// server does not know.
	Expect time.Duration `json:"-"`
	// TaskSince is since when a workflow task has waited for a worker; zero if none waits, or the run was not
	// described.
	TaskSince time.Time `json:"-"`

	last    string // run ID of the chain's last history
	isChild bool   // a step of another run has started it
	// cancelling is set if a cancel was requested; false if the run was not described. stalled is as in Status.
	cancelling bool
	stalled    string
	// activities are the pending activities; nil if the run was not described.
	activities []*workflowpb.PendingActivityInfo
	// ended is the server's status of the last workflow.
	ended enumspb.WorkflowExecutionStatus
}

// Ended reports whether the run has ended.
func (f Found) Ended() bool { return !f.EndedAt.IsZero() }

// IsChild reports whether a step of another run started this one.
func (f Found) IsChild() bool { return f.isChild }

// LateBy returns how much longer than expected the run takes or took; 0 if it is not late.
func (f Found) LateBy(now time.Time) time.Duration {
	if f.Expect == 0 {
		return 0
	}
	return max(0, cmp.Or(f.EndedAt, now).Sub(f.StartedAt)-f.Expect)
}

// noteLate notes by how much the open run is late.
func (f *Found) noteLate(now time.Time) {
	if by := f.LateBy(now); by > 0 && !f.Ended() {
		f.Late, f.LateSeconds = true, by.Round(time.Second).Seconds()
	}
}

// holderListed is what holds an open run as far as the server's list says that, "" for nothing.
func (f Found) holderListed() string {
	if f.Status == interpreter.RetryPending && f.NeedsPerson() {
		return HeldByPerson
	}
	return listedHolders[f.Status]
}

// NeedsPerson reports whether the open run continues only when a person acts, as far as the server's list shows it.
func (f Found) NeedsPerson() bool {
	switch f.Status {
	case interpreter.Awaiting, interpreter.Paused:
		return true
	case interpreter.RetryPending:
		return f.NextRetryAt.IsZero()
	}
	return false
}

// UnknownError is the error if no run has the given ID, or one that begins with it.
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

// AmbiguousError is the error if several run IDs begin with the given text.
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

// NoRunError is the error if a workflow is not a run of a playbook.
type NoRunError struct {
	ID, Type string
	// Run is the workflow ID of the run that it is part of; "" if it is part of none.
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

// Find finds a run by its workflow ID, or by a unique beginning of it. A complete ID takes precedence over
// beginnings, and a run over its reprocesses. An empty ID means the run that was started last, an empty runID the
// latest run with the ID. It makes at most four calls to the server. The error is an *UnknownError, *AmbiguousError
// or *NoRunError if the ID is the reason.
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

// FindChild finds the child run that an attempt started, from the event of the attempt's start. The error is an
// *UnknownError if the server has deleted it.
func (r *Reader) FindChild(ctx context.Context, event Event) (Found, error) {
	return r.describeRun(ctx, event.Child, event.ChildRunID)
}

// describeRun reads one run.
func (r *Reader) describeRun(ctx context.Context, id, runID string) (Found, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, id, runID)
	if connect.IsUnknownID(err) {
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

// stalledBy returns why an activity of a service workflow is retried; "" if none is. Waits of attempts and states are
// in the progress of the run instead.
func stalledBy(pending []*workflowpb.PendingActivityInfo) string {
	for _, one := range pending {
		name, failure := one.GetActivityType().GetName(), one.GetLastFailure()
		if service.IsActivity(name) && name != interpreter.StateActivity && failure.GetApplicationFailureInfo() != nil {
			return failure.GetMessage()
		}
	}
	return ""
}

// readBegin reads when a run started, if it has continued as new.
func (r *Reader) readBegin(ctx context.Context, run *Found) error {
	if run.RunID == run.last {
		return nil
	}
	described, err := r.Client.DescribeWorkflowExecution(ctx, run.WorkflowID, run.RunID)
	if connect.IsNotFound(err) {
		return nil // so it started earlier than is known
	}
	if err != nil {
		return fmt.Errorf("look for the start of the run %s: %w", run.WorkflowID, err)
	}
	run.StartedAt = described.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	return nil
}

// foundOf converts the server's list entry of a run.
func foundOf(info *workflowpb.WorkflowExecutionInfo) Found {
	run := Found{
		WorkflowID: info.GetExecution().GetWorkflowId(), last: info.GetExecution().GetRunId(), ended: info.GetStatus(),
		isChild:   info.GetParentExecution() != nil,
		RunID:     cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		StartedAt: info.GetStartTime().AsTime(), TaskQueue: info.GetTaskQueue(), Build: BuildOf(info),
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
	readAttribute(info.GetMemo().GetFields(), protocol.PartitionMemo, &run.Partition)
	run.Started = startedBy(info.GetMemo(), fields)
	var within float64
	readAttribute(info.GetMemo().GetFields(), protocol.ExpectMemo, &within)
	run.Expect = time.Duration(within * float64(time.Second))
	run.Status = interpreter.RunStatus(info.GetStatus().String(), run.Status)
	if run.Status.Ended() {
		return run
	}
	// The memo is written together with its content; the search attribute only exists in some namespaces.
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

// startedBy returns who started a run or triggered its schedule, and why, from the run's memo. fields are its search
// attributes.
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

// readAttribute decodes a field; it leaves into unchanged if there is none.
func readAttribute(fields map[string]*commonpb.Payload, name string, into any) {
	if payload := fields[name]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, into)
	}
}

const (
	// listPage is how many runs one call lists.
	listPage = 100
	// shownBeginnings bounds the IDs that an AmbiguousError lists.
	shownBeginnings = 5
)

// ofPlaybooks is the query for all runs; of a chain it finds only the last workflow run.
const ofPlaybooks = "WorkflowType = '" + protocol.PlaybookWorkflowName + "' AND ExecutionStatus != 'ContinuedAsNew'"

// OwnRuns is the list filter for runs. It leaves out other workflows, and child runs: those have the same search
// attributes.
const OwnRuns = ofPlaybooks + " AND ParentWorkflowId IS NULL"

// idBeginningWith returns the only workflow ID that begins with a text.
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

// newestRun finds the run that was started last. The server lists running runs first and the others by their end, so
// it may not be on the first page.
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
