package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// LoopWorkflow runs a loop: a child workflow per iteration or batch, within
// the loop's window, and one aggregate of them all.
func LoopWorkflow(ctx workflow.Context, input LoopInput) (*interpreter.LoopResult, error) {
	ctx = withOutbox(ctx)
	_, step, err := load(input.Task)
	if err != nil {
		return nil, err
	}
	l := &loop{
		input: input, step: step, loop: step.Loop,
		result: interpreter.NewLoopResult(len(input.Elements)), open: map[string]bool{},
	}
	if err := workflow.SetQueryHandler(ctx, ProgressQuery, l.progress); err != nil {
		return nil, fmt.Errorf("set query handler: %w", err)
	}
	l.run(ctx)
	fitLoop(l.result, step.Name)
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*l.result)
	}
	return l.result, nil
}

// loop is one run of LoopWorkflow.
type loop struct {
	input  LoopInput
	step   *playbook.Step
	loop   *playbook.Loop
	result *interpreter.LoopResult
	open   map[string]bool // workflow IDs of the children under way
}

// run starts the batches in order. A sequential loop is a window of one.
func (l *loop) run(ctx workflow.Context) {
	size := max(l.loop.Batch, 1)
	batches := (len(l.input.Elements) + size - 1) / size
	width := 1
	if l.loop.Mode == playbook.Parallel {
		width = max(1, l.loop.MaxConcurrency/size)
	}
	ctx, cancel := workflow.WithCancel(ctx)
	fanOut(ctx, batches, width, func(ctx workflow.Context, batch int) bool {
		if ctx.Err() != nil {
			return false
		}
		l.iterate(ctx, batch*size, min((batch+1)*size, len(l.input.Elements)))
		return l.withinBudget(cancel)
	})
}

// withinBudget ends the loop once its failure budget is spent: those in flight
// are cancelled, the rest never start.
func (l *loop) withinBudget(cancel workflow.CancelFunc) bool {
	if l.result.Budget != nil {
		return false
	}
	spent := l.result.OverBudget(l.step.Name, l.loop.FailureBudget)
	if spent == nil {
		return true
	}
	l.result.Budget = spent
	cancel()
	return false
}

// iterate runs the elements from first up to end in one child.
func (l *loop) iterate(ctx workflow.Context, first, end int) {
	id := fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.ID, first)
	input := IterationInput{
		Task: l.input.Task, First: first, Size: len(l.input.Elements), Elements: l.input.Elements[first:end],
	}
	size, failure := measure(input, fmt.Sprintf("the input of iteration %d of step %s", first, l.step.Name))
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
	l.open[id] = true
	defer delete(l.open, id)
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
	if index := iteration.Index; index >= 0 && index < len(l.input.Elements) {
		l.result.Add(l.input.Elements[index].Data, iteration)
	}
}

// failAll accounts for elements whose child gave nothing, so that none is lost.
func (l *loop) failAll(first, end int, failure *interpreter.ErrorObject) {
	for index := first; index < end; index++ {
		l.add(interpreter.IterationResult{
			Index: index, Result: interpreter.CallResult{Status: interpreter.StatusError, Error: failure},
		})
	}
}

// summary is what Temporal's UI shows beside the child.
func (l *loop) summary(first, end int) string {
	if end-first > 1 {
		return fmt.Sprintf("%s %d–%d of %d", l.step.Name, first, end-1, len(l.input.Elements))
	}
	const most = 60
	element := []rune(expression.Text(l.input.Elements[first].Data))
	if len(element) > most {
		element = append(element[:most], '…')
	}
	return fmt.Sprintf("%s %d/%d: %s", l.step.Name, first+1, len(l.input.Elements), string(element))
}

func (l *loop) progress() (Progress, error) {
	progress := Progress{Stats: l.result.Stats}
	for index := range l.input.Elements {
		id := fmt.Sprintf("%s/%d", loopID(l.input.Task), index)
		if l.open[id] {
			progress.Open = append(progress.Open, id)
		}
	}
	return progress, nil
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
