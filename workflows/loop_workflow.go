package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// LoopWorkflow runs a loop: a child workflow per iteration or batch, within
// the loop's window, and one aggregate of them all.
func LoopWorkflow(ctx workflow.Context, input LoopInput) (*interpreter.LoopResult, error) {
	ctx = withOutbox(ctx, input.Task.Limits)
	_, step, err := load(input.Task)
	if err != nil {
		return nil, err
	}
	l := newLoop(input, step)
	if err := workflow.SetQueryHandler(ctx, ProgressQuery, l.progress); err != nil {
		return nil, fmt.Errorf("set query handler: %w", err)
	}
	if l.batches() <= leafBatches {
		l.runLeaf(ctx)
	} else {
		l.runParts(ctx, 0)
	}
	fitLoop(ctx, l.result, step.Name)
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
	open   []string // workflow IDs of the iterations under way, in order of their start
	below  string   // workflow ID of the part under way
}

func newLoop(input LoopInput, step *playbook.Step) *loop {
	l := &loop{input: input, step: step, loop: step.Loop, part: Part{Size: len(input.Elements)}}
	if input.Part != nil {
		l.part = *input.Part
	}
	l.result = interpreter.NewLoopResult(len(input.Elements))
	l.result.First = l.part.First
	return l
}

// batchSize is how many elements one child runs.
func (l *loop) batchSize() int { return max(l.loop.Batch, 1) }

func (l *loop) batches() int {
	return (len(l.input.Elements) + l.batchSize() - 1) / l.batchSize()
}

// runLeaf starts the batches in order. A sequential loop is a window of one. A
// history that is long enough ends the leaf early; the rest is another part.
func (l *loop) runLeaf(ctx workflow.Context) {
	size, total := l.batchSize(), len(l.input.Elements)
	width := 1
	if l.loop.Mode == playbook.Parallel {
		width = max(1, l.loop.MaxConcurrency/size)
	}
	next := 0
	children, cancel := workflow.WithCancel(ctx)
	fanOut(children, l.batches(), width, func(ctx workflow.Context, batch int) bool {
		if ctx.Err() != nil || historyIsLong(ctx) {
			return false
		}
		first := batch * size
		next = min(first+size, total)
		l.iterate(ctx, first, next)
		return l.withinBudget(cancel)
	})
	switch {
	case next == total || ctx.Err() != nil || l.result.Budget != nil:
	case l.input.Part == nil:
		l.runParts(ctx, next)
	default:
		l.result.Next = next
	}
}

// withinBudget ends the loop once its failure budget is spent: those in flight
// are cancelled, the rest never start.
func (l *loop) withinBudget(cancel workflow.CancelFunc) bool {
	if l.result.Budget != nil {
		return false
	}
	all := interpreter.LoopResult{Stats: l.result.Stats}
	all.Stats.Total = l.part.Size
	all.Stats.Success += l.part.Success
	all.Stats.Failed += l.part.Failed
	all.Stats.Cancelled = all.Stats.Total - all.Stats.Success - all.Stats.Failed
	spent := all.OverBudget(l.step.Name, l.loop.FailureBudget)
	if spent == nil {
		return true
	}
	l.result.Budget = spent
	cancel()
	return false
}

// iterate runs the elements from first up to end in one child.
func (l *loop) iterate(ctx workflow.Context, first, end int) {
	index := l.part.First + first
	id := fmt.Sprintf("%s/%d", loopID(l.input.Task), index)
	input := IterationInput{
		Task: l.input.Task, First: index, Size: l.part.Size, Elements: l.input.Elements[first:end],
	}
	size, failure := measure(ctx, input, fmt.Sprintf("the input of iteration %d of step %s", index, l.step.Name))
	if failure != nil {
		l.failAll(first, end, failure)
		return
	}
	if admit(ctx, size) != nil {
		return
	}
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:          id,
		WaitForCancellation: true,
		StaticSummary:       l.summary(first, end),
	})
	l.open = append(l.open, id)
	defer func() {
		l.open = slices.DeleteFunc(l.open, func(open string) bool { return open == id })
	}()
	var output IterationOutput
	err := workflow.ExecuteChildWorkflow(ctx, IterationWorkflowName, input).Get(ctx, &output)
	if err != nil && !detailsOf(err, &output) {
		if ctx.Err() == nil {
			l.failAll(first, end, childError(err))
		}
		return
	}
	for _, iteration := range output.Iterations {
		l.add(iteration)
	}
}

func (l *loop) add(iteration interpreter.IterationResult) {
	if place := iteration.Index - l.part.First; place >= 0 && place < len(l.input.Elements) {
		l.result.Add(l.input.Elements[place].Data, iteration)
	}
}

// failAll accounts for elements whose child gave nothing, so that none is lost.
func (l *loop) failAll(first, end int, failure *interpreter.ErrorObject) {
	for place := first; place < end; place++ {
		l.add(interpreter.IterationResult{
			Index:  l.part.First + place,
			Result: interpreter.CallResult{Status: interpreter.StatusError, Error: failure},
		})
	}
}

// summary is what Temporal's UI shows beside the child.
func (l *loop) summary(first, end int) string {
	if end-first > 1 {
		return fmt.Sprintf("%s %d–%d of %d", l.step.Name, l.part.First+first, l.part.First+end-1, l.part.Size)
	}
	const most = 60
	element := []rune(expression.Text(l.input.Elements[first].Data))
	if len(element) > most {
		element = append(element[:most], '…')
	}
	return fmt.Sprintf("%s %d/%d: %s", l.step.Name, l.part.First+first+1, l.part.Size, string(element))
}

func (l *loop) progress() (Progress, error) {
	return Progress{Stats: l.result.Stats, Open: slices.Clone(l.open), Part: l.below}, nil
}

// loopID is the workflow ID of a loop: children are found by it.
func loopID(task Task) string {
	return fmt.Sprintf("%s/%s#%d", task.Run.WorkflowID, task.Step, task.Visit)
}

// detailsOf reads what a child that failed or was cancelled still tells.
func detailsOf(err error, into any) bool {
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.HasDetails() {
		return application.Details(into) == nil
	}
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) && cancelled.HasDetails() {
		return cancelled.Details(into) == nil
	}
	return false
}

// childError describes a child workflow that ended without saying how its
// iterations went: it was terminated, or timed out.
func childError(err error) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "child_workflow", Message: err.Error(),
	}
}
