package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// StatusCalls is the maximum number of calls to the server by Status. What would need more is left out, with a note.
const StatusCalls = 6

// inquiry is the state of one Status request.
type inquiry struct {
	*Reader
	status *Status
	run    Found
	// ofCalls are the pending activities of calls that continue in other workflows.
	ofCalls []*workflowpb.PendingActivityInfo
}

// spendCall takes a call from the budget; false if none is left.
func (q *inquiry) spendCall() bool {
	if q.status.Calls == StatusCalls {
		return false
	}
	q.status.Calls++
	return true
}

func (q *inquiry) addNotef(format string, args ...any) {
	q.status.Notes = append(q.status.Notes, fmt.Sprintf(format, args...))
}

// Status reads the status of a run: an open run from the answers of its workflows, an ended one from its result. It
// makes at most StatusCalls calls, and reads no history except the last event of an ended run, or the last events of
// a cancelled one.
func (r *Reader) Status(ctx context.Context, run Found, now time.Time) (*Status, error) {
	status := &Status{Found: run, Workers: -1, Steps: []Step{}, At: now}
	status.noteLate(now)
	q := &inquiry{Reader: r, status: status, run: run}
	if run.cancelling || run.ended == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		q.readCancelled(ctx)
	}
	if run.Ended() {
		return status, q.readEnded(ctx)
	}
	return status, q.queryOpen(ctx)
}

// lastEvents is how many of a run's last events are searched for a cancel, which a few events for each child and
// notice follow.
const lastEvents = 200

// readCancelled reads who cancelled the run.
func (q *inquiry) readCancelled(ctx context.Context) {
	q.spendCall()
	page, err := q.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: q.Namespace, MaximumPageSize: lastEvents,
		Execution: &commonpb.WorkflowExecution{WorkflowId: q.run.WorkflowID, RunId: q.run.last},
	})
	if err != nil {
		q.addNotef("who cancelled the run is not known: %v", err)
		return
	}
	for _, event := range page.GetHistory().GetEvents() {
		if requested := event.GetWorkflowExecutionCancelRequestedEventAttributes(); requested != nil {
			q.status.Cancel = &interpreter.Said{By: requested.GetIdentity(), Reason: requested.GetCause(), At: event.GetEventTime().AsTime()}
			return
		}
	}
}

// queryOpen queries an open run and, at the same time, its workers.
func (q *inquiry) queryOpen(ctx context.Context) error {
	q.status.Calls += 2
	var progress protocol.Progress
	var workers Workers
	var unanswered, unknown error
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error {
		progress, unanswered = q.Progress(asking, q.run.WorkflowID, "")
		return nil
	})
	if workers, unknown = q.WorkersOf(ctx, q.run); unknown == nil && workers.Count == 0 {
		stop() // no worker will respond
	}
	_ = group.Wait()
	q.status.Workers = workers.Count
	switch {
	case unknown != nil:
		return fmt.Errorf("query the workers of the run %s: %w", q.run.WorkflowID, unknown)
	case workers.Count == 0:
		since := q.waitsSince(workers)
		q.status.HeldBy, q.status.NoCurrentBuild = HeldByNoWorker, workers.Deployment
		q.addNotef("%s%s, so the steps of the run are not known; %s", workers.AbsenceReason(q.run), since, workers.Remedy(q.run))
		return nil
	case unanswered != nil && (ctx.Err() != nil || connect.IsUnavailable(unanswered)):
		return unanswered
	case unanswered != nil:
		q.explainSilence(ctx, workers, unanswered)
		return nil
	}
	q.status.Control, q.status.Late, q.status.Stalled = progress.Control, q.status.Late || progress.Late, q.run.stalled
	q.status.ValidationWarnings = progress.ValidationWarnings
	var missed string
	if q.status.HeldByParents, missed = q.heldByParents(ctx, progress.Parents, q.spendCall); missed != "" {
		q.addNotef("whether the parent run %s holds this one was not answered within %d calls to the server", missed, StatusCalls)
	}
	for _, record := range progress.Steps {
		q.addStep(ctx, record)
	}
	for _, name := range progress.Pending {
		q.status.Steps = append(q.status.Steps, Step{Step: name, Item: Item{Status: interpreter.Pending}})
	}
	q.readActivities(ctx)
	q.status.Rows = rowsSoFar(progress.Rows, q.status.Steps)
	q.status.deriveStatus()
	if wait := progress.Moving; wait != nil && q.status.Status != interpreter.Paused {
		q.status.Status, q.status.HeldBy, q.status.Stalled = wait.Reason.Status(), holders[wait.Reason], wait.Summary
	}
	q.readQueue(ctx, progress.Ticket)
	for i := range q.status.Steps {
		step := &q.status.Steps[i]
		visit := protocol.VisitName(step.Step, step.Visit)
		if ticket, queued := progress.States[visit]; queued && q.spendCall() {
			step.Queue = q.queuedBehind(ctx, &ticket, visit)
		}
	}
	return nil
}

// rowsSoFar returns what an open run has done to data, including steps that are still open.
func rowsSoFar(ended *interpreter.Rows, steps []Step) *interpreter.Rows {
	for _, step := range steps {
		if step.EndedAt.IsZero() {
			ended = ended.Plus(step.Rows)
		}
	}
	return ended
}

// explainSilence notes why no worker responded for the run although some poll its task queue.
func (q *inquiry) explainSilence(ctx context.Context, workers Workers, unanswered error) {
	silence := q.Silence(ctx, q.run, unanswered)
	q.status.Calls += silence.calls
	q.status.HeldBy, q.status.Failure = silence.HeldBy, silence.Failure
	if silence.HeldBy != HeldByNoWorker {
		q.addNotef("%s; its steps are not known until that works", silence.Text(q.run, ""))
		return
	}
	q.addNotef("%s, so the steps of the run are not known; is one running?", silence.Text(q.run, q.waitsSince(workers)))
}

// waitsSince describes how long a task of the run has waited for a worker or, without a task, when a worker last
// polled.
func (q *inquiry) waitsSince(workers Workers) (since string) {
	switch at := q.status.At; {
	case !q.run.TaskSince.IsZero():
		q.status.NoWorkerSince = q.run.TaskSince
		since = ", and the run has waited for one for " + terminal.Duration(at.Sub(q.run.TaskSince))
	case !workers.LastPoll.IsZero():
		q.status.NoWorkerSince = workers.LastPoll
		since = ", and the last has polled " + terminal.Ago(workers.LastPoll, at)
	}
	return since
}

// readQueue reads what a queued run waits for, or which runs are queued behind one that has a slot.
func (q *inquiry) readQueue(ctx context.Context, ticket *queue.Ticket) {
	switch {
	case ticket.Waits():
		if q.status.Status != interpreter.Paused {
			q.status.Status, q.status.HeldBy, q.status.Since = interpreter.Queued, HeldByConcurrency, ticket.Since
		}
		q.spendCall()
		q.status.Queue = q.queuedBehind(ctx, ticket, "")
	case ticket != nil && ticket.State == queue.Granted && q.spendCall():
		described, err := q.queryQueue(ctx, ticket.Queue, nil)
		if err != nil {
			q.addNotef("the queue of the concurrency key %s gave no answer", ticket.Name.Key)
			return
		}
		q.status.Slot = &QueueSlot{
			Name: ticket.Name, WorkflowID: ticket.Queue, Limit: described.Limit, Running: described.Running, Waiting: described.Waiting,
		}
	}
}

// queuedBehind returns what the run, or a visit of a step, is queued for. The caller has spent the first call.
func (q *inquiry) queuedBehind(ctx context.Context, ticket *queue.Ticket, visit string) *QueuePosition {
	waits := queue.Member{WorkflowID: q.run.WorkflowID, RunID: q.run.RunID, Visit: visit}
	position, err := q.queuePosition(ctx, ticket, waits)
	q.findUnpolled(ctx, position, q.run.TaskQueue, err == nil, q.spendCall)
	if err != nil && position.NoWorker == nil {
		q.addNotef("its position in the queue of %s was not answered", ticket.Name.Describe())
	}
	return position
}

// addStep adds the status of a step visit.
func (q *inquiry) addStep(ctx context.Context, record protocol.StepRecord) {
	if record.Call != "" && record.EndedAt.IsZero() && q.spendCall() {
		if call, err := q.CallProgress(ctx, record.Call); err == nil {
			record = WithCall(record, call)
		}
		if record.Incremental != nil && q.spendCall() {
			if described, err := q.Client.DescribeWorkflowExecution(ctx, record.Call, ""); err == nil {
				q.ofCalls = append(q.ofCalls, described.GetPendingActivities()...)
			}
		}
	}
	step := q.stepOf(record)
	if record.EndedAt.IsZero() && isOpenLoop(record.Loop) {
		if len(q.status.HeldByParents) > 0 {
			step.Status, step.HeldBy = interpreter.Paused, HeldByPause
		}
		q.queryLoop(ctx, &step)
	}
	if step.EndedAt.IsZero() && step.Child != "" {
		children, missed := q.describeChild(ctx, step.Child, q.spendCall)
		if step.ChildRuns = children; missed != "" {
			q.addNotef("what the run %s waits for was not queried: that would take more than %d calls to the server", missed, StatusCalls)
		}
	}
	q.status.Steps = append(q.status.Steps, step)
}

// queryLoop queries a running loop, its shards and, with the rest of the budget, its children.
func (q *inquiry) queryLoop(ctx context.Context, step *Step) {
	progress, unread, err := q.loopProgress(ctx, step.Loop.WorkflowID, q.spendCall)
	if err != nil && !connect.IsNotFound(err) { // else it has not begun
		unread = notAnswered
	}
	step.silent = unread != ""
	switch unread {
	case notQueried:
		q.addNotef("the progress of the loop of step %s was not queried: that would take more than %d calls to the server", step.Step, StatusCalls)
	case notAnswered:
		q.addNotef("the loop of step %s, or a shard of it, gave no answer, so more of its iterations may have ended; are its workers up?", step.Step)
	}
	if progress.Source != nil {
		step.readSource(*progress.Source, progress.Stats.Total)
	}
	if unread == "" && progress.Stats.Total == 0 { // it is about to begin or to end
		step.Loop.Pending, step.Loop.Cancelled = step.Loop.Total, 0
		return
	}
	c := step.Loop
	c.Success, c.Failed = progress.Stats.Success+progress.Within.Success, progress.Stats.Failed+progress.Within.Failed
	c.Truncated = progress.Stats.Truncated
	c.Running, c.Waiting, c.Cancelled = progress.Active, progress.Waiting, 0
	c.Asks, c.Plays = progress.Awaits, progress.Plays
	if c.Pending = max(0, c.Total-c.CountDone()-c.Running-c.Waiting); step.silent {
		c.Unknown, c.Pending = c.Pending, 0
	}
	step.Rows = progress.Rows
	step.open, step.NextRetryAt, step.ended = progress.Open, progress.NextRetryAt, progress.Stats
	step.active = progress.Active + progress.Waiting + progress.Returning + progress.Within.Success + progress.Within.Failed
	q.addOpenIterations(ctx, step)
	step.summarizeLoop(q.status.At)
}

// readSource sets the state of the loop's source, and how many elements it has given.
func (s *Step) readSource(source protocol.SourceProgress, total int) {
	item := itemOf(source.CallStatus)
	s.Loop.Total, s.Loop.Open, s.Loop.Source = total, source.Reads, &item
}

// addOpenIterations queries the children of a loop, if few are open, for iterations that wait or have ended: the loop
// itself does not know about iterations in slots.
func (q *inquiry) addOpenIterations(ctx context.Context, step *Step) {
	if left := StatusCalls - q.status.Calls; len(step.open) > left {
		if step.Loop.Waiting > 0 {
			step.groupWaits(q.openIterations(ctx, step.open[:min(mostSampled, left)]))
		}
		return
	}
	answers := q.openIterations(ctx, step.open)
	step.recountLoop(answers)
	var children []string
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			if iteration.Child != "" {
				children = append(children, iteration.Child)
			}
		}
	}
	if len(children) <= StatusCalls-q.status.Calls {
		for _, id := range children {
			found, _ := q.describeChild(ctx, id, q.spendCall)
			step.Awaited, step.Held = append(step.Awaited, found.Awaited...), append(step.Held, found.Held...)
		}
	}
}

// openIterations queries children of a loop for their iterations.
func (q *inquiry) openIterations(ctx context.Context, open []string) []protocol.Iterations {
	answers := make([]protocol.Iterations, len(open))
	var group errgroup.Group
	for i, id := range open {
		q.spendCall()
		group.Go(func() error {
			_ = q.queryWorkflow(ctx, id, "", protocol.IterationsQuery, &answers[i]) // one that gives none runs
			return nil
		})
	}
	_ = group.Wait()
	for i, answer := range answers {
		if len(answer.Hosted) > 0 && q.spendCall() {
			q.addHosted(ctx, open[i], answer)
		}
	}
	return answers
}

// readEnded reads the result of an ended run.
func (q *inquiry) readEnded(ctx context.Context) error {
	q.spendCall()
	result, err := q.lastResult(ctx, q.run)
	if err != nil {
		return err
	}
	q.status.Status, q.status.Error = cmp.Or(result.Status, q.status.Status), result.Error
	q.status.Warnings, q.status.FurtherWarnings, q.status.Late = result.Warnings, result.FurtherWarnings(), result.Late
	q.status.ValidationWarnings, q.status.Rows = result.ValidationWarnings, result.Rows
	if result.Status == "" && q.run.ended != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		q.lastProgress(ctx)
		return nil
	}
	q.status.Steps = append(q.status.Steps, lists.Map(result.Steps, q.stepOf)...)
	return nil
}

// lastProgress queries a run that ended without a result for its last progress: a worker can still answer. Items that
// had not ended then never will.
func (q *inquiry) lastProgress(ctx context.Context) {
	q.addNotef("the run ended without a result: %s", endWord(q.run.ended))
	q.spendCall()
	progress, err := q.Progress(ctx, q.run.WorkflowID, q.run.last)
	if err != nil {
		q.addNotef("no worker of the task queue %q responds, so how far the run came is not known", q.run.TaskQueue)
		return
	}
	q.status.ValidationWarnings, q.status.Rows = progress.ValidationWarnings, progress.Rows
	for _, record := range progress.Steps {
		step := q.stepOf(record)
		if step.EndedAt.IsZero() {
			step.Item = Item{Status: interpreter.Cancelled, Attempt: step.Attempt, Pages: step.Pages, Error: step.Error}
			step.EndedAt = q.run.EndedAt
		}
		q.status.Steps = append(q.status.Steps, step)
	}
	for _, name := range progress.Pending {
		q.status.Steps = append(q.status.Steps, Step{Step: name, Item: Item{Status: interpreter.Skipped}})
	}
}

func endWord(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "it was terminated"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "it timed out"
	}
	return strings.ToLower(status.String())
}

// FailureOf returns the failure of an ended run, or that of its first failed iteration, or, of a partial success without any, its
// first warning; nil if there is none, such as for a terminated run. It makes one call.
func (r *Reader) FailureOf(ctx context.Context, run Found) (*interpreter.ErrorObject, error) {
	result, err := r.lastResult(ctx, run)
	if result.Error != nil {
		return result.Error, err
	}
	for _, step := range result.Steps {
		if step.Loop != nil && len(step.Loop.Errors) > 0 {
			return step.Loop.Errors[0].Error, err
		}
	}
	if result.Status == interpreter.Partial && len(result.Warnings) > 0 {
		return &interpreter.ErrorObject{Message: result.Warnings[0]}, err
	}
	return nil, err
}

// RunEnd is how a run ended.
type RunEnd struct {
	Result protocol.Result // without a status if the run has none
	// Partition is the key of the partition that the run was started for; "" for none.
	Partition string
	Book      *playbook.Playbook // nil if it cannot be read
}

// ReadEnd reads how the latest run with a workflow ID ended. It makes two calls.
func ReadEnd(ctx context.Context, r *Reader, workflowID string) (RunEnd, error) {
	var end RunEnd
	var err error
	if end.Result, err = r.lastResult(ctx, Found{WorkflowID: workflowID}); err != nil {
		return end, err
	}
	if input, err := r.Input(ctx, workflowID, ""); err == nil { // without it the places in the file are not known
		end.Partition = input.Partition
		end.Book, _ = (&Run{Input: input}).Book()
	}
	return end, nil
}

// lastResult returns the result of an ended run from its last event. If the run ended without a result, Status is
// empty; if the playbook was refused, Error is set.
func (r *Reader) lastResult(ctx context.Context, run Found) (protocol.Result, error) {
	events := r.Client.GetWorkflowHistory(ctx, run.WorkflowID, run.last, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	end, err := events.Next()
	if err != nil {
		return protocol.Result{}, fmt.Errorf("read how %s ended: %w", run.WorkflowID, err)
	}
	return r.newValues(ctx).resultOf(&child{workflowID: run.WorkflowID, end: end})
}
