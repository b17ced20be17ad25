package run

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
)

// runStep runs one visit of a step to its end.
func (r *run) runStep(ctx workflow.Context, start interpreter.Start) stepEnd {
	r.controls.AwaitAnswers(ctx)
	step := start.Step
	record := &protocol.StepRecord{
		Step: step.Name, Visit: start.Visit, CallStatus: interpreter.CallStatus{Status: interpreter.Running}, StartedAt: workflow.Now(ctx),
	}
	r.records = append(r.records, record)
	if rehearsal := gate.RehearsalOf(ctx); rehearsal != nil {
		rehearsal.StepBegan(r.book, *record)
	}
	r.status.describeRun(ctx)
	scope := r.newScope()
	if start.Args != nil {
		scope = scope.With(map[string]any{"args": start.Args})
	}
	done := stepEnd{start: start, record: record}
	r.warnAbsent("step "+step.Name, interpreter.AbsentAtStart(r.book, step, r.Data))
	args, err := request.StepArgs(step, start.Args, scope, gate.ExpressionBudget(ctx))
	switch {
	case err != nil:
		done.result = interpreter.ExpressionFailure(r.book, "step "+step.Name, err, workflow.Now(ctx))
	case step.Action == nil:
		now := workflow.Now(ctx)
		done.result = interpreter.CallResult{
			Status: interpreter.StatusSuccess, Meta: interpreter.CallMeta{StartedAt: now, EndedAt: now},
		}
	case step.Loop != nil:
		done.result = r.queues.withState(ctx, start, record, func() interpreter.CallResult { return r.runLoop(ctx, start, scope, args, record) })
	default:
		done.result = r.queues.withState(ctx, start, record, func() interpreter.CallResult { return r.runCall(ctx, start, record) })
	}
	done.args = args
	if !done.result.Failed() {
		r.moves.saveMoves(step.Name, done.result.Meta.Incremental)
	}
	if record.From == "" { // otherwise the earlier run has sent its notices
		r.notices.notifyExhausted(ctx, done)
		r.notices.notifyStep(ctx, done)
	}
	r.closeRecord(ctx, record, done.result)
	return done
}

// runCall makes the call of a step without a loop, including its sinks.
func (r *run) runCall(ctx workflow.Context, start interpreter.Start, record *protocol.StepRecord) interpreter.CallResult {
	task := r.taskOf(start)
	call := loop.ResumeCall(ctx, r.book, start.Step, task, call.Snapshot{})
	if result := r.earlier.earlierResult(record, func(at time.Time) string { return r.earlier.printRequest(task, call, at) }); result != nil {
		return *result
	}
	if missing := r.checkSinks(ctx, call.Config(), record); missing != nil {
		return *missing
	}
	r.earlier.resumeCall(ctx, record, task, call)
	result := r.makeCall(ctx, record, task, call)
	if call.View().Stopped {
		r.stopped[record] = call
	}
	r.earlier.saveStep(start.Step, record, r.earlier.printRequest(task, call, result.Meta.StartedAt), result)
	return result
}

// checkSinks fails a step before it begins if one of its sinks has a missing connection that no attempt would
// detect. Each connection is checked once in a run.
func (r *run) checkSinks(ctx workflow.Context, config *call.Config, record *protocol.StepRecord) *interpreter.CallResult {
	if r.Sinks == nil { // nothing was looked for when the run began
		return nil
	}
	unknown := lists.Filter(config.LateConnections(workflow.Now(ctx)), func(sink interpreter.SinkConnection) bool {
		return !slices.Contains(r.Sinks.Names, sink.Auth)
	})
	if len(unknown) == 0 {
		return nil
	}
	to := gate.ToLocal(interpreter.SinksActivity, checkTimeout, "looks for connections of "+config.Step.Name)
	checked, err := gate.Send[interpreter.SinkCheck](ctx, to, unknown, "the connections of sinks")
	if err != nil {
		checked.Missing = protocol.AttemptError(err)
	}
	if checked.Missing == nil {
		r.Sinks.Names = append(r.Sinks.Names, checked.Names...)
		return nil
	}
	return &interpreter.CallResult{
		Status: interpreter.StatusError, Error: checked.Missing,
		Meta: interpreter.CallMeta{StartedAt: record.StartedAt, EndedAt: workflow.Now(ctx)},
	}
}

// makeCall drives the call of a step to its end.
func (r *run) makeCall(ctx workflow.Context, record *protocol.StepRecord, task protocol.Task, call *call.Call) interpreter.CallResult {
	r.live[record] = call
	defer delete(r.live, record)
	renewal := drive.Renewal{After: drive.ChildAfter, Began: workflow.GetInfo(ctx).GetCurrentHistoryLength()}
	d := &drive.Driver{
		Call: call, Waiting: r.waitRecorder(ctx, record), Host: &drive.ActivityHost{Task: task}, Plays: r.showChildRun(ctx, record),
		Renews: func() bool { return renewal.IsDue(ctx, call) },
	}
	snapshot := d.Run(ctx)
	if snapshot == nil {
		return *call.Result()
	}
	d.CloseAnswers()
	record.Call = protocol.ChildID(task, "")
	r.status.describeRun(ctx)
	return r.callInChild(ctx, task, *snapshot, call, d.Allowance.Unused())
}

// taskOf returns the task of a step, which its calls need wherever they run.
func (r *run) taskOf(start interpreter.Start) protocol.Task {
	task := protocol.Task{
		Name: r.input.Name, Source: r.input.Source, Hash: protocol.ShortHash(r.book), Run: r.Run, Step: start.Step.Name, Visit: start.Visit,
		Data: interpreter.CaptureData(r.book, r.Data, r.book.CallNodes(start.Step)), Args: expression.Of(start.Args),
		Limits: r.Limits, Nesting: r.nestingOf(start.Step),
	}
	if r.Run.WorkflowID != r.id {
		task.ID, task.StartedAt = r.id, r.startedAt()
	}
	return task
}

// showChildRun returns a function that shows the run of another playbook in the step's record.
func (r *run) showChildRun(ctx workflow.Context, record *protocol.StepRecord) func(string) {
	return func(child string) {
		record.Child = child
		r.status.describeRun(ctx)
	}
}

// waitRecorder returns a recorder that shows a wait in the step's record.
func (r *run) waitRecorder(ctx workflow.Context, record *protocol.StepRecord) drive.WaitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		record.Await(wait, until, call.View().Last)
		r.status.describeRun(ctx)
		if news, waits := drive.WaitsForPeople(call, wait, record.Visit); waits {
			r.notices.notifyAll(ctx, news, protocol.NewCallResult(news.Error))
		}
	}
}

// runLoopChild runs a step's loop in a child workflow, then writes the aggregate to the sinks of the step.
func (r *run) runLoop(
	ctx workflow.Context, start interpreter.Start, scope *interpreter.Scope, args any, record *protocol.StepRecord,
) interpreter.CallResult {
	step := start.Step
	input, err := r.loopInput(ctx, start, scope)
	if err != nil {
		return interpreter.ExpressionFailure(r.book, "step "+step.Name, err, workflow.Now(ctx))
	}
	print := ""
	if r.input.Called != nil {
		print = input.Task.LoopDigest(r.book, step, digestElements(input))
	}
	if result := r.earlier.earlierResult(record, func(time.Time) string { return print }); result != nil {
		return *result
	}
	if missing := r.checkSinks(ctx, input.Task.BuildCall(r.book, step, call.Snapshot{}, nil).Config(), record); missing != nil {
		return *missing
	}
	result := r.makeLoop(ctx, start, scope, args, record, input)
	r.earlier.saveStep(step, record, print, result)
	return result
}

// makeLoop runs the loop of a step and its sinks.
func (r *run) makeLoop(
	ctx workflow.Context, start interpreter.Start, scope *interpreter.Scope, args any, record *protocol.StepRecord, input protocol.LoopInput,
) interpreter.CallResult {
	step := start.Step
	aggregate, failure := r.continueLoop(ctx, step, input, record)
	if failure != nil {
		return interpreter.CallResult{
			Status: interpreter.StatusError, Error: failure,
			Meta: interpreter.CallMeta{StartedAt: record.StartedAt, EndedAt: workflow.Now(ctx)},
		}
	}
	record.Loop.Stats, record.Loop.Errors, record.Loop.Open = aggregate.Stats, aggregate.Errors, false
	r.countCancelled(ctx, record)
	r.status.publishDeadLetters(ctx, aggregate.Stats.Failed)
	result := aggregate.CallResult(step, record.StartedAt, workflow.Now(ctx))
	if ctx.Err() != nil {
		result.Status = interpreter.StatusError
		result.Error = &interpreter.ErrorObject{
			Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "step " + step.Name + ": cancelled",
		}
		return result
	}
	result = r.publishStaged(ctx, start, scope, r.book.StagingSinks(step), aggregate.ReadAll(), result, record)
	return r.stepSinks(ctx, start, scope, args, result, record, aggregate.ReadAll())
}

// publishStaged publishes the rows staged for the sinks, if everything was read and nothing has failed.
func (r *run) publishStaged(
	ctx workflow.Context, start interpreter.Start, scope *interpreter.Scope, sinks []*playbook.Sink, readAll bool,
	result interpreter.CallResult, record *protocol.StepRecord,
) interpreter.CallResult {
	for _, to := range sinks {
		if !r.Limits.StagesRows(r.book, start.Step, to) {
			continue
		}
		if result.Failed() || !readAll && r.book.PublishesWhole(start.Step, to) {
			result.Warnings = append(result.Warnings, sink.UnpublishedWarning(r.book, start.Step, to, againCount(start.Step, record)))
			continue
		}
		machine := call.NewPublish(call.Config{
			Source: request.Source{Book: r.book, Run: r.Run, Step: start.Step, Visit: start.Visit, Scope: scope},
			Limits: r.Limits,
			Random: gate.RandomStream(ctx, fmt.Sprintf("%s#%d/%s", start.Step.Name, start.Visit, to.Place)),
		}, to)
		written := drive.Drive(ctx, machine, r.waitRecorder(ctx, record), nil)
		result.Meta.EndedAt = workflow.Now(ctx)
		result = sink.AddWritten(result, to, written)
	}
	return result
}

// againCount returns how many iterations of a loop a reprocess can run: those that failed, and those that were cancelled unless they came from a source.
func againCount(step *playbook.Step, record *protocol.StepRecord) int {
	switch {
	case step.Loop == nil || record.Loop == nil:
		return 0
	case step.Loop.Source != nil:
		return record.Loop.Stats.Failed
	}
	return record.Loop.Stats.Failed + record.Loop.Stats.Cancelled
}

// loopInput returns the input of a step's loop: its whole collection or, in a reprocess, the elements chosen from
// it.
func (r *run) loopInput(ctx workflow.Context, start interpreter.Start, scope *interpreter.Scope) (protocol.LoopInput, error) {
	input := protocol.LoopInput{Task: r.taskOf(start), Control: r.controls.OfStep(start.Step.Name), Reserves: true}
	if r.input.Reprocess != nil {
		again := r.input.Reprocess.Loops[r.Reprocessed]
		input.Elements, input.Chosen = again.Elements, &again.Subset
		return input, nil
	}
	if nodes := start.Step.EndNodes(); len(nodes) > 0 {
		input.SinkData = interpreter.CaptureData(r.book, r.Data, nodes)
		input.SinkData.Workload = expression.Value{} // a reprocess has it anyway
	}
	if from := start.Step.Loop.Source; from != nil {
		input.Source = &protocol.LoopSource{Data: interpreter.CaptureData(r.book, r.Data, r.book.CallNodes(from))}
		return input, nil
	}
	budget := gate.ExpressionBudget(ctx)
	elements, err := interpreter.EvalCollection(start.Step.Loop, scope, budget)
	r.warnOf("step "+start.Step.Name, budget)
	if err != nil {
		return input, err
	}
	input.Elements = lists.Map(elements, expression.Of)
	return input, nil
}

// digestElements returns the values that represent the elements of a loop in its digest. For a source, whose elements are
// not known yet, these are the values that its call uses.
func digestElements(input protocol.LoopInput) []expression.Value {
	if from := input.Source; from != nil {
		return []expression.Value{from.Data.Workload, from.Data.Vars, from.Data.Steps}
	}
	return input.Elements
}

func (r *run) runLoopChild(
	ctx workflow.Context, step *playbook.Step, input protocol.LoopInput, record *protocol.StepRecord,
) (*interpreter.LoopResult, *interpreter.ErrorObject) {
	task, elements := input.Task, input.Elements
	record.Loop = &protocol.LoopRecord{WorkflowID: protocol.ChildID(task, ""), Stats: interpreter.NewLoopResult(len(elements)).Stats, Open: input.Source != nil}
	r.status.describeRun(ctx)
	summary := fmt.Sprintf("%s: %d iterations, %s", step.Name, len(elements), step.Loop.Mode)
	if input.Source != nil {
		summary = fmt.Sprintf("%s: iterations over a source, %s", step.Name, step.Loop.Mode)
	}
	to := gate.ToChild(protocol.LoopWorkflowName, record.Loop.WorkflowID, step.Name, summary, actsOnStep(step.Name))
	to.Details = protocol.DescribeChild(r.book, task)
	result, err := gate.Send[interpreter.LoopResult](ctx, to, input,
		"the collection of step "+step.Name+" with what its expressions name")
	switch {
	case err == nil:
		return &result, nil
	case protocol.IsCancelled(err): // and no part of it has reported its progress
		return interpreter.NewLoopResult(len(elements)), nil
	}
	failure := protocol.ChildError(err)
	if _, ours := protocol.UnsentError(err); ours { // nothing has begun
		return nil, failure
	}
	broken := interpreter.NewLoopResult(len(elements))
	if step.Loop.StatsOnly {
		broken.DropResults()
	}
	l := &loop.Loop{Input: input, Shard: protocol.Shard{Size: len(elements)}, Result: broken}
	l.AddTerminated(ctx, record.Loop.WorkflowID, failure)
	broken.Shrink(step.Name, gate.PayloadCap(ctx))
	return broken, nil
}

// stepSinks writes the aggregate of a loop, whatever its status, to the sinks of its step, and publishes what they
// stage. After the first failed sink, the others are not written.
func (r *run) stepSinks(
	ctx workflow.Context, start interpreter.Start, scope *interpreter.Scope, args any,
	result interpreter.CallResult, record *protocol.StepRecord, readAll bool,
) interpreter.CallResult {
	step, aggregate := start.Step, result.Data.Data
	inSinks := interpreter.EndScope(scope, args, result)
	for i, to := range step.Sinks {
		stream := "sink"
		if i > 0 {
			stream = to.Place
		}
		machine := call.NewLoopSink(call.Config{
			Source: request.Source{Book: r.book, Run: r.Run, Step: step, Visit: start.Visit, Scope: inSinks},
			Limits: r.Limits,
			Random: gate.RandomStream(ctx, fmt.Sprintf("%s#%d/%s", step.Name, start.Visit, stream)),
		}, to, aggregate).Watch(gate.CallObserver(ctx))
		written := drive.Drive(ctx, machine, r.waitRecorder(ctx, record), nil)
		result.Meta.EndedAt = workflow.Now(ctx)
		result = sink.AddWritten(result, to, written)
		if envelope := interpreter.EnvelopeInSink(r.book, to, aggregate, false); envelope != "" {
			result.Warnings = append(result.Warnings, "step "+step.Name+": "+envelope)
		}
		if written.Failed() {
			break
		}
	}
	return r.publishStaged(ctx, start, scope, lists.Filter(step.Sinks, func(to *playbook.Sink) bool { return r.book.StagesRows(step, to) }), readAll, result, record)
}

// closeRecord completes the record of a step that has ended.
func (r *run) closeRecord(ctx workflow.Context, record *protocol.StepRecord, result interpreter.CallResult) {
	child := record.Child
	record.EndedAt, record.CallStatus = workflow.Now(ctx), result.CallStatus()
	record.Child, record.Incremental, record.Rows = child, result.Meta.Incremental.Record(), result.Meta.Rows
	r.status.addRows(ctx, record.Rows)
	r.countStep(ctx, record)
	if moved := result.Meta.Incremental; moved != nil && moved.Moved {
		r.markWatermark(ctx, record.Step, moved.Type, moved.Watermark)
	}
	r.status.describeRun(ctx)
}
