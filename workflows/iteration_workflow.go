package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// IterationWorkflow runs one batch of a loop's iterations: usually one. It
// ends as failed where all of them failed, so that the failure shows where people
// look for it; the iterations travel in the details.
func IterationWorkflow(ctx workflow.Context, input IterationInput, script interpreter.Script) (*IterationOutput, error) {
	input.Task = input.Task.With(script)
	ctx = withOutbox(ctx, input.Task.Limits)
	book, step, err := load(input.Task, input)
	if err != nil {
		return nil, err
	}
	ctx, controls := withControls(ctx, runID(input.Task), input.Control, above(input.Task))
	going, stop := workflow.WithCancel(ctx)
	b := &batch{
		step: step, herald: herald{book: book, once: true}, input: input, calls: make([]*interpreter.Call, len(input.Calls)), ended: input.Ended, stop: stop,
		earlier:   make([]string, len(input.Calls)),
		allowance: allowance{left: input.Admitted, none: input.Refused},
	}
	for i, carried := range input.Calls {
		b.calls[i] = takeUp(ctx, book, step, input.Task, carried)
		if carried.State == nil {
			b.earlier[i] = carried.By
		}
	}
	if err := cmp.Or(b.answerLooks(ctx), answerStopped(ctx, b.stoppedCall)); err != nil {
		return nil, err
	}
	if step.Loop.Mode == playbook.Parallel {
		b.place = newPlace(ctx, &b.input, step.Loop.MaxConcurrency, b.outcomes)
	}
	controls.Answered, controls.elsewhere = input.Answered, b.answeredElsewhere
	controls.listen(ctx, b.place)
	if err := controls.answers(ctx); err != nil {
		return nil, err
	}
	b.describe(ctx)
	b.continues(going)
	if b.place != nil {
		b.parallel(going, step.Loop.MaxConcurrency)
	} else {
		b.sequential(going)
	}
	if b.budget != nil {
		b.abandon()
	}
	if len(b.left) > 0 && going.Err() == nil {
		controls.drain(ctx)
		input.Task = controls.task(input.Task)
		rest := input
		rest.Calls, rest.Ended, rest.Control, rest.Answered = b.left, b.ended, controls.Control, controls.Answered
		rest.Admitted = b.allowance.left
		failure, next := goOn(ctx, IterationWorkflowName, rest, fmt.Sprintf(
			"what %d iterations of step %s take along to another history", len(rest.Calls), step.Name))
		if failure == nil {
			return nil, next
		}
		b.failRest(rest.Calls, failure)
	}
	b.describe(ctx)
	return b.finish(ctx)
}

// takeUp makes a call where it left off.
func takeUp(
	ctx workflow.Context, book *playbook.Playbook, step *playbook.Step, task Task, carried interpreter.Carried,
) *interpreter.Call {
	name := fmt.Sprintf("%s#%d", step.Name, task.Visit)
	if carried.Index != nil {
		name = fmt.Sprintf("%s/%d", name, *carried.Index)
	}
	call := task.Call(book, step, carried, stream(ctx, name))
	if call.Waits(workflow.Now(ctx)) != nil {
		call.WaitedUntil(carried.Until, workflow.Now(ctx))
	}
	return call
}

// batch is the iterations of one child workflow.
type batch struct {
	step   *playbook.Step
	herald herald
	input  IterationInput
	calls  []*interpreter.Call
	ended  []interpreter.IterationResult
	// earlier are the workflow IDs of those that had begun the calls when they were
	// stopped, "" for those that need not be asked.
	earlier []string
	// budget is the error of the loop once its failure budget is spent; stop then
	// cancels what is under way.
	budget *interpreter.ErrorObject
	stop   workflow.CancelFunc
	// left are the iterations that go on in another history of this workflow.
	left  []interpreter.Carried
	waits []*interpreter.Wait // of calls under way, nil for none
	until []time.Time         // of these waits
	// children are the runs of other playbooks that calls have started last.
	children []string
	hosted   []int // calls that an activity makes
	// place is that in the loop's window; nil where one iteration follows the other.
	place *place
	// allowance is how many runs of other playbooks the iterations may start.
	allowance allowance
}

// parallel has the iterations go on together.
func (b *batch) parallel(ctx workflow.Context, width int) {
	all := make([]int, len(b.calls))
	for i := range all {
		all[i] = i
	}
	for due := b.due(all); len(due) > 1 && !historyIsLong(ctx) && b.host(ctx, due, width); {
		due = b.due(due)
	}
	group := workflow.NewWaitGroup(ctx)
	for i := range b.calls {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			began := b.place.begin(ctx) == nil
			b.iterate(ctx, i)
			if began {
				b.place.end(ctx)
			}
		})
	}
	group.Wait(ctx)
}

// outcomes counts the iterations that have ended, and those among them that failed.
func (b *batch) outcomes() (ended, failed int) {
	for _, iteration := range b.ended {
		if iteration.Result.Failed() && !iteration.Cancelled {
			failed++
		}
	}
	return len(b.ended), failed
}

// due are those of the calls that an activity can take further.
func (b *batch) due(calls []int) []int {
	return slices.DeleteFunc(slices.Clone(calls), func(i int) bool {
		return b.calls[i].Begun() && !b.calls[i].SinkDue() || b.calls[i].InWorkflow()
	})
}

// sequential takes one iteration after the other to its end, waits and sinks
// included.
func (b *batch) sequential(ctx workflow.Context) {
	for i := range b.calls {
		if len(b.left) > 0 {
			b.left = append(b.left, b.input.Calls[i])
			continue
		}
		for !b.calls[i].InWorkflow() && (!b.calls[i].Begun() || b.calls[i].SinkDue()) {
			due := []int{i}
			for j := i + 1; j < len(b.calls); j++ {
				due = append(due, j)
			}
			if len(due) < 2 || historyIsLong(ctx) || !b.host(ctx, due, 0) {
				break
			}
		}
		b.iterate(ctx, i)
	}
}

// host has one activity make all attempts, pages and sinks of some calls that
// need no wait; with a width of 0 in order, up to the first that does. It comes
// back with the state of each that did not end: one that waits, or one whose
// sink writes what has to be in history first. The rest goes on from there, one
// attempt at a time where the activity itself failed. further is false there.
func (b *batch) host(ctx workflow.Context, due []int, width int) (further bool) {
	if ctx.Err() != nil {
		return false
	}
	input := interpreter.DriveInput{
		Task: b.input.Task, Width: width, Known: b.known(), Calls: make([]interpreter.Carried, len(due)),
	}
	for at, i := range due {
		input.Calls[at] = b.input.Calls[i]
		if call := b.calls[i]; call.Carries() {
			state := call.Snapshot()
			input.Calls[at].State = &state
		}
	}
	b.hosted = due
	defer func() { b.hosted = nil }()
	output := hostCalls(ctx, input, fmt.Sprintf("%s[%d–%d]", b.step.Name,
		*input.Calls[0].Index, *input.Calls[len(due)-1].Index))
	var noted interpreter.Noted
	var ended []interpreter.Carried
	for at, driven := range output.Calls {
		call := b.calls[due[at]]
		switch {
		case driven.Result != nil:
			if noted = max(noted, driven.Noted); driven.Noted != interpreter.NotNoted {
				ended = append(ended, input.Calls[at].Bare(call))
			}
			call.Finish(*driven.Result)
			countCall(ctx, call)
			b.count(*driven.Result)
			further = true
		case driven.State != nil:
			further = further || driven.Outcome != nil || driven.State.Attempts > call.State.Attempts ||
				driven.State.Written > call.State.Written
			call.State = *driven.State
			if driven.Outcome != nil {
				call.Attempted(*driven.Outcome, workflow.Now(ctx))
				logVerdict(ctx, call)
			}
		}
	}
	b.describe(ctx)
	forget(ctx, b.input.Task, noted, ended...)
	b.withinBudget(output.Budget)
	return further && b.budget == nil
}

// failRest ends iterations that cannot go on: too much goes along with them.
func (b *batch) failRest(calls []interpreter.Carried, failure *interpreter.ErrorObject) {
	for _, carried := range calls {
		b.ended = append(b.ended, interpreter.IterationResult{Index: *carried.Index, Result: interpreter.CallResult{
			Status: interpreter.StatusError, Error: failure, Warnings: interpreter.Unwritten(b.step),
		}})
	}
	b.left = nil
}

// known is how far the loop has come, nil where it has no failure budget to keep.
func (b *batch) known() *interpreter.Known {
	if b.input.Known == nil {
		return nil
	}
	known := *b.input.Known
	return &known
}

// abandon ends iterations that were to go on elsewhere.
func (b *batch) abandon() {
	for _, carried := range b.left {
		b.ended = append(b.ended, interpreter.IterationResult{Index: *carried.Index, Cancelled: true})
	}
	b.left = nil
}

// count adds an iteration that has ended to what the batch knows of the loop.
func (b *batch) count(result interpreter.CallResult) {
	if b.input.Known != nil {
		b.input.Known.Count(result)
	}
}

// withinBudget ends the batch once the failure budget of its loop is spent: what
// is under way is cancelled, the rest never begins. spent says that an activity
// has found so.
func (b *batch) withinBudget(spent *interpreter.ErrorObject) {
	if spent == nil && b.input.Known != nil {
		spent = b.input.Known.Spent(b.step)
	}
	if spent != nil && b.budget == nil {
		b.budget = spent
		b.stop()
	}
}

// iterate takes one iteration to its end: its call, with the sinks of its
// policies and of the loop.
func (b *batch) iterate(ctx workflow.Context, i int) {
	call, carried := b.calls[i], b.input.Calls[i]
	iteration := interpreter.IterationResult{Index: *carried.Index}
	if ctx.Err() != nil && !call.Finished() {
		iteration.Cancelled = true
		b.ended = append(b.ended, iteration)
		return
	}
	hosted := call.Finished() // and counted
	d := &driver{
		call: call, waiting: b.waiter(ctx, i), carry: &carrier{task: b.input.Task, carried: carried}, place: b.place, allowance: &b.allowance,
		plays: func(child string) { b.plays(ctx, i, child) }, leaves: func() bool { return b.leaves(ctx) },
	}
	if left := d.run(ctx); left != nil {
		b.left = append(b.left, *left)
		return
	}
	iteration.Result = *call.Result()
	iteration.Cancelled = iteration.Result.Failed() && iteration.Result.Error.Kind == interpreter.KindCancelled
	b.ended = append(b.ended, iteration)
	if !hosted {
		if len(b.calls) > 1 { // alone, the batch ends with it and says so
			b.describe(ctx)
		}
		b.count(iteration.Result)
		b.withinBudget(nil)
	}
}

// leaves reports whether an iteration goes on in another history. When one leaves a
// history that is long, all do, those that wait included.
func (b *batch) leaves(ctx workflow.Context) bool {
	if !historyIsLong(ctx) {
		return false
	}
	b.place.keep()
	controlsOf(ctx).move()
	return true
}

// output is the iterations that ended, in their order.
func (b *batch) output() *IterationOutput {
	if b.step.Loop.StatsOnly {
		for i := range b.ended {
			b.ended[i].Result.Data = expression.Value{}
		}
	}
	slices.SortFunc(b.ended, func(x, y interpreter.IterationResult) int { return x.Index - y.Index })
	return &IterationOutput{Iterations: b.ended, Budget: b.budget}
}

func (b *batch) finish(ctx workflow.Context) (*IterationOutput, error) {
	output := b.output()
	output.Shrink(b.step, payloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*output)
	}
	failure := b.failure(output)
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

// failure is that of the first iteration where all of them failed. What Temporal
// may not keep of a failure is better a result.
func (b *batch) failure(output *IterationOutput) *interpreter.ErrorObject {
	several := len(output.Iterations) > 1
	if len(output.Iterations) == 0 || several && !b.input.Fails {
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
