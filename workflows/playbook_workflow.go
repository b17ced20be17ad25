package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// PlaybookWorkflow runs a playbook: it walks the graph of its steps, several
// branches at a time, until no branch is left.
func PlaybookWorkflow(ctx workflow.Context, input Input) (*Result, error) {
	ctx, controls := withControls(ctx, workflow.GetInfo(ctx).WorkflowExecution.ID, interpreter.Control{}, nil)
	r := &run{controls: controls}
	// Progress is answered from the first task on: a run that gives no answer is shown as one without a worker.
	if err := errors.Join(r.serveUpdates(ctx), workflow.SetQueryHandler(ctx, ProgressQuery, r.progress)); err != nil {
		return nil, err
	}
	book, err := enter(ctx, &input)
	if err != nil {
		controls.refuseUpdates(ctx, err)
		return nil, err
	}
	ctx = withOutbox(ctx, input.State.Limits)
	r.begin(ctx, book, input)
	controls.listenToParent(ctx)
	controls.listenForTurns(ctx)
	controls.listenForReports(ctx, r.describe)
	if err := r.serveQueries(ctx); err != nil {
		return nil, err
	}
	r.recall(ctx)
	branches, cancel := workflow.WithCancel(ctx)
	r.cancel = cancel
	r.watchCancel(ctx, branches)
	r.watch(ctx)
	controls.commands.open(ctx) // those that have come have effect before the run begins
	if next := r.acquireTurn(ctx, branches); next != nil {
		return nil, next
	}
	if r.claimPartitions(branches); !r.wasSkipped() {
		r.beginPartition(ctx)
	}
	switch {
	case r.wasSkipped():
		return r.finish(ctx)
	case input.Reprocess != nil:
		return r.reprocess(ctx, branches)
	case r.Sinks != nil && r.Sinks.Missing != nil && len(r.Earlier) == 0: // an earlier run may have written already
		r.fail(r.Sinks.Missing)
	}
	return r.execute(ctx, branches)
}

// enter validates a run that begins. The state of one that continues has to be its own.
func enter(ctx workflow.Context, input *Input) (*playbook.Playbook, error) {
	begins := input.State == nil
	if begins {
		if err := checkCalled(ctx, *input); err != nil {
			return nil, unfit(err)
		}
		answer, err := validate(ctx, *input)
		if err != nil {
			return nil, err
		}
		input.State = &RunState{Limits: answer.Limits, Warnings: answer.Warnings, Files: answer.Recorded(), Identity: answer.Identity, Sinks: answer.Sinks}
		input.State.Run.Partition = answer.Partition
		input.runMissing(answer.Missing)
	}
	book, err := interpreter.Load(input.Name, input.Source)
	if err != nil {
		return nil, invalid(err)
	}
	if input.Reprocess != nil {
		err = input.Reprocess.check(book)
	}
	if err == nil && begins {
		err = book.CheckFullRefresh(input.FullRefresh)
	}
	if err == nil && !begins {
		err = checkContinued(ctx, input.State)
	}
	if err != nil {
		return nil, unfit(err)
	}
	return book, nil
}

// checkTimeout bounds the validation, which is plain computation.
const checkTimeout = 30 * time.Second

// validate has the playbook checked in full by a worker that knows the tools. The
// answer is in history, so a replay sees the same one.
func validate(ctx workflow.Context, input Input) (interpreter.CheckResult, error) {
	check := interpreter.CheckInput{
		Name: input.Name, Source: input.Source, Workload: input.Workload, Files: input.Files, Partition: input.partition(ctx),
		Missing: input.Missing,
	}
	to := toLocal(interpreter.CheckActivity, checkTimeout, "check "+input.Name)
	answer, err := send[interpreter.CheckResult](ctx, to, check, "the playbook")
	if err != nil {
		return answer, err
	}
	if answer.Problems != "" {
		return answer, invalid(errors.New(answer.Problems))
	}
	return answer, nil
}

// run is one execution of a playbook.
type run struct {
	RunState
	id    string // of its workflow
	book  *playbook.Playbook
	input Input
	graph *interpreter.Graph
	// controls is what people have requested of the run.
	controls *controls
	records  []*StepRecord
	live     map[*StepRecord]*call.Call // of the steps that make a call
	stopped  map[*StepRecord]*call.Call // of those whose calls were cancelled
	cancel   workflow.CancelFunc        // of every branch
	idle     idle
	notices  notices
	stays    bool // in this history to the end
	begins   bool // and a step has started it
	// keptBytes is what the results take that the run keeps for others.
	keptBytes int
	// turns are those of the visits that need the state of their step, or have it.
	turns []*stateTurn
	// requestsTurn says that people have the run request its turn under its concurrency
	// key again.
	requestsTurn bool
	// reportsUntil is when the status is published again, as a wait is over that a child has
	// reported; dropTimer ends the timer.
	reportsUntil time.Time
	dropTimer    workflow.CancelFunc
	// moving is the wait of the moves at the end of the run, nil for none.
	moving *interpreter.Wait
}

// serveQueries sets the handlers of the queries about what the run has done, which are unknown before it begins.
func (r *run) serveQueries(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, interpreter.KeptQuery, r.keptSoFar),
		workflow.SetQueryHandler(ctx, interpreter.StoppedQuery, r.stoppedCall),
	)
}

// begin begins the run, or continues it where its last history ended.
func (r *run) begin(ctx workflow.Context, book *playbook.Playbook, input Input) {
	state := *input.State
	info := workflow.GetInfo(ctx)
	r.id, r.book, r.input, r.graph, r.RunState = info.WorkflowExecution.ID, book, input, interpreter.NewGraph(book), state
	r.live, r.stopped, r.notices.outbox = map[*StepRecord]*call.Call{}, map[*StepRecord]*call.Call{}, outboxOf(ctx)
	r.controls.Control, r.controls.parents = state.Control, slices.Clone(input.parents())
	r.controls.Answered, r.controls.elsewhere, r.controls.reported = state.Answered, r.answeredElsewhere, state.Reported
	for i := range state.Records {
		r.records = append(r.records, &state.Records[i])
	}
	if state.First != "" {
		return
	}
	r.First = info.FirstRunID
	r.Run = interpreter.RunInfo{
		WorkflowID: r.id, RunID: info.FirstRunID,
		StartedAt: info.WorkflowStartTime, Playbook: book.Name, ScheduledAt: scheduledAt(ctx), Partition: state.Run.Partition,
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
		Workload: expression.Of(expression.Merge(book.Workload, expression.OrEmpty(input.Workload.Data))),
		Vars:     expression.Of(map[string]any{}),
		Steps:    expression.Of(map[string]any{}),
	}
	r.Routing = r.graph.Begin()
}

// scheduledAt is zero for a run that no schedule has started.
func scheduledAt(ctx workflow.Context) time.Time {
	at, _ := workflow.GetTypedSearchAttributes(ctx).GetTime(temporal.NewSearchAttributeKeyTime(ScheduledAttribute))
	return at.UTC()
}

// renew returns the error with which the run continues as new, nil where it does not. A
// run whose state is too large stays: Temporal allows far longer histories than it
// advises.
func (r *run) renew(ctx workflow.Context) error {
	if r.stays || !historyIsLong(ctx) {
		return nil
	}
	var next error
	r.packNotices(ctx)
	if r.controls.answers.open(ctx); r.Failure == nil && ctx.Err() == nil {
		r.controls.drainParent(ctx)
		var tooLarge *interpreter.ErrorObject
		tooLarge, next = continueAsNew(ctx, PlaybookWorkflowName, r.continued(), "the state of the run")
		r.stays = tooLarge != nil
	}
	if next == nil {
		r.unpackNotices(ctx)
	}
	return next
}

// maxRecords bounds the step visits that a run keeps when it continues as new; the last
// count.
const maxRecords = 1000

// continued is the input of the run's next history.
func (r *run) continued() Input {
	next, state := r.input, r.RunState
	state.Records, state.Control, state.Answered = r.snapshot(), r.controls.Control, r.controls.Answered
	state.Reported = r.controls.reported
	state.Kept = state.Kept.Within(interpreter.MaxKeptAlong)
	if n := len(state.Records) - maxRecords; n > 0 {
		state.Records = state.Records[n:]
	}
	next.State, next.Called = &state, r.called()
	return next
}

// ended is the result of the coroutine of a step.
type ended struct {
	start  interpreter.Start
	record *StepRecord
	args   any
	result interpreter.CallResult
}

// execute starts the steps that may start and completes those that have ended until no
// branch is left, the run fails, or it is cancelled.
func (r *run) execute(ctx, branches workflow.Context) (*Result, error) {
	results := workflow.NewBufferedChannel(ctx, len(r.book.Steps))
	running := 0
	for {
		open := r.Failure == nil && ctx.Err() == nil
		if open && running == 0 && len(r.Routing.Waiting) > 0 {
			if next := r.renew(ctx); next != nil {
				return nil, next
			}
		}
		if open && (r.stays || !historyIsLong(ctx)) {
			for _, start := range r.graph.Startable(&r.Routing) {
				if r.visitedTooOften(start) {
					break
				}
				running++
				workflow.Go(branches, func(ctx workflow.Context) {
					done := r.step(ctx, start)
					disconnected, _ := workflow.NewDisconnectedContext(ctx)
					results.Send(disconnected, done)
				})
			}
		}
		if running == 0 {
			return r.finish(ctx)
		}
		var done ended
		disconnected, _ := workflow.NewDisconnectedContext(ctx)
		results.Receive(disconnected, &done)
		running--
		r.complete(ctx, done)
		r.idle.check(r, done)
	}
}

// watch begins to watch what may happen while the run continues.
func (r *run) watch(ctx workflow.Context) {
	r.watchTimeout(ctx)
	r.watchLate(ctx)
	r.unpackNotices(ctx)
	r.listenForNews(ctx)
}

// startedAt is when the run first started; the origin of a reprocess did before.
func (r *run) startedAt() time.Time {
	if !r.StartedAt.IsZero() {
		return r.StartedAt
	}
	return r.Run.StartedAt
}

// watchTimeout fails the run once the playbook's timeout is over, counted from
// its first start.
func (r *run) watchTimeout(ctx workflow.Context) {
	if r.book.Timeout == 0 {
		return
	}
	left := r.book.Timeout - workflow.Now(ctx).Sub(r.startedAt())
	after(ctx, max(left, 0), "timeout of the run", func(workflow.Context) {
		if r.Failure == nil {
			r.fail(&interpreter.ErrorObject{
				Kind: interpreter.KindTimeout, Class: interpreter.ClassFinal,
				Message: fmt.Sprintf("the run did not end within its timeout of %s", r.book.Timeout),
			})
		}
	})
}

// fail records the failure that ends the run and cancels every branch.
func (r *run) fail(failure *interpreter.ErrorObject) {
	if r.Failure == nil {
		r.Failure = failure
	}
	r.cancel()
}

// complete records how a step ended and follows its routes.
func (r *run) complete(ctx workflow.Context, done ended) {
	step, result := done.start.Step, done.result
	r.keep(done)
	r.warnAbsent("step "+step.Name, interpreter.AbsentAtEnd(step, result))
	if done.record.Status == interpreter.Cancelled {
		r.graph.Ended(&r.Routing, step, nil)
		if ctx.Err() == nil {
			r.fail(result.Error) // one of its children was cancelled
		}
		return
	}
	arrivals, handled, err := r.follow(ctx, step, result, done.args)
	if err != nil {
		result = r.failLate(ctx, done, err)
		arrivals, handled = r.followFailed(ctx, step, result, done.args)
	}
	r.graph.Ended(&r.Routing, step, arrivals)
	switch {
	case result.Failed() && !handled:
		r.fail(result.Error)
	case result.Failed():
		done.record.Handled = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s failed and a route took it on: %s", step.Name, result.Error.Message))
	}
}

// failLate turns a step whose vars or routes cannot be evaluated into one that failed.
// It keeps its result.
func (r *run) failLate(ctx workflow.Context, done ended, err error) interpreter.CallResult {
	failed := done.result
	failed.Status = interpreter.StatusError
	failed.Error = interpreter.ExpressionFailure(r.book, "step "+done.start.Step.Name, err, workflow.Now(ctx)).Error
	done.record.Status, done.record.Error = interpreter.Failed, failed.Error
	r.show(done.start.Step.Name, failed)
	return failed
}

// followFailed follows the routes of a step that failed late. If those cannot be
// evaluated either, the failure stays unhandled.
func (r *run) followFailed(
	ctx workflow.Context, step *playbook.Step, result interpreter.CallResult, args any,
) ([]interpreter.Arrival, bool) {
	arrivals, handled, err := r.follow(ctx, step, result, args)
	return arrivals, handled && err == nil
}

// follow evaluates vars, after a success, and the routes.
func (r *run) follow(
	ctx workflow.Context, step *playbook.Step, result interpreter.CallResult, args any,
) ([]interpreter.Arrival, bool, error) {
	scope, budget := interpreter.EndScope(interpreter.NewScope(r.book, r.Run, r.Data), args, result), budget(ctx)
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
	arrivals, handled, err := interpreter.Follow(step, result.Failed(), scope, budget)
	for _, text := range budget.Notes() {
		r.warn("step " + step.Name + ": " + text)
	}
	if rehearsal := rehearsalOf(ctx); rehearsal != nil && err == nil {
		rehearsal.Followed(r.book, step, arrivals)
	}
	return arrivals, handled, err
}

// keep makes the result of a step visible to the steps after it.
func (r *run) keep(done ended) {
	r.show(done.start.Step.Name, done.result)
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
func (r *run) addWarnings(done ended) {
	r.Warnings = append(r.Warnings, done.result.Warnings...)
	if done.result.LoopWarning != "" {
		r.Warnings = append(r.Warnings, done.result.LoopWarning)
		done.record.Loop.Warning = len(r.Warnings)
	}
}

// show is what expressions see of a step from now on.
func (r *run) show(name string, result interpreter.CallResult) {
	r.Data = r.Data.WithStep(name, result)
}

// warnAbsent warns once of members that a step names and that are not there, unless the
// validation has.
func (r *run) warnAbsent(where string, absent []string) {
	for _, text := range absent {
		found, _, _ := strings.Cut(text, ",")
		if !slices.ContainsFunc(r.Warnings, func(warning string) bool { return strings.Contains(warning, found) }) {
			r.Warnings = append(r.Warnings, where+": "+text)
		}
	}
}

// isStrict reports whether failed iterations of a step keep the run from being
// completed, however many of them the step itself lets pass.
func (r *run) isStrict(record *StepRecord) bool {
	return (r.input.Strict || r.book.Strict) && record.Loop != nil && record.Loop.Stats.Failed > 0
}

// progress answers ProgressQuery. It is called again and again, so it leaves out the
// errors of single iterations and the bulk of the others.
func (r *run) progress() (Progress, error) {
	if r.book == nil { // its validation is not over
		return Progress{Control: r.controls.Control}, nil
	}
	progress := Progress{Steps: r.snapshot(), Moving: r.moving}
	for i, record := range r.records {
		step := &progress.Steps[i]
		if call := r.live[record]; call != nil {
			step.Attempts, step.Pages, step.Awaits = call.View().Attempt, call.View().Pages, call.View().AwaitedDetails()
			if step.Awaits != nil && step.Status == interpreter.Running {
				step.Status = interpreter.Awaiting
			}
		}
		step.Error = step.Error.Shrunk()
		if step.Loop != nil {
			short := *step.Loop
			short.Errors = nil
			step.Loop = &short
		}
	}
	r.completeProgress(&progress)
	return progress, nil
}

func (r *run) snapshot() []StepRecord {
	return lists.Map(r.records, func(record *StepRecord) StepRecord { return *record })
}

// finish returns the run's result; a failed run fails its workflow and a
// cancelled one cancels it, with the result in the details.
func (r *run) finish(ctx workflow.Context) (*Result, error) {
	result := &Result{Status: r.status(ctx), Error: r.Failure}
	if result.Status == interpreter.Completed || result.Status == interpreter.Partial {
		r.output(ctx, result)
	}
	if result.Status == interpreter.Completed && !r.movePending(ctx) {
		*result = Result{Status: r.status(ctx), Error: r.Failure}
	}
	r.endPartition(ctx, result.Status)
	r.notifyEnd(ctx, result)
	result.Warnings, result.Late = r.Warnings, r.Late
	result.Steps = r.finalRecords()
	most := r.Limits.PayloadCap()
	if result.Status == interpreter.Failed || result.Status == interpreter.Cancelled {
		most = interpreter.MaxFailureDetails
	}
	result.Shrink(most)
	r.publish(ctx, result.Status)
	r.countRun(ctx, result)
	r.releasePartitions(ctx)
	r.releaseTurn(ctx)
	r.controls.answers.open(ctx) // no step may have begun
	switch result.Status {
	case interpreter.Cancelled:
		return nil, temporal.NewCanceledError(*result)
	case interpreter.Failed:
		logger(ctx).Error("the run failed", "kind", string(result.Error.Kind), "error", result.Error.Message)
		return nil, temporal.NewApplicationErrorWithOptions(result.Error.ShortMessage(), string(result.Error.Kind),
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
	}
	return result, nil
}

func (r *run) status(ctx workflow.Context) interpreter.Status {
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

// output evaluates the playbook's output; without one, and in a reprocess, the
// result is that of the step with a tool that ended last.
func (r *run) output(ctx workflow.Context, result *Result) {
	result.Result = r.Last
	if r.book.Output == nil || r.input.Reprocess != nil {
		return
	}
	r.warnAbsent("output", interpreter.AbsentInOutput(r.book, r.Data))
	value, err := r.book.Output.Render(interpreter.NewScope(r.book, r.Run, r.Data), budget(ctx))
	if err != nil {
		result.Fail(interpreter.ExpressionFailure(r.book, "output", err, workflow.Now(ctx)).Error)
		return
	}
	if err := interpreter.RefuseSealed(r.book, "the output", value); err != nil {
		result.Fail(interpreter.ExpressionFailure(r.book, "output", err, workflow.Now(ctx)).Error)
		return
	}
	result.Result = expression.Of(value)
	if _, failure := interpreter.Measure(result.Result, payloadCap(ctx), "the output of the playbook"); failure != nil {
		result.Fail(failure)
	}
}

// finalRecords lists the visits in the order they began, then the steps that
// no branch reached.
func (r *run) finalRecords() []StepRecord {
	records := r.snapshot()
	if r.input.Reprocess != nil {
		return records
	}
	for _, step := range r.book.Steps {
		if r.Routing.Visits[step.Name] == 0 {
			records = append(records, StepRecord{Step: step.Name, CallStatus: interpreter.CallStatus{Status: interpreter.Skipped}})
		}
	}
	return records
}

// publish writes the status into the search attribute.
func (r *run) publish(ctx workflow.Context, status interpreter.Status) {
	r.Published = status
	if r.input.SearchAttributes {
		r.upsert(ctx, temporal.NewSearchAttributeKeyKeyword(StatusAttribute).ValueSet(string(status)))
	}
}

// publishDeadLetters counts the failed iterations of a loop in the search
// attribute, as soon as the loop has ended.
func (r *run) publishDeadLetters(ctx workflow.Context, failed int) {
	if failed == 0 {
		return
	}
	r.DeadLetters += failed
	if r.input.DeadLetters {
		r.upsert(ctx, temporal.NewSearchAttributeKeyInt64(DeadLettersAttribute).ValueSet(int64(r.DeadLetters)))
	}
}

// upsert sets a search attribute, and with it that of the next retry.
func (r *run) upsert(ctx workflow.Context, update temporal.SearchAttributeUpdate) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	updates := []temporal.SearchAttributeUpdate{update}
	if r.input.NextRetry {
		updates = append(updates, r.nextRetry(ctx))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		logger(ctx).Warn("cannot set a search attribute", "error", err)
	}
}

// nextRetry sets the attribute to when the first of the steps is due that wait for a
// retry, as far as children have reported theirs; without one it has no value.
func (r *run) nextRetry(ctx workflow.Context) temporal.SearchAttributeUpdate {
	var next time.Time
	for _, record := range r.records {
		switch report := r.controls.reports[r.childOf(record)]; {
		case !record.EndedAt.IsZero():
		case record.Status == interpreter.RetryPending && record.Call == "":
			next = interpreter.Sooner(next, record.NextRetryAt)
		case record.Status == interpreter.Running && report.waits(workflow.Now(ctx)):
			next = interpreter.Sooner(next, report.Until)
		}
	}
	key := temporal.NewSearchAttributeKeyTime(NextRetryAttribute)
	if next.IsZero() {
		return key.ValueUnset()
	}
	return key.ValueSet(next)
}
