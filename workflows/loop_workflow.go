package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// LoopWorkflow runs a loop: a child workflow per iteration or batch, within
// the loop's window, and one aggregate of them all.
func LoopWorkflow(ctx workflow.Context, input LoopInput, script call.Script) (*interpreter.LoopResult, error) {
	input.Task = input.Task.With(script)
	ctx = withOutbox(ctx, input.Task.Limits)
	book, step, err := load(input.Task)
	if err != nil {
		return nil, err
	}
	ctx, controls := withControls(ctx, runID(input.Task), input.Control, parentsOf(input.Task))
	l := newLoop(input, step, controls)
	l.book = book
	controls.listen(ctx, nil)
	l.listenForSlots(ctx)
	controls.shared = l.applyShared
	l.listenForShards(ctx)
	l.herald.book, l.herald.once = book, true
	l.herald.listen(ctx)
	controls.listenForReports(ctx, l.reportWaits)
	err = errors.Join(
		workflow.SetQueryHandler(ctx, ProgressQuery, l.progress),
		workflow.SetQueryHandler(ctx, IterationsQuery, l.iterations),
	)
	if err != nil {
		return nil, err
	}
	l.describe(ctx)
	leaf, _ := l.room(ctx)
	batches := (len(l.input.Elements) + l.batchSize() - 1) / l.batchSize()
	if batches <= leaf && (input.Shard != nil || len(input.Elements) <= leafElements) {
		l.runLeaf(ctx)
	} else {
		l.runShards(ctx, 0)
	}
	l.describe(ctx)
	l.result.Shrink(step.Name, payloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*l.result)
	}
	return l.result, nil
}

// loop is one run of LoopWorkflow: a whole loop, or a shard of one.
type loop struct {
	input  LoopInput
	shard  Shard
	book   *playbook.Playbook
	step   *playbook.Step
	loop   *playbook.Loop
	result *interpreter.LoopResult
	// controls is what people have requested of the run.
	controls       *controls
	cancelChildren workflow.CancelFunc
	window         *window
	herald         herald
	batches        []*openBatch // the batches that are open, in order of their start
	active         int          // iterations in open batches
	shards         []*openShard
	started        int       // elements that have begun here or in shards, once no more will
	shared         Shared    // what other shards use of the window
	allowance      allowance // what the iterations may start, and have not been given
	reported       *Shared   // what this shard uses, as it has reported to its loop; nil before it lingers
	// largest is the size of the largest result of a child in this history, bytes the
	// sum of all of them: more than the loop's result will have.
	largest, bytes int
}

func newLoop(input LoopInput, step *playbook.Step, controls *controls) *loop {
	l := &loop{input: input, step: step, loop: step.Loop, shard: Shard{Size: len(input.Elements)}, controls: controls}
	if input.Shard != nil {
		l.shard, l.shared = *input.Shard, input.Shard.Shared
	}
	l.result = interpreter.NewLoopResult(len(input.Elements))
	if l.loop.StatsOnly {
		l.result.DropResults()
	}
	l.window = l.newWindow()
	return l
}

// newWindow is one slot for a sequential loop: it starts an iteration when the one
// before has ended. People may change that of a parallel one while it runs.
func (l *loop) newWindow() *window {
	if l.loop.Mode != playbook.Parallel {
		one := func() int { return 1 }
		return &window{size: one, maxOpen: one}
	}
	return &window{
		size: func() int {
			if l.reported != nil {
				return min(l.width(), l.reported.Slots)
			}
			return max(1, l.width()-l.shared.Slots)
		},
		maxOpen: func() int { return max(1, (maxOpen-l.shared.Open)/l.batchSize()) },
	}
}

// width is how many batches of the whole loop may run at a time.
func (l *loop) width() int {
	return max(1, cmp.Or(l.controls.Tuned(l.step.Name).MaxConcurrency, l.loop.MaxConcurrency)/l.batchSize())
}

// index is that of the element at a position of the input.
func (l *loop) index(position int) int {
	if chosen := l.input.Chosen; chosen != nil {
		return chosen.Indexes[position]
	}
	return l.shard.First + position
}

// position is that of the iteration with an index; false where the input does not
// have it.
func (l *loop) position(index int) (int, bool) {
	if chosen := l.input.Chosen; chosen != nil {
		return slices.BinarySearch(chosen.Indexes, index)
	}
	position := index - l.shard.First
	return position, position >= 0 && position < len(l.input.Elements)
}

// size is that of the collection.
func (l *loop) size() int {
	if l.input.Chosen != nil {
		return l.input.Chosen.Size
	}
	return l.shard.Size
}

// batchSize is how many elements one child runs.
func (l *loop) batchSize() int { return l.loop.BatchOf(l.size()) }

// runLeaf starts the batches in order. A history that is long enough ends the
// leaf early; the rest is another shard.
func (l *loop) runLeaf(ctx workflow.Context) {
	size, total := l.batchSize(), len(l.input.Elements)
	window := l.window
	children, cancel := workflow.WithCancel(ctx)
	l.cancelChildren = cancel
	workflow.Go(children, l.awaitChildren)
	next := 0
	mayStart := func() bool { return l.mayStart(next / size) }
	for next < total && window.acquire(children, mayStart) == nil {
		if l.full(ctx) || l.result.Budget != nil {
			window.release()
			break
		}
		first, end := next, min(next+size, total)
		admitted := l.admit(children, end-first, total-first)
		if children.Err() != nil {
			window.release()
			break
		}
		next = end
		window.open++
		l.active += end - first
		l.startChild(children, l.callInputs(first, end), admitted)
	}
	l.started = next
	l.returnAllowance(ctx)
	l.wait(ctx, func() bool { return window.open == 0 })
	switch {
	case next == total || ctx.Err() != nil || l.result.Budget != nil:
	case l.input.Shard == nil:
		l.runShards(ctx, next)
	default:
		l.result.Next = next
	}
}

// withinBudget ends the loop once its failure budget is spent: those in flight
// are cancelled, the rest never start.
func (l *loop) withinBudget(ctx workflow.Context) {
	if l.result.Budget == nil {
		l.result.Budget = l.known().Spent(l.step)
	}
	if l.result.Budget != nil && ctx.Err() == nil {
		l.cancelChildren()
		l.cancelRuns(ctx)
	}
}

// known is how far the whole loop has come, as this shard of it knows.
func (l *loop) known() interpreter.Known {
	return interpreter.Known{
		Size:    l.shard.Size,
		Success: l.shard.Success + l.result.Stats.Success, Failed: l.shard.Failed + l.result.Stats.Failed,
	}
}

const (
	// maxStarting bounds the children of a loop that the server has yet to start, once
	// the first of them have been. Each start and each end of a child waits for the lock of
	// the loop's workflow, of which the server gives it half a second; after eleven such
	// waits it tries again 3 s later.
	maxStarting = 50
	// firstStarting is how many may be started at the beginning of a history, while hardly
	// a child ends: so many come to no such wait but on a very busy server.
	firstStarting = 100
)

// mayStart reports whether the loop may start another child than those that this history
// has sent: it is not paused, and the server has started most of those before.
func (l *loop) mayStart(sent int) bool {
	switch {
	case l.controls.IsPaused(l.step.Name):
		return false
	case sent < firstStarting:
		return true
	}
	starting := 0
	for _, b := range l.batches {
		if b.sent != nil && !b.sent.hasStarted() {
			starting++
		}
	}
	return starting < maxStarting
}

// callInputs are the calls of the elements from first up to end, not begun yet.
func (l *loop) callInputs(first, end int) []call.Snapshot {
	calls := make([]call.Snapshot, 0, end-first)
	for position := first; position < end; position++ {
		index := l.index(position)
		calls = append(calls, call.Snapshot{Index: &index, Size: l.size(), Element: l.input.Elements[position], By: l.begunIn(index)})
	}
	return calls
}

// startChild starts calls in one child workflow, which has a slot in the window. While all
// of them wait for long it releases the slot. admitted is how many runs of other playbooks
// they may start without a request.
func (l *loop) startChild(ctx workflow.Context, calls []call.Snapshot, admitted int) {
	index := *calls[0].Index
	input := CallsInput{
		Task: l.controls.task(l.input.Task), Calls: calls, Control: l.controls.Control,
		Admitted: admitted, Refused: l.allowance.none && admitted < len(calls),
		MayRelease: l.loop.Mode == playbook.Parallel && workflow.GetInfo(ctx).GetCurrentHistoryLength() < parkUntil,
	}
	if l.loop.FailureBudget != nil && len(calls) > 1 {
		known := l.known()
		input.Known = &known
	}
	b := &openBatch{id: iterationID(l.input.Task, index), index: index, calls: calls, holds: true}
	l.batches = append(l.batches, b)
	to := toChild(CallsWorkflowName, b.id, l.step.Name, l.summary(calls), actsOnCalls(calls))
	var err error
	if b.sent, err = start(ctx, to, input, fmt.Sprintf("the input of iteration %d of step %s", index, l.step.Name)); err != nil {
		l.childEnded(ctx, b, CallsOutput{}, err)
	}
}

// awaitChildren records how children have ended. One coroutine does that for all of them:
// the SDK runs each in each workflow task, whether there is anything to do for it or not.
func (l *loop) awaitChildren(ctx workflow.Context) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx) // those that are cancelled end too
	for {
		_ = workflow.Await(disconnected, func() bool { return l.endedBatch() != nil })
		ended := l.endedBatch()
		output, err := receive[CallsOutput](ctx, ended.sent)
		l.childEnded(ctx, ended, output, err)
	}
}

// endedBatch is the first open batch whose child has ended, nil for none.
func (l *loop) endedBatch() *openBatch {
	for _, b := range l.batches {
		if b.sent != nil && b.sent.hasResult() {
			return b
		}
	}
	return nil
}

// childEnded records how the calls of a child ended, or that it was not started.
func (l *loop) childEnded(ctx workflow.Context, b *openBatch, output CallsOutput, err error) {
	switch {
	case err == nil:
		l.weigh(ctx, output)
		for _, iteration := range output.Iterations {
			l.add(ctx, iteration)
		}
		l.result.Budget = cmp.Or(l.result.Budget, output.Budget)
	case !abandoned(ctx, err):
		l.failAll(ctx, b.calls, childError(err))
	}
	l.active -= len(b.calls)
	l.window.open--
	l.close(b)
	l.describe(ctx)
	l.withinBudget(ctx)
}

// actsOnCalls reports whether a child with some calls has to act on a request of
// people: a decision about one of them, or a resume of its step.
func actsOnCalls(calls []call.Snapshot) func(Steering) bool {
	return func(steering Steering) bool {
		if steering.Settle == nil {
			return steering.Resumes
		}
		return steering.Settle.Index == nil || slices.ContainsFunc(calls, func(call call.Snapshot) bool {
			return *call.Index == *steering.Settle.Index
		})
	}
}

func (l *loop) add(ctx workflow.Context, iteration interpreter.IterationResult) {
	if position, found := l.position(iteration.Index); found {
		l.result.Add(position, l.input.Elements[position].Data, iteration)
		l.countIteration(ctx, iteration)
		l.signalExhausted(ctx, iteration)
	}
}

// failAll accounts for elements whose child gave nothing, so that none is lost.
func (l *loop) failAll(ctx workflow.Context, calls []call.Snapshot, failure *interpreter.ErrorObject) {
	for _, call := range calls {
		l.add(ctx, interpreter.IterationResult{
			Index: *call.Index, Result: interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Warnings: interpreter.Unwritten(l.step),
			},
		})
	}
}

// summary is what Temporal's UI shows beside the child, as Markdown.
func (l *loop) summary(calls []call.Snapshot) string {
	if len(calls) > 1 {
		return fmt.Sprintf("%s %d–%d of %d", l.step.Name, *calls[0].Index, *calls[len(calls)-1].Index, l.size())
	}
	const most = 60
	return fmt.Sprintf("%s %d/%d: %s", l.step.Name, *calls[0].Index+1, l.size(),
		source.Code(expression.Text(calls[0].Element.Data), most))
}

func (l *loop) progress() (Progress, error) {
	rest := l.countParked()
	open := lists.Map(l.batches, func(b *openBatch) string { return b.id })
	shards := lists.Map(l.shards, func(p *openShard) string { return p.id })
	return Progress{
		Stats: l.result.Stats, Open: open, Active: rest.active(l.active), Waiting: rest.waiting, Returning: rest.returning,
		Within: rest.within, NextRetryAt: rest.next, Shards: shards,
		Awaits: awaitsAnswers(l.step), Plays: l.plays(), Control: l.controls.Control,
	}, nil
}

// awaitsAnswers reports whether attempts of a step are answered from outside, as far as
// the playbook names the tool literally.
func awaitsAnswers(step *playbook.Step) bool {
	return step.Action.Traits().Awaits
}

// plays reports whether the iterations run playbooks.
func (l *loop) plays() bool {
	return l.book.Resolve(l.step.Action).Traits().Plays
}
