package hosting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// hostedCall is one call of Drive.
type hostedCall struct {
	*driveRun
	at    int
	call  *call.Call
	chunk call.Chunk
	done  bool // before a worker was lost
	// before and outcome are the last attempt, until its result is sure.
	before  call.State
	outcome *interpreter.Outcome
	// made are the attempts that were made here.
	made call.Stretches
	// unwritten are the attempts of sinks that failed here.
	unwritten call.Stretches
	// sure says that another worker would bring the call to the same state, because it is in
	// history or in a ledger. The result of a later attempt is not: another worker may get
	// another response.
	sure bool
	// mark is the last safe point of the call.
	mark call.Mark
	// forget is the last write that history has; its ledger entry may be deleted.
	forget int
	// unnotable says that a ledger could not be made.
	unnotable bool
	shownAt   time.Time // of the last report of progress
	// unlogged says that the decision about the attempt is not in the log yet. The workflow
	// logs failures that are returned to it for a decision.
	unlogged bool
}

// restoreCalls restores the calls from history, and from the heartbeats or the writes of a
// worker that was lost.
func (d *driveRun) restoreCalls(ctx context.Context) error {
	d.calls = make([]*hostedCall, len(d.in.Calls))
	random, observer := randomOf(ctx)
	for i, carried := range d.in.Calls {
		h := &hostedCall{driveRun: d, at: i, sure: true}
		d.calls[i] = h
		if carried.State != nil {
			h.forget = carried.State.Written
		}
		done := d.progress.drivenOf(i)
		if h.done = done.Result != nil; h.done {
			d.tally.countEnded(done.Result)
			continue
		}
		h.call, h.made, h.unwritten = d.in.Task.BuildCall(d.book, d.step, carried, random).Watch(observer), done.Made, done.Unwritten
		if err := h.recallWrites(ctx); err != nil {
			return err
		}
		h.mark = h.call.View().CurrentMark()
		switch state := done.State; {
		case state == nil, state.Written < h.call.View().Written: // what was written since is in a ledger alone
		case done.Outcome != nil:
			h.done = true
			d.progress.setDriven(i, done)
		case state.Attempts > h.call.View().Attempts:
			h.call = d.in.Task.BuildCall(d.book, d.step, call.Snapshot{
				Index: carried.Index, Size: carried.Size, Element: carried.Element, State: state,
			}, random).Watch(observer)
			h.sure = false // a run that is stopped loses its heartbeats
		}
	}
	return nil
}

// randomOf and observer come from the context: the random numbers of hosted calls, and who
// observes them.
func randomOf(ctx context.Context) (random func() float64, observer call.Observer) {
	if host := attempt.WorkerOf(ctx); host.Observer != nil {
		return nil, host.Observer(ctx)
	}
	return rand.Float64, nil
}

// driveCall drives the call until it has to wait. After an error, the progress contains what it
// has done.
func (h *hostedCall) driveCall(ctx context.Context) error {
	if h.done {
		return nil
	}
	h.shownAt = time.Now()
	h.chunk, h.before = h.call.View().NewChunk(h.clock.Now()), h.call.View().Snapshot()
	h.chunk.AtMost(h.in.MostPages)
	ctx, release := attempt.WithCall(ctx, h.at, func(waiting bool) { h.progress.recordTurnWait(h.at, waiting) })
	defer release()
	driven, err := h.runUntilWait(ctx)
	h.progress.setDriven(h.at, driven)
	h.tally.countEnded(driven.Result)
	return err
}

// showProgress shows the call's progress, from time to time including its state.
func (h *hostedCall) showProgress() {
	now := time.Now()
	if h.in.Calls[h.at].Index == nil {
		h.progress.setStep(interpreter.HostedStep{
			Step: h.in.Task.Step, Visit: h.in.Task.Visit, At: now.UTC(), Incremental: h.call.View().Incremental().Record(),
			Rows: h.call.View().Rows(),
		})
	}
	if now.Sub(h.shownAt) >= progressInterval {
		h.shownAt = now
		h.progress.holdForHeartbeat(h.at, h.drivenState())
	}
}

// runUntilWait drives the call until it has to wait: to its end, to the bounds of one activity,
// or, if the workflow has the earlier pages, until something other than a page is due.
func (h *hostedCall) runUntilWait(ctx context.Context) (call.Driven, error) {
	for ctx.Err() == nil {
		if h.in.Pages && !h.call.View().FetchesPage() {
			return h.drivenUndecided(), nil
		}
		command := h.call.Next(h.clock.Now())
		if command.Kind != call.DoSink {
			h.logFailed()
		}
		switch command.Kind {
		case call.DoAttempt:
			if h.chunk.IsFull(h.call.View(), h.clock.Now()) || h.mustLeaveForStop(ctx) {
				return h.drivenState(), nil
			}
			size, err := h.makeAttempt(ctx, command.Input)
			if err != nil {
				return h.drivenState(), err
			}
			if h.in.Pages && size > maxPageBytes {
				return h.drivenUndecided(), nil
			}
			h.chunk.AddPageSize(size)
		case call.DoWait, call.DoHold:
			return h.drivenState(), nil
		case call.DoSink:
			switch end, err := h.writeSink(ctx, command.Sink); {
			case end == sinkFirst:
				return h.drivenUndecided(), err
			case end != sinkDone || err != nil:
				return h.drivenState(), err
			}
			h.logFailed()
		case call.DoState:
			if left, err := h.claimOrMove(ctx, command.State); left || err != nil {
				return h.drivenState(), err
			}
		case call.DoFinish:
			return h.drivenToEnd(command.Result), nil
		}
		h.showProgress()
	}
	return h.drivenState(), ctx.Err()
}

// claimPatience is how long a claim or a move may take in a host.
const claimPatience = 5 * time.Second

// claimOrMove claims or moves the state that the step keeps between runs. It leaves that to the workflow if the
// pages are in no history and no ledger, and if the state's keeper is unreachable: the workflow shows what the
// call waits for. The workflow does not repeat what was done here.
func (h *hostedCall) claimOrMove(ctx context.Context, input interpreter.StateInput) (left bool, err error) {
	if moves := len(input.Moves) > 0; !h.sure && moves || h.mustLeaveForStop(ctx) {
		return true, nil
	}
	within, stop := context.WithTimeout(ctx, claimPatience)
	defer stop()
	output, err := h.host.States.Apply(within, input)
	if err == nil {
		h.call.StateAnswered(output, h.clock.Now())
		return false, nil
	}
	failure := attempt.FailureOf(err)
	switch {
	case ctx.Err() != nil:
		return false, err
	case failure == nil || !failure.IsFinal():
		h.mustLeaveForStop(ctx) // another worker gets the call then
		return true, nil
	}
	h.call.StateFailed(*failure, h.clock.Now())
	return false, nil
}

// makeAttempt makes an attempt of the call's own. The error is one that ends the
// activity.
func (h *hostedCall) makeAttempt(ctx context.Context, input interpreter.ToolInput) (int, error) {
	h.before = h.call.View().Snapshot()
	began := h.clock.Now()
	stop := h.progress.showAttempt(call.Doing{Call: h.at, Index: input.Index, Attempt: input.Attempt, Page: input.Page, Since: began, Made: h.made})
	defer stop()
	made, err := h.attempt(ctx, input)
	if err != nil {
		return 0, err
	}
	h.outcome = &made.Outcome
	h.applyOutcome(made.Outcome)
	if pause, pauses := input.PausesRateLimit(h.call.View().OthersWait); pauses {
		_ = h.host.Attempts.PauseRateLimit(ctx, pause) // it never fails
	}
	if made.Outcome.PutOff == nil {
		h.made = h.made.WithAttempt(input, began, h.clock.Now(), cmp.Or(made.Outcome.Err, h.call.View().Refused), made.Turn)
	}
	return made.Size, nil
}

// drivenState returns the call to the workflow in its present state.
func (h *hostedCall) drivenState() call.Driven {
	state := h.call.View().Snapshot()
	return call.Driven{State: &state, Made: h.made, Unwritten: h.unwritten}
}

// applyOutcome applies the outcome of an attempt of the call itself.
func (h *hostedCall) applyOutcome(outcome interpreter.Outcome) {
	if h.call.ApplyOutcome(outcome, h.clock.Now()); outcome.PutOff == nil {
		h.sure, h.unlogged = false, true
	}
}

// logFailed logs what was decided about the last attempt.
func (h *hostedCall) logFailed() {
	if h.unlogged {
		h.unlogged = false
		h.logAttempt(h.call)
	}
}

// logAttempt logs what was decided about an attempt that failed.
func (d *driveRun) logAttempt(call *call.Call) {
	failed := call.View().FailedAttempt()
	d.countAttempt(call, failed)
	if failed == nil {
		return
	}
	fields := append(failed.Fields(), "run", cmp.Or(d.in.Task.ID, d.in.Task.Run.WorkflowID))
	if failed.Ended {
		d.host.Attempts.Resources.Logger.Warn(failed.Message(), fields...)
	} else {
		d.host.Attempts.Resources.Logger.Info(failed.Message(), fields...)
	}
}

// maxPageBytes is the size from which a page is returned unprocessed, so that large pages do
// not accumulate in one activity.
const maxPageBytes = 300_000

// drivenUndecided returns the call to the workflow. After an attempt that is the state before it plus its outcome, the smallest form. An
// outcome that is too large is left out, and the workflow makes that attempt again in an activity of its own.
func (h *hostedCall) drivenUndecided() call.Driven {
	if h.outcome == nil {
		return h.drivenState()
	}
	return call.Driven{State: &h.before, Outcome: h.outcome, Made: h.made, Unwritten: h.unwritten}.WithinBytes(h.host.Attempts.Resources.Payloads.MaxBytes)
}

// drivenToEnd returns the end of the call, without data that its loop does not keep.
func (h *hostedCall) drivenToEnd(result interpreter.CallResult) call.Driven {
	if h.step.Loop != nil && h.step.Loop.StatsOnly {
		result.Data = expression.Value{}
	}
	driven := call.Driven{
		Result: &result, Noted: h.call.View().Noted, Written: h.call.View().Written, Unwritten: h.unwritten,
	}
	if !h.made.ImpliedBy(result.Error) {
		driven.Made = h.made
	}
	return driven
}

// mustLeaveForStop reports whether the call is left because the worker stops.
func (h *hostedCall) mustLeaveForStop(ctx context.Context) bool {
	if !attempt.WorkerStopping(ctx) {
		return false
	}
	h.cut.Store(true)
	return true
}

// sinkEnd is the outcome of a due sink.
type sinkEnd int

const (
	// sinkOpen: it has not ended.
	sinkOpen sinkEnd = iota
	// sinkDone: the call has continued after this sink, or after one that a ledger had instead.
	sinkDone
	// sinkLeft: the workflow continues the sink from its present state.
	sinkLeft
	// sinkFirst: the history has to record what the sink writes before it is written.
	sinkFirst
)

// hostedSink is the call of a sink that is due. What another worker might not read
// again is written only with a ledger entry of how the call continues (docs/concepts/written-once.md#repeated-writes).
type hostedSink struct {
	of    *hostedCall
	sink  *call.Call
	note  *interpreter.LedgerEntry
	wrote bool // a sink may end well that wrote nothing
}

// writeSink writes what is due.
func (h *hostedCall) writeSink(ctx context.Context, sink *call.Call) (end sinkEnd, err error) {
	s := &hostedSink{of: h, sink: sink}
	for end == sinkOpen && err == nil {
		switch command := sink.Next(s.of.clock.Now()); command.Kind {
		case call.DoAttempt:
			end, err = s.makeWrite(ctx, command.Input)
		case call.DoFinish:
			h.countSink(ctx, sink)
			end = s.finishSink(command.Result)
		case call.DoWait, call.DoHold, call.DoSink:
			end = s.leaveToWorkflow()
		}
	}
	if end == sinkDone {
		h.outcome = nil
	}
	return end, err
}

// makeWrite makes an attempt to write, with a ledger entry where the call is not sure.
func (s *hostedSink) makeWrite(ctx context.Context, input interpreter.ToolInput) (sinkEnd, error) {
	if s.note == nil && !s.of.sure {
		input = s.of.prepareWrite(ctx, input)
		if s.note = s.of.noteFor(input, s.sink.View().Warnings()); s.note == nil {
			return sinkFirst, nil
		}
	}
	if s.of.mustLeaveForStop(ctx) {
		return sinkLeft, nil
	}
	began := s.of.clock.Now()
	input.Note = s.note
	made, err := s.of.attempt(ctx, input)
	switch {
	case err != nil:
		return sinkLeft, err
	case made.Noted != nil:
		return sinkDone, s.of.resumeFrom(made.Noted)
	case made.Unnotable:
		s.of.unnotable = true
		return sinkFirst, nil
	}
	s.wrote = !made.Outcome.Failed() && made.Outcome.PutOff == nil
	if made.Outcome.Failed() {
		s.of.unwritten = s.of.unwritten.WithAttempt(input, began, s.of.clock.Now(), made.Outcome.Err, made.Turn)
	}
	s.sink.ApplyOutcome(made.Outcome, s.of.clock.Now())
	s.of.logAttempt(s.sink)
	return sinkOpen, nil
}

// finishSink passes the outcome of its sink to the call. A failure ends the call; pages leave
// that decision to the workflow.
func (s *hostedSink) finishSink(result interpreter.CallResult) sinkEnd {
	switch {
	case result.Failed() && s.of.in.Pages:
		return s.leaveToWorkflow()
	case result.Failed():
		s.of.sure = false // the next worker's sink may do better
	case s.note != nil && s.wrote:
		s.of.sure, s.of.forget = true, 0
		s.of.call.SetNoted(s.of.notes)
	}
	s.of.call.SinkDone(result, s.of.clock.Now())
	if s.of.sure {
		s.of.mark = s.of.call.View().CurrentMark()
	}
	return sinkDone
}

func (s *hostedSink) leaveToWorkflow() sinkEnd {
	s.of.call.StoreSink(s.sink)
	return sinkLeft
}

// prepareWrite starts the preparation of a write on another processor while its note is made.
func (h *hostedCall) prepareWrite(ctx context.Context, in interpreter.ToolInput) interpreter.ToolInput {
	preparer, ok := h.host.Attempts.Tools[in.Tool].(tool.Preparer)
	if !ok || !preparer.RecordsWrite(in) || in.Secret != nil { // what is secret is opened by the attempt
		return in
	}
	unprepared := h.withRunInfo(in) // a write may note whose it is
	reshape := sync.OnceValues(func() (interpreter.ShapedRows, error) { return attempt.ReshapeRows(ctx, unprepared) })
	in.Reshaped = reshape
	in.Prepared = sync.OnceValue(func() any {
		rows, err := reshape()
		if err != nil {
			return nil // the attempt fails with it
		}
		return preparer.Prepare(unprepared.WithRows(rows))
	})
	go func() {
		defer func() { _ = recover() }() // the write panics as well, where that is reported
		in.Prepared()
	}()
	return in
}

// noteFor returns the note of the write that is due, nil if its sink records none or the note would
// be too large. warnings are the warnings of the sink's call.
func (h *hostedCall) noteFor(in interpreter.ToolInput, warnings []string) *interpreter.LedgerEntry {
	ledger, ok := h.host.Attempts.Tools[in.Tool].(tool.Ledger)
	if !ok || h.unnotable || !ledger.RecordsWrite(in) || !h.call.View().HasFixedTarget() {
		return nil
	}
	note, err := h.call.LedgerEntry(h.mark, h.notes, warnings, in.GivenRows(), h.clock.Now())
	if err != nil {
		return nil
	}
	note.Forget = h.forget
	return &note
}

// resumeFrom continues from a ledger entry.
func (h *hostedCall) resumeFrom(noted []byte) error {
	if err := h.call.ResumeAfterWrite(noted); err != nil {
		return attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindSink, Class: interpreter.ClassFinal, Final: true, Message: err.Error(),
		})
	}
	h.sure, h.mark = true, h.call.View().CurrentMark()
	return nil
}

// recallWrites continues after the writes of a lost worker or a stopped run.
func (h *hostedCall) recallWrites(ctx context.Context) error {
	again := activity.IsActivity(ctx) && (activity.GetInfo(ctx).Attempt > 1 || activity.HasHeartbeatDetails(ctx))
	if !again && !h.call.View().Recalls {
		return nil
	}
	written := h.call.View().Written
	var notes []interpreter.LedgerEntry
	for _, in := range h.call.View().LedgerQueries(h.clock.Now()) {
		found, err := RecallNotes(ctx, h.host.Attempts, in)
		if err != nil {
			return h.deliverLater(ctx, in, err)
		}
		notes = append(notes, found...)
	}
	slices.SortStableFunc(notes, func(a, b interpreter.LedgerEntry) int { return cmp.Compare(a.Written, b.Written) })
	for _, note := range notes {
		if note.Written <= h.call.View().Written {
			continue // of two sinks with one ledger
		}
		if err := h.resumeFrom(note.Continuation); err != nil {
			return err
		}
	}
	h.call.MarkRecalled()
	if len(notes) > 0 {
		h.call.SetNoted(h.notes)
	}
	if h.call.View().Written > written {
		state := h.call.View().Snapshot()
		h.progress.setDriven(h.at, call.Driven{State: &state, Made: h.made, Unwritten: h.unwritten})
	}
	return nil
}

// recallPatience is how long a ledger may be unreachable after a worker was lost.
const recallPatience = time.Hour

// deliverLater has Temporal deliver the activity again: only its ledgers know how the call
// continues.
func (h *hostedCall) deliverLater(ctx context.Context, in interpreter.ToolInput, err error) error {
	if attempt.IsRunCancelled(ctx) {
		return ctx.Err()
	}
	h.delivery.RecordReturn(ctx, false)
	if away := h.clock.Now().Sub(activity.GetInfo(ctx).ScheduledTime); errors.Is(err, attempt.ErrReleased) || away < recallPatience {
		return attempt.RedeliveryWhenBack(away, fmt.Errorf("sink %s: a worker was lost, and the sink does not know what was written: %w", in.Place, err))
	}
	return err
}

// attempt makes one attempt of a call; see [attempt.Runner.Make].
func (d *driveRun) attempt(ctx context.Context, input interpreter.ToolInput) (attempt.Attempt, error) {
	return d.host.Attempts.MakeAttempt(ctx, d.withRunInfo(input))
}

// withRunInfo returns the input of an attempt as its tool gets it, with the run that it belongs to.
func (d *driveRun) withRunInfo(input interpreter.ToolInput) interpreter.ToolInput {
	input.ControlID, input.ControlVersion = d.in.ControlID, d.in.ControlVersion
	input.Parents = d.in.Task.Nesting.BriefParents()
	return input
}
