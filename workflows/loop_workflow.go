package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// LoopWorkflow runs a loop: a child workflow per iteration or batch, within
// the loop's window, and one aggregate of them all.
func LoopWorkflow(ctx workflow.Context, input LoopInput) (*interpreter.LoopResult, error) {
	ctx = withOutbox(ctx, input.Task.Limits)
	_, step, err := load(input.Task, input)
	if err != nil {
		return nil, err
	}
	l := newLoop(input, step)
	if err := workflow.SetQueryHandler(ctx, ProgressQuery, l.progress); err != nil {
		return nil, fmt.Errorf("set query handler: %w", err)
	}
	if err := l.answerLooks(ctx); err != nil {
		return nil, err
	}
	leaf, _ := l.room(ctx)
	if l.batches() <= leaf && (input.Part != nil || len(input.Elements) <= leafElements) {
		l.runLeaf(ctx)
	} else {
		l.runParts(ctx, 0)
	}
	l.result.Shrink(step.Name, payloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*l.result)
	}
	return l.result, nil
}

// loop is one run of LoopWorkflow: a whole loop, or a part of one.
type loop struct {
	input  LoopInput
	part   Part
	step   *playbook.Step
	loop   *playbook.Loop
	result *interpreter.LoopResult
	open   []string              // workflow IDs of the iterations under way, in order of their start
	below  string                // workflow ID of the part under way
	parked []interpreter.Carried // iterations that wait without a child
	under  int                   // iterations in children
	// largest is what the child that gave most takes in this history, bytes what
	// all of them gave: more than the loop's result will take.
	largest, bytes int
}

func newLoop(input LoopInput, step *playbook.Step) *loop {
	l := &loop{input: input, step: step, loop: step.Loop, part: Part{Size: len(input.Elements)}}
	if input.Part != nil {
		l.part = *input.Part
	}
	l.result = interpreter.NewLoopResult(len(input.Elements))
	if l.loop.StatsOnly {
		l.result.DropResults()
	}
	return l
}

// index is that of the element at a place of the input.
func (l *loop) index(place int) int {
	if chosen := l.input.Chosen; chosen != nil {
		return chosen.Indexes[place]
	}
	return l.part.First + place
}

// place is that of the iteration with an index; false where the input does not
// have it.
func (l *loop) place(index int) (int, bool) {
	if chosen := l.input.Chosen; chosen != nil {
		return slices.BinarySearch(chosen.Indexes, index)
	}
	place := index - l.part.First
	return place, place >= 0 && place < len(l.input.Elements)
}

// size is that of the collection.
func (l *loop) size() int {
	if l.input.Chosen != nil {
		return l.input.Chosen.Size
	}
	return l.part.Size
}

// batchSize is how many elements one child runs.
func (l *loop) batchSize() int { return l.loop.BatchOf(l.size()) }

func (l *loop) batches() int {
	return (len(l.input.Elements) + l.batchSize() - 1) / l.batchSize()
}

// runLeaf starts the batches in order. A history that is long enough ends the
// leaf early; the rest is another part.
func (l *loop) runLeaf(ctx workflow.Context) {
	size, total := l.batchSize(), len(l.input.Elements)
	window := newWindow(l.loop, size)
	children, cancel := workflow.WithCancel(ctx)
	next := 0
	for next < total && window.enter(children) == nil {
		if l.full(ctx, window) || l.result.Budget != nil {
			window.leave()
			break
		}
		first, end := next, min(next+size, total)
		next = end
		window.open++
		workflow.Go(children, func(ctx workflow.Context) {
			defer func() { window.open-- }()
			l.iterate(ctx, window, first, end)
			l.withinBudget(cancel)
		})
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(disconnected, func() bool { return window.open == 0 })
	switch {
	case next == total || ctx.Err() != nil || l.result.Budget != nil:
	case l.input.Part == nil:
		l.runParts(ctx, next)
	default:
		l.result.Next = next
	}
}

// window is how many batches of a loop may run, and how many may be open, those
// that wait included.
type window struct {
	places    int // free
	open      int
	maxOpen   int
	returning int // batches that wait for a place to go on
}

// maxOpen bounds the iterations of a loop that are open (language.md, section
// loop).
const maxOpen = 500

// newWindow is one place for a sequential loop: it starts an iteration when the
// one before has ended.
func newWindow(loop *playbook.Loop, batch int) *window {
	if loop.Mode != playbook.Parallel {
		return &window{places: 1, maxOpen: 1}
	}
	return &window{places: max(1, loop.MaxConcurrency/batch), maxOpen: max(1, maxOpen/batch)}
}

// enter takes a place for a new batch. Batches that have waited go first.
func (w *window) enter(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool {
		return w.places > 0 && w.returning == 0 && w.open < w.maxOpen
	}); err != nil {
		return err
	}
	w.places--
	return nil
}

// leave gives a place back.
func (w *window) leave() { w.places++ }

// comeBack takes a place for a batch that has waited.
func (w *window) comeBack(ctx workflow.Context) error {
	w.returning++
	defer func() { w.returning-- }()
	if err := workflow.Await(ctx, func() bool { return w.places > 0 }); err != nil {
		return err
	}
	w.places--
	return nil
}

// withinBudget ends the loop once its failure budget is spent: those in flight
// are cancelled, the rest never start.
func (l *loop) withinBudget(cancel workflow.CancelFunc) {
	if l.result.Budget == nil {
		l.result.Budget = l.known().Spent(l.step)
	}
	if l.result.Budget != nil {
		cancel()
	}
}

// known is how far the whole loop has come, as this part of it knows.
func (l *loop) known() interpreter.Known {
	return interpreter.Known{
		Size:    l.part.Size,
		Success: l.part.Success + l.result.Stats.Success, Failed: l.part.Failed + l.result.Stats.Failed,
	}
}

// iterate runs the elements from first up to end in one child. Those that wait
// for long give their place back meanwhile: the child ends, and is started
// again with them when they are due and a place is free.
func (l *loop) iterate(ctx workflow.Context, window *window, first, end int) {
	calls := l.carried(first, end)
	for {
		parked := l.child(ctx, calls)
		window.leave()
		if len(parked) == 0 || l.result.Budget != nil {
			return
		}
		calls = parked
		due := slices.MinFunc(calls, func(x, y interpreter.Carried) int { return x.Until.Compare(y.Until) }).Until
		l.park(calls)
		err := workflow.NewTimerWithOptions(ctx, due.Sub(workflow.Now(ctx)), workflow.TimerOptions{
			Summary: l.summary(calls) + " waits",
		}).Get(ctx, nil)
		if err == nil {
			err = window.comeBack(ctx)
		}
		l.unpark(calls)
		if err != nil {
			return
		}
	}
}

// carried are the calls of the elements from first up to end, not begun yet.
func (l *loop) carried(first, end int) []interpreter.Carried {
	calls := make([]interpreter.Carried, 0, end-first)
	for place := first; place < end; place++ {
		index := l.index(place)
		calls = append(calls, interpreter.Carried{Index: &index, Size: l.size(), Element: l.input.Elements[place]})
	}
	return calls
}

// parkUntil is the length of a history up to which iterations may leave their
// place and come back; beyond it they wait in their child.
const parkUntil = 2000

// child runs calls in one child workflow, takes in those that ended and gives
// those that wait.
func (l *loop) child(ctx workflow.Context, calls []interpreter.Carried) []interpreter.Carried {
	index := *calls[0].Index
	input := IterationInput{
		Task: l.input.Task, Calls: calls,
		MayPark: l.loop.Mode == playbook.Parallel && workflow.GetInfo(ctx).GetCurrentHistoryLength() < parkUntil,
	}
	if l.loop.FailureBudget != nil && len(calls) > 1 {
		known := l.known()
		input.Known = &known
	}
	id := childID(l.input.Task, fmt.Sprintf("/%d", index))
	l.open, l.under = append(l.open, id), l.under+len(calls)
	defer func() {
		l.under -= len(calls)
		l.open = slices.DeleteFunc(l.open, func(open string) bool { return open == id })
	}()
	output, err := send[IterationOutput](ctx, toChild(IterationWorkflowName, id, l.summary(calls)), input,
		fmt.Sprintf("the input of iteration %d of step %s", index, l.step.Name))
	if err != nil {
		if !givenUp(ctx, err) {
			l.failAll(ctx, calls, childError(err))
		}
		return nil
	}
	l.weigh(ctx, output)
	for _, iteration := range output.Iterations {
		l.add(ctx, iteration)
	}
	if l.result.Budget == nil {
		l.result.Budget = output.Budget
	}
	return output.Parked
}

func (l *loop) add(ctx workflow.Context, iteration interpreter.IterationResult) {
	if place, found := l.place(iteration.Index); found {
		l.result.Add(place, l.input.Elements[place].Data, iteration)
		l.countIteration(ctx, iteration)
	}
}

// failAll accounts for elements whose child gave nothing, so that none is lost.
func (l *loop) failAll(ctx workflow.Context, calls []interpreter.Carried, failure *interpreter.ErrorObject) {
	for _, call := range calls {
		l.add(ctx, interpreter.IterationResult{
			Index: *call.Index, Result: interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Warnings: interpreter.Unwritten(l.step),
			},
		})
	}
}

// summary is what Temporal's UI shows beside the child.
func (l *loop) summary(calls []interpreter.Carried) string {
	if len(calls) > 1 {
		return fmt.Sprintf("%s %d–%d of %d", l.step.Name, *calls[0].Index, *calls[len(calls)-1].Index, l.size())
	}
	const most = 60
	return fmt.Sprintf("%s %d/%d: %s", l.step.Name, *calls[0].Index+1, l.size(), source.Cut(expression.Text(calls[0].Element.Data), most))
}

func (l *loop) progress() (Progress, error) {
	return Progress{
		Stats: l.result.Stats, Open: slices.Clone(l.open), Under: l.under, Parked: len(l.parked),
		NextRetryAt: l.nextRetryAt(), Part: l.below,
	}, nil
}
