// Package run has PlaybookWorkflow, which runs a playbook: it follows the graph of steps, makes their calls or
// starts their loops, and handles the commands of people.
package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// PlaybookWorkflow runs a playbook: it follows the graph of its steps, several branches at a time, until no branch
// is left.
func PlaybookWorkflow(ctx workflow.Context, input protocol.Input) (*protocol.Result, error) {
	ctx, controls := control.WithControls(ctx, workflow.GetInfo(ctx).WorkflowExecution.ID, interpreter.Control{}, nil)
	r := newRun(controls)
	// Progress is served from the first task on: a run that does not respond is shown as one without a worker.
	if err := errors.Join(r.steering.serveUpdates(ctx), workflow.SetQueryHandler(ctx, protocol.ProgressQuery, r.status.runProgress)); err != nil {
		return nil, err
	}
	isNew := input.State == nil
	book, err := enterRun(ctx, &input)
	if err != nil {
		controls.RefuseUpdates(ctx, err)
		return nil, err
	}
	ctx = gate.WithOutbox(ctx, input.State.Limits)
	r.beginRun(ctx, book, input)
	meter.ZeroRun(gate.SeriesRecorder(ctx), r.Run.Playbook, book)
	if isNew {
		r.logBegin(ctx)
	}
	controls.ListenToParent(ctx)
	controls.ListenForTurns(ctx)
	controls.ListenForReports(ctx, r.status.describeRun)
	if err := r.serveQueries(ctx); err != nil {
		return nil, err
	}
	if r.begins {
		r.earlier.recallResults(ctx)
	}
	branches, cancel := workflow.WithCancel(ctx)
	r.cancel = cancel
	r.watchCancel(ctx, branches)
	r.watchRun(ctx)
	controls.Commands.Open(ctx) // commands received so far take effect before the run begins
	if next := r.queues.acquireSlot(ctx, branches, r.continueAsNew); next != nil {
		return nil, next
	}
	if !r.wasSkipped() {
		r.partitions.claimPartitions(branches)
	}
	if !r.wasSkipped() {
		r.partitions.noteBegin(ctx)
	}
	switch {
	case r.wasSkipped():
		return r.finishRun(ctx)
	case input.Reprocess != nil:
		return r.reprocessLoops(ctx, branches)
	case r.Sinks != nil && r.Sinks.Missing != nil && len(r.earlier.Earlier) == 0: // an earlier run may have written already
		r.failRun(r.Sinks.Missing)
	}
	return r.executeSteps(ctx, branches)
}

// enterRun validates a run that begins, or checks that the state of a continued run belongs to it.
func enterRun(ctx workflow.Context, input *protocol.Input) (*playbook.Playbook, error) {
	begins := input.State == nil
	if begins {
		if err := checkCalled(ctx, *input); err != nil {
			return nil, gate.UnfitError(err)
		}
		answer, err := validateRun(ctx, *input)
		if err != nil {
			return nil, err
		}
		input.State = &protocol.RunState{
			RunFrame: protocol.RunFrame{
				Limits: answer.Limits, Warnings: answer.Warnings, ValidationWarnings: answer.ValidationWarnings, Files: answer.FileSources(),
			},
			RunPath:       protocol.RunPath{Sinks: answer.Sinks},
			RunPartitions: protocol.RunPartitions{Identity: answer.Identity},
		}
		input.State.Run.Partition = answer.Partition
		input.RunMissing(answer.Missing)
	}
	book, err := interpreter.LoadPlaybook(input.Name, input.Source)
	if err != nil {
		return nil, gate.InvalidError(err)
	}
	if input.Reprocess != nil {
		err = input.Reprocess.Check(book)
	}
	if err == nil && begins {
		err = book.CheckFullRefresh(input.FullRefresh)
	}
	if err == nil && !begins {
		err = checkContinued(ctx, input.State)
	}
	if err != nil {
		return nil, gate.UnfitError(err)
	}
	return book, nil
}

// checkTimeout bounds the validation, which is pure computation.
const checkTimeout = 30 * time.Second

// validateRun lets a worker, which knows its tools, check the playbook in full. The result is in history, so a
// replay sees the same one.
func validateRun(ctx workflow.Context, input protocol.Input) (interpreter.CheckResult, error) {
	check := interpreter.CheckInput{
		Name: input.Name, Source: input.Source, Workload: input.Workload, Files: input.Files, Partition: input.PartitionRequest(ctx),
		Missing: input.Missing,
	}
	to := gate.ToLocal(interpreter.CheckActivity, checkTimeout, "check "+input.Name)
	answer, err := gate.Send[interpreter.CheckResult](ctx, to, check, "the playbook")
	if err != nil {
		return answer, err
	}
	if answer.Problems != "" {
		return answer, gate.RefusedError(cmp.Or(answer.Refusal, protocol.InvalidPlaybook), answer.Problems)
	}
	return answer, nil
}

// run is one execution of a playbook: it follows the steps, and connects its parts.
type run struct {
	*frame
	*visits
	protocol.RunPath
	graph  *interpreter.Graph
	idle   idle
	stays  bool // in this history until its end
	begins bool // and a step of another run has started it

	status     *status
	notices    *notices
	queues     *queues
	earlier    *earlier
	partitions *partitions
	moves      *moves
	steering   *steering
}

// newRun creates a run and its parts, each with what it needs from the others.
func newRun(controls *control.Controls) *run {
	f, v := &frame{controls: controls}, &visits{}
	r := &run{frame: f, visits: v}
	describe := func(ctx workflow.Context) { r.status.describeRun(ctx) }
	publish := func(ctx workflow.Context, requested interpreter.Control) { r.status.publishOpen(ctx, requested) }
	r.notices = &notices{frame: f, describe: describe}
	r.queues = &queues{frame: f, describe: describe, publish: publish}
	r.moves = &moves{frame: f, describe: describe}
	r.partitions = &partitions{frame: f}
	r.earlier = &earlier{frame: f, visits: v, task: r.taskOf}
	r.status = &status{
		frame: f, visits: v, queues: r.queues, routing: &r.Routing,
		late: func() bool { return r.notices.Late }, moving: func() *interpreter.Wait { return r.moves.wait },
	}
	r.steering = &steering{
		frame: f, visits: v, queues: r.queues, routing: &r.Routing, paused: r.notices.notifyPaused, describe: describe, publish: publish,
	}
	return r
}

// serveQueries sets the handlers of queries about the work of the run, which cannot be answered before it begins.
func (r *run) serveQueries(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, interpreter.EarlierQuery, r.earlier.workSoFar),
		workflow.SetQueryHandler(ctx, interpreter.StoppedQuery, r.earlier.stoppedCall),
	)
}

// beginRun begins the run, or continues it from its previous history.
func (r *run) beginRun(ctx workflow.Context, book *playbook.Playbook, input protocol.Input) {
	state := *input.State
	info := workflow.GetInfo(ctx)
	r.id, r.book, r.input, r.graph, r.notices.outbox = info.WorkflowExecution.ID, book, input, interpreter.NewGraph(book), gate.OutboxOf(ctx)
	r.loadState(state)
	r.controls.Control, r.controls.Parents = state.Control, slices.Clone(input.ParentRuns())
	r.controls.Answered, r.controls.Asked = state.Answered, state.Asked
	r.controls.Elsewhere, r.controls.Reported, r.controls.LongestReported = r.answeredElsewhere, state.Reported, state.LongestReported
	r.controls.HasSiblings = input.Called != nil && input.Called.HasSiblings
	if state.First != "" {
		return
	}
	r.First = info.FirstRunID
	r.Run = interpreter.RunInfo{
		WorkflowID: r.id, RunID: info.FirstRunID,
		StartedAt: info.WorkflowStartTime, Playbook: book.Name, ScheduledAt: protocol.ScheduledAt(ctx), Partition: state.Run.Partition,
	}
	if called := input.Called; called != nil {
		r.Run.ScheduledAt, r.Run.Key, r.Run.Lap = called.ScheduledAt, called.Key, called.Lap
		r.begins = true
	}
	if input.Reprocess != nil {
		r.Run, r.StartedAt = input.Reprocess.Origin, info.WorkflowStartTime
		r.Run.Partition = state.Run.Partition
	}
	r.Run.FullRefresh = input.FullRefresh
	r.Data = interpreter.Data{
		Workload: expression.Of(expression.MergeMaps(book.Workload, expression.MapOrEmpty(input.Workload.Data))),
		Vars:     expression.Of(map[string]any{}),
		Steps:    expression.Of(map[string]any{}),
	}
	r.Routing = r.graph.BeginRouting()
}

// loadState distributes the state from the previous history to the run and its parts.
func (r *run) loadState(state protocol.RunState) {
	r.RunFrame, r.RunPath = state.RunFrame, state.RunPath
	r.loadRecords(state.Records)
	r.status.RunStatus, r.earlier.RunEarlier, r.notices.RunNotices = state.RunStatus, state.RunEarlier, state.RunNotices
	r.queues.RunQueues, r.partitions.RunPartitions, r.moves.RunMoves = state.RunQueues, state.RunPartitions, state.RunMoves
}

// saveState is the reverse of loadState.
func (r *run) saveState() protocol.RunState {
	state := protocol.RunState{
		RunFrame: r.RunFrame, RunPath: r.RunPath, RunStatus: r.status.RunStatus, RunEarlier: r.earlier.RunEarlier,
		RunNotices: r.notices.RunNotices, RunQueues: r.queues.RunQueues, RunPartitions: r.partitions.RunPartitions, RunMoves: r.moves.RunMoves,
		Control: r.controls.Control, Answered: r.controls.Answered, Asked: r.controls.Asked, Reported: r.controls.Reported, LongestReported: r.controls.LongestReported,
	}
	state.Records = r.snapshotRecords()
	return state
}

// continueAsNew returns the error with which the run continues as new, nil if it does not. A run whose state is too
// large stays in its history: Temporal allows far longer ones than it recommends.
func (r *run) continueAsNew(ctx workflow.Context) error {
	if r.stays || !gate.HistoryIsLong(ctx) {
		return nil
	}
	var next error
	r.notices.packOpen(ctx)
	if r.controls.Answers.Open(ctx); r.Failure == nil && ctx.Err() == nil {
		r.controls.DrainParent(ctx)
		var tooLarge *interpreter.ErrorObject
		tooLarge, next = gate.ContinueAsNew(ctx, protocol.PlaybookWorkflowName, r.continuedInput(), "the state of the run")
		r.stays = tooLarge != nil
	}
	if next == nil {
		r.notices.unpackOpen(ctx)
	}
	return next
}

// maxRecords bounds the step visits that a run keeps when it continues as new; the latest are kept. A run with a
// cycle may have any number.
const maxRecords = 1000

// continuedInput returns the input of the run's next history.
func (r *run) continuedInput() protocol.Input {
	next, state := r.input, r.saveState()
	state.Work = state.Work.WithinBytes(interpreter.MaxEarlierAlong)
	if n := len(state.Records) - maxRecords; n > 0 {
		state.Records = state.Records[n:]
	}
	next.State, next.Called = &state, r.calledBy()
	return next
}

// stepEnd is the result of the coroutine of a step.
type stepEnd struct {
	start  interpreter.Start
	record *protocol.StepRecord
	args   any
	result interpreter.CallResult
}

// executeSteps starts steps when they may start, and completes those that have ended, until no branch is left, the
// run fails, or it is cancelled.
func (r *run) executeSteps(ctx, branches workflow.Context) (*protocol.Result, error) {
	results := workflow.NewBufferedChannel(ctx, len(r.book.Steps))
	running := 0
	for {
		open := r.Failure == nil && ctx.Err() == nil
		if open && running == 0 && len(r.Routing.Waiting) > 0 {
			if next := r.continueAsNew(ctx); next != nil {
				return nil, next
			}
		}
		if open && (r.stays || !gate.HistoryIsLong(ctx)) {
			for _, start := range r.graph.StartReady(&r.Routing) {
				if r.failTooManyVisits(start) {
					break
				}
				running++
				workflow.Go(branches, func(ctx workflow.Context) {
					done := r.runStep(ctx, start)
					disconnected, _ := workflow.NewDisconnectedContext(ctx)
					results.Send(disconnected, done)
				})
			}
		}
		if running == 0 {
			return r.finishRun(ctx)
		}
		var done stepEnd
		disconnected, _ := workflow.NewDisconnectedContext(ctx)
		results.Receive(disconnected, &done)
		running--
		r.completeStep(ctx, done)
		r.idle.checkCycles(r, done)
	}
}

// watchRun starts watching for events during the run: its timeout, lateness, news, signals.
func (r *run) watchRun(ctx workflow.Context) {
	r.watchTimeout(ctx)
	r.notices.watchLate(ctx)
	r.notices.unpackOpen(ctx)
	r.notices.listenForNews(ctx)
}

// watchTimeout fails the run at the playbook's timeout, measured from its first start.
func (r *run) watchTimeout(ctx workflow.Context) {
	if r.book.Timeout == 0 {
		return
	}
	left := r.book.Timeout - workflow.Now(ctx).Sub(r.startedAt())
	gate.AfterWait(ctx, max(left, 0), "timeout of the run", func(workflow.Context) {
		if r.Failure == nil {
			r.failRun(&interpreter.ErrorObject{
				Kind: interpreter.KindTimeout, Class: interpreter.ClassFinal,
				Message: fmt.Sprintf("the run did not end within its timeout of %s", r.book.Timeout),
			})
		}
	})
}

// completeStep records the end of a step and follows its routes.
func (r *run) completeStep(ctx workflow.Context, done stepEnd) {
	step, result := done.start.Step, done.result
	if rehearsal := gate.RehearsalOf(ctx); rehearsal != nil {
		defer func() { rehearsal.StepEnded(r.book, *done.record) }()
	}
	r.saveResult(done)
	r.warnAbsent("step "+step.Name, interpreter.AbsentAtEnd(step, result))
	if done.record.Status == interpreter.Cancelled {
		r.graph.EndStep(&r.Routing, step, nil)
		if ctx.Err() == nil {
			r.failRun(result.Error) // one of its children was cancelled
		}
		return
	}
	arrivals, handled, err := r.followRoutes(ctx, step, result, done.args)
	if err != nil {
		result = r.failLate(ctx, done, err)
		arrivals, handled = r.followFailed(ctx, step, result, done.args)
	}
	r.graph.EndStep(&r.Routing, step, arrivals)
	switch {
	case result.Failed() && !handled:
		r.failRun(result.Error)
	case result.Failed():
		done.record.Handled = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s failed, and a route handled the failure: %s", step.Name, result.Error.Message))
	}
}

// failLate makes a step fail whose vars or routes cannot be evaluated. It keeps its result.
func (r *run) failLate(ctx workflow.Context, done stepEnd, err error) interpreter.CallResult {
	failed := done.result
	failed.Status = interpreter.StatusError
	failed.Error = interpreter.ExpressionFailure(r.book, "step "+done.start.Step.Name, err, workflow.Now(ctx)).Error
	done.record.Status, done.record.Error = interpreter.Failed, failed.Error
	r.showStep(done.start.Step.Name, failed)
	return failed
}

// followFailed follows the routes of a step that failLate has failed. If these cannot be evaluated either, the
// failure stays unhandled.
func (r *run) followFailed(
	ctx workflow.Context, step *playbook.Step, result interpreter.CallResult, args any,
) ([]interpreter.Arrival, bool) {
	arrivals, handled, err := r.followRoutes(ctx, step, result, args)
	return arrivals, handled && err == nil
}

// followRoutes evaluates the vars of a successful step, and the routes.
func (r *run) followRoutes(
	ctx workflow.Context, step *playbook.Step, result interpreter.CallResult, args any,
) ([]interpreter.Arrival, bool, error) {
	scope, budget := interpreter.EndScope(r.newScope(), args, result), gate.ExpressionBudget(ctx)
	if !result.Failed() && len(step.Vars) > 0 {
		vars, err := interpreter.RenderVars(step, r.Data.Vars.Data, scope, budget)
		if err != nil {
			return nil, false, err
		}
		if err := interpreter.RefuseSealed(r.book, "vars", vars); err != nil {
			return nil, false, err
		}
		r.Data.Vars = expression.Of(vars)
		scope = scope.With(map[string]any{"vars": vars})
	}
	arrivals, handled, err := interpreter.NextSteps(step, result.Failed(), scope, budget)
	r.warnOf("step "+step.Name, budget)
	if rehearsal := gate.RehearsalOf(ctx); rehearsal != nil && err == nil {
		rehearsal.RecordRoute(r.book, step, arrivals)
	}
	return arrivals, handled, err
}

// saveResult makes the result of a step available to later steps.
func (r *run) saveResult(done stepEnd) {
	r.showStep(done.start.Step.Name, done.result)
	r.addWarnings(done)
	switch step := done.start.Step; {
	case step.Secret:
		r.Last = expression.Of(playbook.Hidden)
	case step.Action != nil:
		r.Last = done.result.Data
	}
	if done.result.Status == interpreter.Partial || r.isStrict(done.record) {
		r.Partial = true
	}
}

// addWarnings adds the warnings of a step to those of the run.
func (r *run) addWarnings(done stepEnd) {
	r.Warnings = append(r.Warnings, done.result.Warnings...)
	if done.result.LoopWarning != "" {
		r.Warnings = append(r.Warnings, done.result.LoopWarning)
		done.record.Loop.Warning = len(r.Warnings)
	}
}

// showStep sets the result of a step in the data of expressions.
func (r *run) showStep(name string, result interpreter.CallResult) {
	r.Data = r.Data.WithStep(name, result)
}

// finishRun returns the run's result. A failed run fails its workflow and a cancelled one cancels it, with the
// result in the details.
func (r *run) finishRun(ctx workflow.Context) (*protocol.Result, error) {
	result := &protocol.Result{Status: r.endStatus(ctx), Error: r.Failure}
	if result.Status == interpreter.Completed || result.Status == interpreter.Partial {
		r.runOutput(ctx, result)
	}
	if result.Status == interpreter.Completed && !r.moves.settleMoves(ctx) {
		*result = protocol.Result{Status: r.endStatus(ctx), Error: r.Failure}
	}
	r.partitions.noteEnd(ctx, result.Status)
	r.notices.notifyEnd(ctx, result)
	result.Warnings, result.ValidationWarnings, result.Late = r.Warnings, r.ValidationWarnings, r.notices.Late
	result.Steps, result.Rows = r.status.finalRecords(), r.status.Rows
	most := r.Limits.PayloadCap()
	if result.Status == interpreter.Failed || result.Status == interpreter.Cancelled {
		most = interpreter.MaxFailureDetails
	}
	result.Shrink(most)
	r.status.showRows(ctx)
	r.status.publishStatus(ctx, result.Status)
	r.countRun(ctx, result)
	r.partitions.releaseClaim(ctx)
	r.queues.releaseSlot(ctx)
	r.controls.Answers.Open(ctx) // no step may have begun
	switch result.Status {
	case interpreter.Cancelled:
		return nil, temporal.NewCanceledError(*result)
	case interpreter.Failed:
		gate.Logger(ctx).Error("the run failed", "kind", string(result.Error.Kind), "error", result.Error.Message)
		return nil, temporal.NewApplicationErrorWithOptions(result.Error.ShortMessage(), string(result.Error.Kind),
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
	}
	return result, nil
}

// endStatus returns the status with which the run ends.
func (r *run) endStatus(ctx workflow.Context) interpreter.Status {
	switch {
	case r.Failure != nil:
		return interpreter.Failed
	case ctx.Err() != nil:
		return interpreter.Cancelled
	case r.wasSkipped():
		return interpreter.Skipped
	case r.Partial:
		return interpreter.Partial
	}
	return interpreter.Completed
}

// runOutput sets the result of the run: the playbook's evaluated output or, without one and in a reprocess, the
// result of the last ended step that has a tool.
func (r *run) runOutput(ctx workflow.Context, result *protocol.Result) {
	result.Result = r.Last
	if r.book.Output == nil || r.input.Reprocess != nil {
		return
	}
	r.warnAbsent("output", interpreter.AbsentInOutput(r.book, r.Data))
	budget := gate.ExpressionBudget(ctx)
	value, err := r.book.Output.Render(r.newScope(), budget)
	r.warnOf("output", budget)
	if err != nil {
		result.SetFailure(interpreter.ExpressionFailure(r.book, "output", err, workflow.Now(ctx)).Error)
		return
	}
	if err := interpreter.RefuseSealed(r.book, "the output", value); err != nil {
		result.SetFailure(interpreter.ExpressionFailure(r.book, "output", err, workflow.Now(ctx)).Error)
		return
	}
	result.Result = expression.Of(value)
	if _, failure := interpreter.MeasureSize(result.Result, gate.PayloadCap(ctx), "the output of the playbook"); failure != nil {
		result.SetFailure(failure)
	}
}

// wasSkipped reports whether the run ended before it began, because its playbook requires that or because another
// backfill runs its partitions.
func (r *run) wasSkipped() bool { return r.partitions.Conflict != nil || r.queues.isSkipped() }
