package run

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
)

// status is the part of a run that shows it: in search attributes, in the details of Temporal's UI, and in results
// of queries.
type status struct {
	*frame
	*visits
	protocol.RunStatus
	queues  queueView
	routing *interpreter.Routing
	// late reports whether the run takes longer than expected, and moving returns what the moves at its end wait
	// for, nil for nothing.
	late   func() bool
	moving func() *interpreter.Wait
	// reportsUntil is when the status must be published again, because a wait reported by a child ends then;
	// dropTimer cancels the timer for it.
	reportsUntil time.Time
	dropTimer    workflow.CancelFunc
}

// queueView is what the status shows of the slots of a run.
type queueView interface {
	// currentTicket returns the ticket of the run, nil if its playbook has no concurrency key.
	currentTicket() *queue.Ticket
	// isQueued reports whether the run waits for its slot.
	isQueued() bool
	// queuedVisits returns the tickets of visits that wait for the state of their step, by VisitName.
	queuedVisits() map[string]queue.Ticket
}

// publishOpen publishes the status of an open run if it has changed, and reports it to the parent run. requested is
// the control that the run is about to have.
func (s *status) publishOpen(ctx workflow.Context, requested interpreter.Control) {
	if ctx.Err() != nil || s.Failure != nil || s.Published.Ended() {
		return // another status follows at once
	}
	waits := s.openWaits(ctx, requested)
	if status := waits.Status(); status != s.Published && (s.Published != "" || status != interpreter.Running) {
		s.publishStatus(ctx, status)
	}
	s.watchReports(ctx, waits)
	if len(s.controls.Parents) > 0 {
		s.controls.ReportWaits(ctx, waits, control.ShortestReported(ctx, s.startedAt()))
	}
}

// openWaits summarizes the open work of the run.
func (s *status) openWaits(ctx workflow.Context, requested interpreter.Control) (waits control.OpenWaits) {
	switch {
	case requested.Paused:
		waits.AddWork(interpreter.Paused, time.Time{})
		return waits
	case s.queues.isQueued():
		waits.AddWork(interpreter.Queued, time.Time{})
		return waits
	case s.moving() != nil:
		waits.AddWork(interpreter.RetryPending, time.Time{})
		return waits
	}
	for _, record := range s.records {
		if record.EndedAt.IsZero() {
			s.addVisit(ctx, &waits, record, requested)
		}
	}
	return waits
}

// addVisit adds a visit of a step that has not ended.
func (s *status) addVisit(ctx workflow.Context, waits *control.OpenWaits, record *protocol.StepRecord, requested interpreter.Control) {
	elsewhere := record.Loop != nil || record.Call != ""
	since := record.Since
	if since.IsZero() {
		since = workflow.Now(ctx)
	}
	switch due := record.NextRetryAt; {
	case elsewhere && requested.IsPaused(record.Step):
		waits.AddWork(interpreter.Paused, time.Time{})
	case elsewhere && loop.AwaitsAnswers(s.book.Step(record.Step)):
		waits.AddWork(interpreter.Awaiting, time.Time{})
	case record.Status == interpreter.Running:
		waits.AddChild(ctx, s.controls, s.childRunning(record))
	case record.Status != interpreter.RetryPending:
		waits.AddWork(record.Status, time.Time{})
	case !due.IsZero() && due.Sub(since) < control.MinShownWait:
		waits.AddWork(interpreter.Running, time.Time{})
	default: // without a time, only people end the wait
		waits.AddWork(interpreter.RetryPending, due)
	}
}

// watchReports publishes the status again when the first wait that a child has reported ends, since the child sends
// no signal then.
func (s *status) watchReports(ctx workflow.Context, waits control.OpenWaits) {
	expires := waits.Expires
	if waits.Status() != interpreter.RetryPending {
		expires = time.Time{}
	}
	if expires.Equal(s.reportsUntil) {
		return
	}
	if s.reportsUntil = expires; s.dropTimer != nil {
		s.dropTimer()
		s.dropTimer = nil
	}
	if expires.IsZero() {
		return
	}
	s.dropTimer = gate.AfterWait(ctx, expires.Sub(workflow.Now(ctx)), "until the first retry is due", func(ctx workflow.Context) {
		if s.reportsUntil.Equal(expires) {
			s.reportsUntil, s.dropTimer = time.Time{}, nil
			s.describeRun(ctx)
		}
	})
}

// runProgress answers ProgressQuery. It is called often, so it omits errors of iterations and other large data.
func (s *status) runProgress() (protocol.Progress, error) {
	if s.book == nil { // its validation is not over
		return protocol.Progress{Control: s.controls.Control}, nil
	}
	progress := protocol.Progress{Steps: s.snapshotRecords(), Moving: s.moving()}
	for i, record := range s.records {
		step := &progress.Steps[i]
		if call := s.live[record]; call != nil {
			step.Attempts, step.Pages, step.Awaits = call.View().Attempt, call.View().Pages, call.View().AwaitedDetails()
			if step.Awaits != nil && step.Status == interpreter.Running {
				step.Status = interpreter.Awaiting
			}
		}
		step.Error = step.Error.ShownError()
		if step.Loop != nil {
			short := *step.Loop
			short.Errors = nil
			step.Loop = &short
		}
	}
	s.completeProgress(&progress)
	return progress, nil
}

// finalRecords returns the visits in the order in which they began, then the steps that no branch reached.
func (s *status) finalRecords() []protocol.StepRecord {
	records := s.snapshotRecords()
	if s.input.Reprocess != nil {
		return records
	}
	for _, step := range s.book.Steps {
		if s.routing.Visits[step.Name] == 0 {
			records = append(records, protocol.StepRecord{Step: step.Name, CallStatus: interpreter.CallStatus{Status: interpreter.Skipped}})
		}
	}
	return records
}

// publishStatus writes the status into the search attribute.
func (s *status) publishStatus(ctx workflow.Context, status interpreter.Status) {
	s.Published = status
	if s.input.SearchAttributes {
		s.upsertAttribute(ctx, temporal.NewSearchAttributeKeyKeyword(protocol.StatusAttribute).ValueSet(string(status)))
	}
}

// publishDeadLetters adds the failed iterations of a loop to the search attribute, as soon as the loop has ended.
func (s *status) publishDeadLetters(ctx workflow.Context, failed int) {
	if failed == 0 {
		return
	}
	s.DeadLetters += failed
	if s.input.DeadLetters {
		s.upsertAttribute(ctx, temporal.NewSearchAttributeKeyInt64(protocol.DeadLettersAttribute).ValueSet(int64(s.DeadLetters)))
	}
}

// rowsEvery is the interval in which an open run writes RowsMemo.
const rowsEvery = time.Minute

// addRows adds what a step did to data, and shows it from time to time.
func (s *status) addRows(ctx workflow.Context, rows *interpreter.Rows) {
	if rows == nil {
		return
	}
	if s.Rows = s.Rows.Plus(rows); workflow.Now(ctx).Sub(cmp.Or(s.ShownRows, s.startedAt())) >= rowsEvery {
		s.showRows(ctx)
	}
}

// showRows writes what the ended steps did to data into the memo.
func (s *status) showRows(ctx workflow.Context) {
	if s.Rows == nil {
		return
	}
	s.ShownRows = workflow.Now(ctx)
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if err := workflow.UpsertMemo(ctx, map[string]any{protocol.RowsMemo: s.Rows.Totals()}); err != nil {
		gate.Logger(ctx).Warn("cannot show the rows of the run in its memo", "error", err)
	}
}

// upsertAttribute sets a search attribute and, in the same event, NextRetryAttribute.
func (s *status) upsertAttribute(ctx workflow.Context, update temporal.SearchAttributeUpdate) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	updates := []temporal.SearchAttributeUpdate{update}
	if s.input.NextRetry {
		updates = append(updates, s.nextRetry(ctx))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		gate.Logger(ctx).Warn("cannot set a search attribute", "error", err)
	}
}

// nextRetry returns the update of NextRetryAttribute: the time of the first due retry of the steps, as far as
// children have reported theirs; it unsets the attribute if there is none.
func (s *status) nextRetry(ctx workflow.Context) temporal.SearchAttributeUpdate {
	var next time.Time
	for _, record := range s.records {
		switch report := s.controls.Reports[s.childRunning(record)]; {
		case !record.EndedAt.IsZero():
		case record.Status == interpreter.RetryPending && record.Call == "":
			next = interpreter.EarlierTime(next, record.NextRetryAt)
		case record.Status == interpreter.Running && report.StillWaits(workflow.Now(ctx)):
			next = interpreter.EarlierTime(next, report.Until)
		}
	}
	key := temporal.NewSearchAttributeKeyTime(protocol.NextRetryAttribute)
	if next.IsZero() {
		return key.ValueUnset()
	}
	return key.ValueSet(next)
}
