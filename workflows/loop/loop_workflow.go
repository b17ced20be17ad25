// Package loop has the workflows of a loop: LoopWorkflow starts a child for each iteration or batch, or for each
// shard of a large loop, and CallsWorkflow makes the calls of such a child.
package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/control"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// LoopWorkflow runs a loop: it starts a child workflow for each iteration or batch, within the loop's window, and
// aggregates the results.
func LoopWorkflow(ctx workflow.Context, input protocol.LoopInput, script call.Script) (*interpreter.LoopResult, error) {
	input.Task = input.Task.WithScript(script)
	ctx = gate.WithOutbox(ctx, input.Task.Limits)
	book, step, err := drive.LoadStep(input.Task)
	if err != nil {
		return nil, err
	}
	meter.ZeroStep(gate.SeriesRecorder(ctx), input.Task.Run.Playbook, book, step)
	ctx, controls := control.WithControls(ctx, protocol.RunID(input.Task), input.Control, control.ParentsOf(input.Task))
	l := newLoop(input, step, controls)
	l.book = book
	controls.ApplyFromParent(ctx, nil)
	l.listenForSlots(ctx)
	controls.Shared = l.applyShared
	l.listenForShards(ctx)
	l.notifier.Book, l.notifier.Once = book, true
	l.notifier.ForwardNews(ctx)
	controls.ListenForReports(ctx, l.reportWaits)
	err = errors.Join(
		workflow.SetQueryHandler(ctx, protocol.ProgressQuery, l.loopProgress),
		workflow.SetQueryHandler(ctx, protocol.IterationsQuery, l.iterationRecords),
	)
	if err != nil {
		return nil, err
	}
	l.describeLoop(ctx)
	if input.Source != nil {
		l.runSource(ctx)
		return l.finishLoop(ctx)
	}
	leaf, _ := l.childCapacity(ctx)
	batches := (len(l.Input.Elements) + l.batchSize() - 1) / l.batchSize()
	if batches <= leaf && (input.Shard != nil || len(input.Elements) <= interpreter.LeafElements) {
		l.runLeaf(ctx)
	} else {
		l.runShards(ctx, 0)
	}
	return l.finishLoop(ctx)
}

// finishLoop returns the result of the loop, or of a shard of it.
func (l *Loop) finishLoop(ctx workflow.Context) (*interpreter.LoopResult, error) {
	l.describeLoop(ctx)
	l.Result.Shrink(l.step.Name, gate.PayloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*l.Result)
	}
	return l.Result, nil
}

// Loop is the state of a LoopWorkflow, which runs a whole loop or a shard of one.
type Loop struct {
	Input  protocol.LoopInput
	Shard  protocol.Shard
	book   *playbook.Playbook
	step   *playbook.Step
	loop   *playbook.Loop
	Result *interpreter.LoopResult
	// controls has people's requests to the run.
	controls       *control.Controls
	cancelChildren workflow.CancelFunc
	window         *window
	notifier       drive.ParentNotifier
	batches        []*openBatch // open batches, in the order of their start
	active         int          // number of iterations in open batches
	next           int          // number of elements that have begun in this workflow, if it is a leaf
	shards         []*openShard
	started        int                    // elements that have begun in this workflow or in shards; set once no more will begin
	shared         protocol.SharedWindow  // what other shards use of the window
	allowance      drive.Allowance        // admitted runs that no iteration has received yet
	reported       *protocol.SharedWindow // what this shard uses, as last reported to its loop; nil before it lingers
	// largest is the size of the largest result of a child in this history, bytes the sum of their sizes: an upper
	// bound for the loop's own result.
	largest, bytes int
	// source is read by this workflow, nil for none. left is the snapshot from which another workflow reads on; nil
	// until then, and if the source has ended.
	source *sourceReader
	left   *call.Snapshot
}

func newLoop(input protocol.LoopInput, step *playbook.Step, controls *control.Controls) *Loop {
	l := &Loop{Input: input, step: step, loop: step.Loop, Shard: protocol.Shard{Size: len(input.Elements)}, controls: controls}
	if input.Shard != nil {
		l.Shard, l.shared = *input.Shard, input.Shard.Shared
	}
	l.Result = interpreter.NewLoopResult(len(input.Elements))
	if l.loop.StatsOnly {
		l.Result.DropResults()
	}
	l.window = l.newWindow()
	return l
}

// newWindow returns the window of the loop. A sequential loop has one slot, so that an iteration starts when the
// previous one has ended. People may change the width of a parallel loop while it runs.
func (l *Loop) newWindow() *window {
	if l.loop.Mode != playbook.Parallel {
		one := func() int { return 1 }
		return &window{size: one, maxOpen: one}
	}
	return &window{
		size: func() int {
			if l.reported != nil {
				return min(l.loopWidth(), l.reported.Slots)
			}
			return max(1, l.loopWidth()-l.shared.Slots)
		},
		maxOpen: func() int { return max(1, (protocol.MaxOpen-l.shared.Open)/l.batchSize()) },
	}
}

// loopWidth returns the number of batches of the whole loop that may run at a time.
func (l *Loop) loopWidth() int {
	return max(1, cmp.Or(l.controls.TuningOf(l.step.Name).MaxConcurrency, l.loop.MaxConcurrency)/l.batchSize())
}

// indexAt returns the index of the element at a position of the input.
func (l *Loop) indexAt(position int) int {
	if chosen := l.Input.Chosen; chosen != nil {
		return chosen.Indexes[position]
	}
	return l.Shard.First + position
}

// positionOf returns the position of the iteration with an index; false if the input does not have it.
func (l *Loop) positionOf(index int) (int, bool) {
	if chosen := l.Input.Chosen; chosen != nil {
		return slices.BinarySearch(chosen.Indexes, index)
	}
	position := index - l.Shard.First
	return position, position >= 0 && position < l.Result.Stats.Total
}

// elementAt returns the element at a position; nil if another workflow has it.
func (l *Loop) elementAt(position int) any {
	if position < len(l.Input.Elements) {
		return l.Input.Elements[position].Data
	}
	for _, p := range l.shards {
		if at := position - p.first; at >= 0 && at < len(p.elements) {
			return p.elements[at].Data
		}
	}
	return nil
}

// sizeText returns the size of the collection for people; "so far" if a source may provide more.
func sizeText(l *Loop) string {
	if l.Shard.Open {
		return fmt.Sprintf("%d so far", l.collectionSize())
	}
	return fmt.Sprint(l.collectionSize())
}

// collectionSize returns the size of the collection.
func (l *Loop) collectionSize() int {
	if l.Input.Chosen != nil {
		return l.Input.Chosen.Size
	}
	return l.Shard.Size
}

// batchSize returns the number of elements of a batch.
func (l *Loop) batchSize() int { return l.loop.BatchSize(l.collectionSize()) }

// runLeaf starts the batches in order. If its history becomes long, it ends early and leaves the rest to another
// shard.
func (l *Loop) runLeaf(ctx workflow.Context) {
	size, total := l.batchSize(), len(l.Input.Elements)
	window, history := l.window, room{l}
	children, cancel := workflow.WithCancel(ctx)
	l.cancelChildren = cancel
	workflow.Go(children, l.awaitChildren)
	mayStart := func() bool { return l.mayStart(l.next/size) && history.mayStart(ctx) }
	for l.next < total && window.acquireSlot(children, mayStart) == nil {
		if l.isFull(ctx) || history.leavesRest(ctx, 0) || l.Result.Budget != nil {
			window.releaseSlot()
			break
		}
		first, end := l.next, min(l.next+size, total)
		admitted := l.admitRuns(children, end-first, total-first)
		if children.Err() != nil {
			window.releaseSlot()
			break
		}
		l.next = end
		window.open++
		l.active += end - first
		l.startChild(children, l.callInputs(first, end), admitted)
	}
	l.started = l.next
	l.returnAllowance(ctx)
	l.waitUntil(ctx, func() bool { return window.open == 0 })
	switch {
	case l.next == total || ctx.Err() != nil || l.Result.Budget != nil:
	case l.Input.Shard == nil:
		l.runShards(ctx, l.next)
	default:
		l.Result.Next = l.next
	}
}

// withinBudget ends the loop once its failure budget is spent: running iterations are cancelled, others never
// start.
func (l *Loop) withinBudget(ctx workflow.Context) {
	if l.Result.Budget == nil {
		l.Result.Budget = l.knownCounts().BudgetError(l.step)
	}
	if l.Result.Budget != nil && ctx.Err() == nil {
		l.cancelChildren()
		l.cancelRuns(ctx)
	}
}

// knownCounts returns the counts of the whole loop, as far as this shard knows them.
func (l *Loop) knownCounts() interpreter.LoopCounts {
	return interpreter.LoopCounts{
		Size:    l.Shard.Size,
		Success: l.Shard.Success + l.Result.Stats.Success, Failed: l.Shard.Failed + l.Result.Stats.Failed,
	}
}

const (
	// maxStarting bounds the children, after the first ones, that were sent to the server and have not started.
	// With more, starts and ends of children compete for the lock of the loop's workflow, for which the server
	// waits half a second each; after eleven failures it tries again 3 s later.
	maxStarting = 50
	// firstStarting is the same bound at the beginning of a history, when hardly any child ends: unless the server
	// is very busy, so many do not wait for that lock.
	firstStarting = 100
)

// mayStart reports whether the loop may start another child after the sent ones: it is not paused, and the server
// has started most of these.
func (l *Loop) mayStart(sent int) bool {
	if l.controls.IsPaused(l.step.Name) {
		return false
	}
	starting := 0
	for _, b := range l.batches {
		if b.sent != nil && !b.sent.HasStarted() {
			starting++
		}
	}
	return leavesRoom(sent, starting)
}

// leavesRoom reports whether another child may be sent, where so many were sent and so many of these have not started.
func leavesRoom(sent, starting int) bool { return sent < firstStarting || starting < maxStarting }

// callInputs returns snapshots of calls that have not begun, for the elements from first up to end.
func (l *Loop) callInputs(first, end int) []call.Snapshot {
	calls, size := make([]call.Snapshot, 0, end-first), l.collectionSize()
	if l.Shard.Open {
		size = 0 // nobody knows it yet
	}
	for position := first; position < end; position++ {
		index := l.indexAt(position)
		calls = append(calls, call.Snapshot{Index: &index, Size: size, Element: l.Input.Elements[position], By: l.earlierWorkflow(index)})
	}
	return calls
}

// startChild starts calls in one child workflow, which has a slot in the window. The child releases the slot while
// all of its calls are in long waits. admitted is the number of runs of other playbooks that they may start without
// a request.
func (l *Loop) startChild(ctx workflow.Context, calls []call.Snapshot, admitted int) {
	index := *calls[0].Index
	input := protocol.CallsInput{
		Task: l.controls.WithControls(l.Input.Task), Calls: calls, Control: l.controls.Control,
		Admitted: admitted, Refused: l.allowance.None && admitted < len(calls),
		MayRelease: room{l}.mayPark(ctx, childEvents), HasSiblings: l.window.size() > 1,
	}
	if l.loop.FailureBudget != nil && len(calls) > 1 {
		known := l.knownCounts()
		input.Known = &known
	}
	b := &openBatch{id: protocol.BatchID(l.Input.Task, index), index: index, calls: calls, holds: true, mayPark: input.MayRelease}
	l.batches = append(l.batches, b)
	to := gate.ToChild(protocol.CallsWorkflowName, b.id, l.step.Name, l.childSummary(calls), actsOnCalls(calls))
	var err error
	if b.sent, err = gate.Start(ctx, to, input, fmt.Sprintf("the input of iteration %d of step %s", index, l.step.Name)); err != nil {
		l.childEnded(ctx, b, protocol.CallsOutput{}, err)
	}
}

// awaitChildren records the ends of all children, in one coroutine, because the SDK runs every coroutine in every
// workflow task, whether it has work or not.
func (l *Loop) awaitChildren(ctx workflow.Context) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx) // cancelled ones end too
	for {
		_ = workflow.Await(disconnected, func() bool { return l.endedBatch() != nil })
		ended := l.endedBatch()
		output, err := gate.ReceiveResult[protocol.CallsOutput](ctx, ended.sent)
		l.childEnded(ctx, ended, output, err)
	}
}

// endedBatch returns the first open batch whose child has ended, nil for none.
func (l *Loop) endedBatch() *openBatch {
	for _, b := range l.batches {
		if b.sent != nil && b.sent.HasResult() {
			return b
		}
	}
	return nil
}

// childEnded records the results of a child's calls, or that it was not started.
func (l *Loop) childEnded(ctx workflow.Context, b *openBatch, output protocol.CallsOutput, err error) {
	switch {
	case err == nil:
		l.weighOutput(ctx, output)
		for _, iteration := range output.Iterations {
			l.addIteration(ctx, iteration)
		}
		l.Result.Budget = cmp.Or(l.Result.Budget, output.Budget)
	case !protocol.IsOwnCancel(ctx, err):
		l.failAll(ctx, b.calls, protocol.ChildError(err))
	}
	l.active -= len(b.calls)
	l.window.open--
	l.closeBatch(b)
	l.describeLoop(ctx)
	l.withinBudget(ctx)
}

// actsOnCalls returns a filter for the requests of people that a child with these calls has to act on: decisions
// about one of them, and resumes of its step.
func actsOnCalls(calls []call.Snapshot) func(protocol.Steering) bool {
	return func(steering protocol.Steering) bool {
		if steering.Settle == nil {
			return steering.Resumes
		}
		return steering.Settle.Index == nil || slices.ContainsFunc(calls, func(call call.Snapshot) bool {
			return *call.Index == *steering.Settle.Index
		})
	}
}

func (l *Loop) addIteration(ctx workflow.Context, iteration interpreter.IterationResult) {
	if position, found := l.positionOf(iteration.Index); found {
		l.Result.AddIteration(position, l.elementAt(position), iteration)
		l.countIteration(ctx, iteration)
		l.signalExhausted(ctx, iteration)
	}
}

// failAll records a failure for all elements of a child that returned no results, so that none is lost.
func (l *Loop) failAll(ctx workflow.Context, calls []call.Snapshot, failure *interpreter.ErrorObject) {
	for _, call := range calls {
		l.addIteration(ctx, interpreter.IterationResult{
			Index: *call.Index, Result: interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Warnings: interpreter.UnwrittenWarnings(l.step),
			},
		})
	}
}

// childSummary returns the summary of a child in Temporal's UI, as Markdown.
func (l *Loop) childSummary(calls []call.Snapshot) string {
	if len(calls) > 1 {
		return fmt.Sprintf("%s %d–%d of %s", l.step.Name, *calls[0].Index, *calls[len(calls)-1].Index, sizeText(l))
	}
	const shown = 60
	return fmt.Sprintf("%s %d/%s: %s", l.step.Name, *calls[0].Index+1, sizeText(l),
		source.MarkdownCode(expression.Text(calls[0].Element.Data), shown))
}

func (l *Loop) loopProgress() (protocol.Progress, error) {
	rest := l.countParked()
	open := lists.Map(l.batches, func(b *openBatch) string { return b.id })
	shards := lists.Map(l.shards, func(p *openShard) string { return p.id })
	return protocol.Progress{
		Stats: l.Result.Stats, Open: open, Active: rest.activeCalls(l.active), Waiting: rest.waiting, Returning: rest.returning,
		Within: rest.within, NextRetryAt: rest.next, Shards: shards,
		Awaits: AwaitsAnswers(l.step), Plays: l.runsPlaybooks(), Control: l.controls.Control, Rows: l.Result.Rows,
		Source: l.source.sourceProgress(),
	}, nil
}

// AwaitsAnswers reports whether attempts of a step are answered from outside; false if its tool is given by an
// expression.
func AwaitsAnswers(step *playbook.Step) bool {
	return step.Action.ToolTraits().Awaits
}

// runsPlaybooks reports whether the iterations run playbooks.
func (l *Loop) runsPlaybooks() bool {
	return l.book.ResolveAction(l.step.Action).ToolTraits().Plays
}

// countIteration adds an ended iteration, and its dead letter, to the metrics.
func (l *Loop) countIteration(ctx workflow.Context, iteration interpreter.IterationResult) {
	book, step, state := l.Input.Task.Run.Playbook, l.step.Name, interpreter.Completed
	if iteration.Cancelled {
		return // as are iterations that never began: their run counts them
	}
	if failure := iteration.Result.Error; iteration.Result.Failed() {
		state = interpreter.Failed
		gate.MetricsOf(ctx).Add(meter.DeadLetters, 1, book, step, string(failure.Kind), meter.ClassOf(failure))
	}
	gate.MetricsOf(ctx).Add(meter.Iterations, 1, book, step, string(state))
	gate.EmitSpan(ctx, meter.IterationSpan(book, step, l.Input.Task.Visit, iteration))
}

// signalExhausted signals, before the loop has ended, that a policy has used up its attempts or pages in an
// iteration.
func (l *Loop) signalExhausted(ctx workflow.Context, iteration interpreter.IterationResult) {
	if failure, _ := call.ExhaustedError(iteration.Result, nil); failure != nil {
		l.notifier.NotifyParent(ctx, call.News{
			Event: playbook.EventExhausted, At: workflow.Now(ctx), Step: l.step.Name, Visit: l.Input.Task.Visit,
			Index: &iteration.Index, Status: iteration.Result.FinalStatus(), Attempts: failure.Attempt, Error: failure.ShrunkError(),
		})
	}
}

// endedAnswerError returns an error if the iteration that an answer is for has ended.
func (b *batch) endedAnswerError(to interpreter.AnswerTo) error {
	ended := slices.ContainsFunc(b.ended, func(one interpreter.IterationResult) bool { return to.Index != nil && one.Index == *to.Index })
	if ended && to.Step == b.step.Name {
		return drive.StepOverError(gate.WithIndex(b.step.Name, to.Index))
	}
	return nil
}

// AddTerminated adds the iterations of a loop, or of a shard, that was terminated: it reads their outcomes from its
// histories. Iterations without an outcome count as cancelled.
func (l *Loop) AddTerminated(ctx workflow.Context, id string, failure *interpreter.ErrorObject) {
	l.Result.Broken = failure
	question := interpreter.EndedInput{Loops: []string{id}}
	found, err := gate.Send[interpreter.EndedIterations](ctx, drive.ToRecall(interpreter.EndedActivity, "how the iterations of "+id+" ended"), question,
		"the name of a loop")
	if err != nil {
		l.Result.AddWarning(fmt.Sprintf("the outcomes of the iterations of %s cannot be read: %v", id, err))
		return
	}
	for _, left := range found.Left {
		found.Iterations = append(found.Iterations, left.IterationResult())
	}
	reads := l.Input.Source != nil && !slices.ContainsFunc(l.shards, func(p *openShard) bool { return p.id == id && p.reads == nil })
	if reads { // its elements are not counted yet
		l.Result.AddElements(len(found.Iterations))
	}
	for _, iteration := range found.Iterations {
		if position, found := l.positionOf(iteration.Index); found || reads {
			l.Result.AddIteration(position, l.elementAt(position), iteration)
		}
	}
}
