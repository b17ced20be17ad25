package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// handOverAfter is by how many events the history of a run grows while a step
// makes its call, before the call goes on in one of its own. An attempt takes six,
// with a wait eleven; pages that are fetched together take far fewer.
const handOverAfter = 900

const (
	// mostCarried bounds what it costs to carry a large state from history to history:
	// a call leaves one that is so many times larger than what it takes along.
	mostCarried = 4
	// fullestHistory is the size in bytes at which a call leaves its history in any
	// case, or fails where it cannot. Temporal ends a workflow at 50 MB.
	fullestHistory = 40_000_000
)

// handingOver tells whether a call goes on in another history.
type handingOver struct {
	after int // events from which it does; 0 is those of a long history
	began int // length of the history at which the call began
	again int // size of the history from which it is looked at again
}

func (h *handingOver) due(ctx workflow.Context, call *interpreter.Call) bool {
	size := workflow.GetInfo(ctx).GetCurrentHistorySize()
	switch {
	case h.after > 0 && workflow.GetInfo(ctx).GetCurrentHistoryLength()-h.began > h.after || size > fullestHistory:
		return true
	case !historyIsLong(ctx) || size < h.again:
		return false
	}
	state, limits := interpreter.EncodedSize(call.Snapshot()), outboxOf(ctx).limits
	if state > limits.PayloadCap() {
		return false // it is less once the sink of its page has written
	}
	if workflow.GetInfo(ctx).GetCurrentHistoryLength() <= longHistory {
		h.again = mostCarried * limits.Carried(state)
	}
	return size >= h.again
}

// later has the call stay until the history has grown once more by what a large one
// has.
func (h *handingOver) later(ctx workflow.Context) {
	h.again = workflow.GetInfo(ctx).GetCurrentHistorySize() + largeHistory
}

// CallWorkflow goes on with the call of a step that takes more attempts than
// the history of its run should hold. It begins a new history as often as it
// has to.
func CallWorkflow(ctx workflow.Context, input CallInput, script interpreter.Script) (*interpreter.CallResult, error) {
	input.Task = input.Task.With(script)
	ctx = withOutbox(ctx, input.Task.Limits)
	book, step, err := load(input.Task, input)
	if err != nil {
		return nil, err
	}
	ctx, controls := withControls(ctx, runID(input.Task), input.Control, above(input.Task))
	controls.Answered = input.Answered
	controls.listen(ctx, nil)
	if err := controls.answers(ctx); err != nil {
		return nil, err
	}
	call := takeUp(ctx, book, step, input.Task, input.Call)
	progress := callProgress{id: runID(input.Task), call: call, herald: herald{book: book}, record: StepRecord{
		Step: input.Task.Step, Visit: input.Task.Visit, Status: interpreter.Running, StartedAt: call.State.StartedAt,
	}}
	if err := workflow.SetQueryHandler(ctx, ProgressQuery, progress.answer); err != nil {
		return nil, err
	}
	err = answerStopped(ctx, func(StoppedQuestion) (interpreter.StoppedCall, error) { return input.Task.StoppedAs(call), nil })
	if err != nil {
		return nil, err
	}
	progress.describe(ctx)
	handing := handingOver{}
	d := &driver{
		call: call, waiting: progress.await(ctx), plays: progress.plays(ctx), carry: &carrier{task: input.Task, carried: input.Call},
		leaves: func() bool { return handing.due(ctx, call) },
	}
	for left := d.run(ctx); left != nil; left = d.run(ctx) {
		controls.drain(ctx)
		input.Call, input.Control, input.Answered = *left, controls.Control, controls.Answered
		input.Task = controls.task(input.Task)
		failure, next := goOn(ctx, CallWorkflowName, input, "the state of step "+step.Name)
		if failure == nil {
			return nil, next
		}
		if workflow.GetInfo(ctx).GetCurrentHistorySize() > fullestHistory {
			call.Finish(interpreter.CallResult{Status: interpreter.StatusError, Error: failure, Meta: metaSoFar(ctx, call)})
			break
		}
		handing.later(ctx)
	}
	result := *call.Result()
	result.Shrink("the result of step "+step.Name, payloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(result)
	}
	return &result, nil
}

// callProgress is the progress of a CallWorkflow.
type callProgress struct {
	id     string // of the run
	call   *interpreter.Call
	record StepRecord
	herald herald
}

// await notes a wait, and shows it.
func (p *callProgress) await(ctx workflow.Context) waiter {
	return func(call *interpreter.Call, wait *interpreter.Wait, until time.Time) {
		p.record.Await(call, wait, until)
		p.describe(ctx)
		if news, waits := waitsForPeople(call, wait, p.record.Visit); waits {
			p.herald.tell(ctx, news)
		}
	}
}

// plays notes the run of another playbook that an attempt starts, and shows it.
func (p *callProgress) plays(ctx workflow.Context) func(string) {
	return func(child string) {
		p.record.Child = child
		p.describe(ctx)
	}
}

func (p *callProgress) answer() (Progress, error) {
	record := p.record
	record.Follow(p.call)
	record.Error, record.LastError = record.Error.Shrunk(), p.call.State.Failure().Shrunk()
	return Progress{Steps: []StepRecord{record}}, nil
}

// handOver has a child go on with a call that has become long.
func (r *run) handOver(ctx workflow.Context, task Task, carried interpreter.Carried, call *interpreter.Call) interpreter.CallResult {
	id := childID(task, "")
	r.controls.handed[id] = true
	defer delete(r.controls.handed, id)
	input := CallInput{Task: task, Call: carried, Control: r.controls.handsOn(ctx, task.Step)}
	to := toChild(CallWorkflowName, id, task.Step, task.Step+": goes on after many attempts", takesStep(task.Step)).with(describePart(r.book, task))
	result, err := send[interpreter.CallResult](ctx, to, input, "the state of step "+task.Step)
	switch {
	case err == nil:
		return result
	case isCancelled(err), givenUp(ctx, err):
		return call.Cancel(workflow.Now(ctx))
	}
	return interpreter.CallResult{Status: interpreter.StatusError, Error: childError(err), Meta: metaSoFar(ctx, call)}
}

func metaSoFar(ctx workflow.Context, call *interpreter.Call) interpreter.CallMeta {
	return interpreter.CallMeta{
		Attempts: call.State.Attempts, Pages: call.State.Successes, StartedAt: call.State.StartedAt, EndedAt: workflow.Now(ctx),
	}
}
