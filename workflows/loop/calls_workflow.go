package loop

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// CallsWorkflow makes calls of a step: the iterations of one batch of its loop, usually one, or the single call of
// a step that has become too long for the history of its run. It fails if all of its iterations failed, so that
// people see the failure in Temporal's UI; the results are then in the details of the failure. It continues as new
// whenever its history gets long.
func CallsWorkflow(ctx workflow.Context, input protocol.CallsInput, script call.Script) (*protocol.CallsOutput, error) {
	input.Task = input.Task.WithScript(script)
	ctx = gate.WithOutbox(ctx, input.Task.Limits)
	book, step, err := drive.LoadStep(input.Task)
	if err != nil {
		return nil, err
	}
	meter.ZeroStep(gate.SeriesRecorder(ctx), input.Task.Run.Playbook, book, step)
	ctx, controls := control.WithControls(ctx, protocol.RunID(input.Task), input.Control, control.ParentsOf(input.Task))
	running, stop := workflow.WithCancel(ctx)
	b := newBatch(ctx, book, step, input, stop)
	err = errors.Join(
		workflow.SetQueryHandler(ctx, protocol.IterationsQuery, b.openIterations),
		workflow.SetQueryHandler(ctx, interpreter.StoppedQuery, b.stoppedCall),
	)
	if err != nil {
		return nil, err
	}
	if step.Loop != nil && step.Loop.Mode == playbook.Parallel {
		b.slot = control.NewSlot(ctx, &b.input, step.Loop.MaxConcurrency, b.countOutcomes)
	}
	controls.Answered, controls.Asked = input.Answered, input.Asked
	controls.Elsewhere, controls.Reported = b.endedAnswerError, input.Reported
	controls.HasSiblings, controls.LongestReported = input.HasSiblings, input.LongestReported
	controls.ListenForReports(ctx, b.reportWaits)
	controls.ApplyFromParent(ctx, b.slot)
	if err := controls.ServeAnswers(ctx); err != nil {
		return nil, err
	}
	b.describeBatch(ctx)
	b.resumeStopped(running)
	controls.AwaitAnswers(ctx)
	for {
		b.makeCalls(running)
		if len(b.remaining) == 0 || running.Err() != nil {
			break
		}
		controls.Answers.Open(ctx)
		controls.ApplyArrived(ctx)
		failure, next := gate.ContinueAsNew(ctx, protocol.CallsWorkflowName, b.nextInput(controls), fmt.Sprintf(
			"the state of %d calls of step %s", len(b.remaining), step.Name))
		if failure == nil {
			return nil, next
		}
		b.retainLargeCalls(ctx, failure)
	}
	b.describeBatch(ctx)
	controls.Answers.Open(ctx)
	return b.finishBatch(ctx)
}

func newBatch(
	ctx workflow.Context, book *playbook.Playbook, step *playbook.Step, input protocol.CallsInput, stop workflow.CancelFunc,
) *batch {
	n := len(input.Calls)
	b := &batch{
		step: step, notifier: drive.ParentNotifier{Book: book, Once: step.Loop != nil}, input: input, ended: input.Ended, stop: stop,
		calls: make([]*call.Call, n), drivers: make([]*drive.Driver, n), over: make([]bool, n), counted: make([]bool, n),
		waits: make([]*interpreter.Wait, n), until: make([]time.Time, n), children: make([]string, n),
		earlier: make([]string, n), allowance: drive.Allowance{Left: input.Admitted, None: input.Refused},
	}
	for i, snapshot := range input.Calls {
		b.calls[i] = ResumeCall(ctx, book, step, input.Task, snapshot)
		if snapshot.State == nil {
			b.earlier[i] = snapshot.By
		}
	}
	return b
}

// ResumeCall builds a call that continues from a snapshot.
func ResumeCall(
	ctx workflow.Context, book *playbook.Playbook, step *playbook.Step, task protocol.Task, snapshot call.Snapshot,
) *call.Call {
	name := fmt.Sprintf("%s#%d", step.Name, task.Visit)
	if snapshot.Index != nil {
		name = fmt.Sprintf("%s/%d", name, *snapshot.Index)
	}
	call := task.BuildCall(book, step, snapshot, gate.RandomStream(ctx, name)).Watch(gate.CallObserver(ctx))
	if call.View().DueWait(workflow.Now(ctx)) != nil {
		call.WaitedUntil(snapshot.Until, workflow.Now(ctx))
	}
	return call
}

// batch has the calls of one CallsWorkflow.
type batch struct {
	step     *playbook.Step
	notifier drive.ParentNotifier
	input    protocol.CallsInput
	calls    []*call.Call
	drivers  []*drive.Driver // of calls that have begun in this history
	ended    []interpreter.IterationResult
	over     []bool // whether a call's result is in ended
	// earlier has, for each call, the ID of the workflow whose stopped call it continues; "" if it need not be
	// queried.
	earlier []string
	// counted says which calls are already in the metrics, because an activity completed them.
	counted []bool
	// budget is the error of the loop once its failure budget is spent; stop then cancels running calls.
	budget *interpreter.ErrorObject
	stop   workflow.CancelFunc
	// remaining are the calls that continue in the next history. When one has to, all do.
	remaining []int
	renewing  bool
	renewal   drive.Renewal
	waits     []*interpreter.Wait // of running calls, nil for none
	until     []time.Time         // of these waits
	// children are the workflow IDs of the last runs of other playbooks that the calls started.
	children []string
	hosted   []int // calls that an activity drives
	// slot is the slot in the loop's window; nil if iterations run one after the other.
	slot *control.Slot
	// allowance is the number of runs of other playbooks that the calls may start without a request.
	allowance drive.Allowance
}

// makeCalls drives the calls until they have ended or continue as new.
func (b *batch) makeCalls(ctx workflow.Context) {
	if b.slot != nil {
		b.runParallel(ctx, b.step.Loop.MaxConcurrency)
	} else {
		b.runSequential(ctx)
	}
	if b.budget != nil {
		b.abandonCalls(ctx)
	}
	slices.Sort(b.remaining)
}

// runParallel runs the calls concurrently.
func (b *batch) runParallel(ctx workflow.Context, width int) {
	all := b.openCalls()
	for due := b.dueCalls(all); b.shouldHost(ctx, due) && b.hostCalls(ctx, due, width); {
		due = b.dueCalls(due)
	}
	group := workflow.NewWaitGroup(ctx)
	for _, i := range all {
		if b.calls[i].Finished() {
			b.slot.Waiting--
			b.runIteration(ctx, i)
			continue
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			began := b.slot.Acquire(ctx) == nil
			b.runIteration(ctx, i)
			if began {
				b.slot.CallDone(ctx)
			}
		})
	}
	group.Wait(ctx)
}

// openCalls returns the calls that have not ended.
func (b *batch) openCalls() []int {
	open := make([]int, 0, len(b.calls))
	for i := range b.calls {
		if !b.over[i] {
			open = append(open, i)
		}
	}
	return open
}

// countOutcomes counts the ended iterations, and those of them that failed.
func (b *batch) countOutcomes() (ended, failed int) {
	for _, iteration := range b.ended {
		if iteration.Result.Failed() && !iteration.Cancelled {
			failed++
		}
	}
	return len(b.ended), failed
}

// dueCalls returns the given calls that an activity can advance.
func (b *batch) dueCalls(calls []int) []int {
	return lists.Filter(calls, b.isDue)
}

func (b *batch) isDue(i int) bool {
	view := b.calls[i].View()
	return !view.ToolTraits().InWorkflow && (!view.Begun || view.SinkDue())
}

// shouldHost reports whether one activity should drive the due calls. It is not worth it for a single sink.
func (b *batch) shouldHost(ctx workflow.Context, due []int) bool {
	return !gate.HistoryIsLong(ctx) && (len(due) > 1 || len(due) == 1 && !b.calls[due[0]].View().Begun)
}

// runSequential runs each call to its end, including waits and sinks, before the next one.
func (b *batch) runSequential(ctx workflow.Context) {
	open := b.openCalls()
	for at, i := range open {
		if len(b.remaining) > 0 {
			b.remaining = append(b.remaining, i)
			continue
		}
		for b.isDue(i) {
			if due := open[at:]; !b.shouldHost(ctx, due) || !b.hostCalls(ctx, due, 0) {
				break
			}
		}
		b.runIteration(ctx, i)
	}
}

// hostCalls lets one activity make all attempts, pages and sinks of some calls until they must wait. With a width
// of 0 the calls run one after the other, up to the first that must wait. A call that has not ended then waits, or
// has a sink whose write must be recorded in history first, and the workflow continues it. If the activity fails,
// further is false and the workflow makes single attempts.
func (b *batch) hostCalls(ctx workflow.Context, due []int, width int) (further bool) {
	if ctx.Err() != nil {
		return false
	}
	input := call.DriveInput{
		Task: b.input.Task, Width: width, Known: b.knownCounts(), Calls: make([]call.Snapshot, len(due)),
	}
	calls := make([]*call.Call, len(due))
	for at, i := range due {
		calls[at], input.Calls[at] = b.calls[i], b.input.Calls[i]
	}
	first, last := input.Calls[0].Index, input.Calls[len(due)-1].Index
	summary := gate.WithIndex(b.step.Name, first)
	if len(due) > 1 {
		summary = fmt.Sprintf("%s[%d–%d]", b.step.Name, *first, *last)
	}
	b.hosted = due
	defer func() { b.hosted = nil }()
	output, further := drive.HostCalls(ctx, input, calls, summary)
	var noted call.LedgerUse
	var ended []call.Snapshot
	for at, driven := range output.Calls {
		if driven.Result == nil {
			continue
		}
		if noted = max(noted, driven.Noted); driven.Noted != call.NotNoted {
			ended = append(ended, input.Calls[at].WithoutState(calls[at]))
		}
		b.counted[due[at]] = true
		drive.CountCall(ctx, calls[at])
		b.countResult(*driven.Result)
	}
	if len(b.calls) > 1 || !b.calls[0].Finished() { // a batch of one ends now and describes its end
		b.describeBatch(ctx)
	}
	drive.ForgetNotes(ctx, b.input.Task, noted, ended...)
	b.withinBudget(output.Budget)
	return further && b.budget == nil
}

// nextInput returns the input with which the remaining calls continue as new.
func (b *batch) nextInput(controls *control.Controls) protocol.CallsInput {
	next := b.input
	next.Task = controls.WithControls(next.Task)
	next.Calls = make([]call.Snapshot, len(b.remaining))
	for at, i := range b.remaining {
		next.Calls[at] = b.input.Calls[i]
	}
	next.Ended, next.Control, next.Answered = b.ended, controls.Control, controls.Answered
	next.Admitted, next.Reported, next.LongestReported = b.allowance.Left, controls.Reported, controls.LongestReported
	next.Asked = controls.Asked
	return next
}

// retainLargeCalls retains calls that are too large to continue as new in this history. If it is full, they fail.
func (b *batch) retainLargeCalls(ctx workflow.Context, failure *interpreter.ErrorObject) {
	now := workflow.Now(ctx)
	full := workflow.GetInfo(ctx).GetCurrentHistorySize() > drive.FullestHistory
	for _, i := range b.remaining {
		switch call := b.calls[i]; {
		case full:
			call.Finish(interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Meta: drive.MetaSoFar(ctx, call), Warnings: interpreter.UnwrittenWarnings(b.step),
			})
			b.counted[i] = true
			drive.CountCall(ctx, call)
		case call.View().DueWait(now) != nil:
			call.WaitedUntil(b.input.Calls[i].Until, now)
		}
	}
	if b.slot != nil {
		b.slot.Waiting += len(b.remaining)
	}
	b.remaining, b.renewing = nil, false
	b.renewal.RenewLater(ctx)
}

// knownCounts returns the counts of the whole loop; nil if it has no failure budget.
func (b *batch) knownCounts() *interpreter.LoopCounts {
	if b.input.Known == nil {
		return nil
	}
	known := *b.input.Known
	return &known
}

// abandonCalls ends, as cancelled, iterations that should have continued as new.
func (b *batch) abandonCalls(ctx workflow.Context) {
	for _, i := range b.remaining {
		b.cancelCall(ctx, i)
	}
	b.remaining = nil
}

// cancelCall ends an iteration as cancelled. If it has begun, its result has the attempts that it made and the rows that
// its pages wrote.
func (b *batch) cancelCall(ctx workflow.Context, i int) {
	ended := interpreter.IterationResult{Cancelled: true}
	if call := b.calls[i]; call.View().Begun {
		ended.Result = call.Cancel(workflow.Now(ctx))
		ended.Result.Error.Collected = expression.Value{} // nobody reads it, and each page is in it
	}
	b.endCall(ctx, i, ended)
}

// endCall records the end of a call.
func (b *batch) endCall(ctx workflow.Context, i int, result interpreter.IterationResult) {
	if index := b.input.Calls[i].Index; index != nil {
		result.Index = *index
		if rehearsal := gate.RehearsalOf(ctx); rehearsal != nil {
			rehearsal.IterationEnded(workflow.GetInfo(ctx).WorkflowExecution.ID, b.input.Task, result)
		}
	}
	b.ended, b.over[i] = append(b.ended, result), true
}

// countResult adds the result of an ended iteration to the counts of the loop.
func (b *batch) countResult(result interpreter.CallResult) {
	if b.input.Known != nil {
		b.input.Known.CountResult(result)
	}
}

// withinBudget ends the batch once the failure budget of its loop is spent: running calls are cancelled, others
// never begin. spent is the error if an activity has already found that, else nil.
func (b *batch) withinBudget(spent *interpreter.ErrorObject) {
	if spent == nil && b.input.Known != nil {
		spent = b.input.Known.BudgetError(b.step)
	}
	if spent != nil && b.budget == nil {
		b.budget = spent
		b.stop()
	}
}

// runIteration runs one call to its end, including the sinks of its policies and of the loop.
func (b *batch) runIteration(ctx workflow.Context, i int) {
	call := b.calls[i]
	if ctx.Err() != nil && !call.Finished() && b.step.Loop != nil {
		b.cancelCall(ctx, i)
		return
	}
	if b.drivers[i] == nil {
		b.drivers[i] = &drive.Driver{
			Call: call, Waiting: b.waitRecorder(ctx, i), Host: &drive.ActivityHost{Task: b.input.Task, Snapshot: b.input.Calls[i], HasSiblings: len(b.calls) > 1}, Slot: b.slot,
			Allowance: &b.allowance, Renews: func() bool { return b.mustRenew(ctx) },
			Plays: func(child string) {
				b.children[i] = child
				b.describeBatch(ctx)
			},
		}
	}
	if snapshot := b.drivers[i].Run(ctx); snapshot != nil {
		b.input.Calls[i] = *snapshot
		b.remaining = append(b.remaining, i)
		return
	}
	result := *call.Result()
	b.endCall(ctx, i, interpreter.IterationResult{
		Result: result, Cancelled: result.Failed() && result.Error.Kind == interpreter.KindCancelled,
	})
	if b.counted[i] {
		return
	}
	if len(b.calls) > 1 { // a batch of one ends now and describes its end
		b.describeBatch(ctx)
	}
	b.countResult(result)
	b.withinBudget(nil)
}

// mustRenew reports whether the calls continue as new. When one has to, all do, including waiting ones.
func (b *batch) mustRenew(ctx workflow.Context) bool {
	if !b.renewing && !b.renewal.IsDue(ctx, b.calls...) {
		return false
	}
	b.renewing = true
	b.slot.HoldSlot()
	control.ControlsOf(ctx).EndWaits()
	return true
}

// callsOutput returns the iterations that ended, in order.
func (b *batch) callsOutput() *protocol.CallsOutput {
	if b.step.Loop != nil && b.step.Loop.StatsOnly {
		for i := range b.ended {
			b.ended[i].Result.Data = expression.Value{}
		}
	}
	slices.SortFunc(b.ended, func(x, y interpreter.IterationResult) int { return x.Index - y.Index })
	return &protocol.CallsOutput{Iterations: b.ended, Budget: b.budget}
}

func (b *batch) finishBatch(ctx workflow.Context) (*protocol.CallsOutput, error) {
	output := b.callsOutput()
	output.Shrink(b.step, gate.PayloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*output)
	}
	failure := b.firstFailure(output)
	if failure == nil {
		return output, nil
	}
	message := failure.Message
	if n := len(output.Iterations); n > 1 {
		message = fmt.Sprintf("all %d iterations failed, the first with: %s", n, failure.ShortMessage())
	}
	return nil, temporal.NewApplicationErrorWithOptions(message, string(failure.Kind),
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
}

// firstFailure returns the failure of the first iteration if all of them failed, nil otherwise. It is also nil if
// the output would not fit into the details of a failure.
func (b *batch) firstFailure(output *protocol.CallsOutput) *interpreter.ErrorObject {
	several := len(output.Iterations) > 1
	if len(output.Iterations) == 0 {
		return nil
	}
	for _, iteration := range output.Iterations {
		if !iteration.Result.Failed() || several && iteration.Cancelled {
			return nil
		}
	}
	if several && interpreter.EncodedSize(output) > interpreter.MaxFailureDetails {
		return nil
	}
	return output.Iterations[0].Result.Error
}
