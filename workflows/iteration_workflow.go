package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// IterationWorkflow runs one batch of a loop's iterations: usually one. It
// ends as failed where its only iteration failed, so that the failure shows
// where people look for it; the iterations travel in the details.
func IterationWorkflow(ctx workflow.Context, input IterationInput) (*IterationOutput, error) {
	ctx = withOutbox(ctx, input.Task.Limits)
	book, step, err := load(input.Task)
	if err != nil {
		return nil, err
	}
	b := &batch{book: book, step: step, input: input, calls: make([]*interpreter.Call, len(input.Elements))}
	for i := range input.Elements {
		b.calls[i] = input.Task.Call(book, step, b.carried(i),
			stream(ctx, fmt.Sprintf("%s#%d/%d", step.Name, input.Task.Visit, input.First+i)))
	}
	width := 1
	if step.Loop.Mode == playbook.Parallel {
		width = step.Loop.MaxConcurrency
	}
	if len(input.Elements) > 1 {
		b.begin(ctx, width)
	}
	output := &IterationOutput{Iterations: make([]interpreter.IterationResult, len(input.Elements))}
	fanOut(ctx, len(input.Elements), width, func(ctx workflow.Context, i int) bool {
		output.Iterations[i] = b.iterate(ctx, i)
		return true
	})
	return finishIterations(ctx, output)
}

// batch is the iterations of one child workflow.
type batch struct {
	book  *playbook.Playbook
	step  *playbook.Step
	input IterationInput
	calls []*interpreter.Call
}

func (b *batch) carried(i int) interpreter.Carried {
	index := b.input.First + i
	return interpreter.Carried{Index: &index, Size: b.input.Size, Element: b.input.Elements[i]}
}

// begin has one activity make all attempts, pages and sinks of the batch that
// need no wait. An iteration that has to wait comes back with its state; where
// the activity itself fails, the iterations go on one attempt at a time.
func (b *batch) begin(ctx workflow.Context, width int) {
	input := interpreter.DriveInput{Task: b.input.Task, Width: width}
	for i := range b.calls {
		input.Calls = append(input.Calls, b.carried(i))
	}
	output, _ := hostCalls(ctx, input, fmt.Sprintf("%s[%d–%d]", b.step.Name, b.input.First, b.input.First+len(b.calls)-1))
	for i, call := range b.calls {
		switch {
		case i < len(output.Calls) && output.Calls[i].Result != nil:
			call.Finish(*output.Calls[i].Result)
		case i < len(output.Calls) && output.Calls[i].State != nil:
			call.State = *output.Calls[i].State
		}
	}
}

// iterate takes one iteration to its end: its call, with the sinks of its
// policies and of the loop.
func (b *batch) iterate(ctx workflow.Context, i int) interpreter.IterationResult {
	iteration := interpreter.IterationResult{Index: b.input.First + i}
	if call := b.calls[i]; ctx.Err() != nil && !call.Finished() {
		iteration.Cancelled = true
		return iteration
	}
	iteration.Result = drive(ctx, b.calls[i], nil, &carrier{task: b.input.Task, carried: b.carried(i)})
	iteration.Cancelled = iteration.Result.Failed() && iteration.Result.Error.Kind == interpreter.KindCancelled
	return iteration
}

func finishIterations(ctx workflow.Context, output *IterationOutput) (*IterationOutput, error) {
	bound(output, payloadCap(ctx))
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(*output)
	}
	if len(output.Iterations) == 1 && output.Iterations[0].Result.Failed() {
		failure := output.Iterations[0].Result.Error
		return nil, temporal.NewApplicationErrorWithOptions(failure.Message, failure.Kind,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
	}
	return output, nil
}

// bound makes sure that the output crosses the boundary: a result that is too
// large becomes a failure that says so, and bulky error data is left out.
func bound(output *IterationOutput, most int) {
	share := (most - maxFailureDetails) / len(output.Iterations)
	for i := range output.Iterations {
		result := &output.Iterations[i].Result
		result.Meta.Tool = interpreter.ToolMeta{} // headers, which no loop's result has
		if result.Failed() {
			result.Data = expression.Value{} // of a call whose sink failed; neither has a loop's result that
		}
		if size := encodedSize(result.Data); size > share {
			*result = interpreter.CallResult{
				Status: interpreter.StatusError, Meta: result.Meta, Warnings: result.Warnings,
				Error: &interpreter.ErrorObject{
					Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
					Message: fmt.Sprintf("the result of iteration %d is %d bytes, more than the %d that it may have; "+
						"write rows away with a sink and return less", output.Iterations[i].Index, size, share),
				},
			}
		}
		result.Error = trimmed(result.Error)
	}
	if encodedSize(output) > most {
		for i := range output.Iterations {
			output.Iterations[i].Result.Error = slim(output.Iterations[i].Result.Error)
		}
	}
}

// load compiles the task's playbook and finds its step.
func load(task Task) (*playbook.Playbook, *playbook.Step, error) {
	book, step, err := task.Load()
	if err != nil {
		return nil, nil, invalid(err)
	}
	return book, step, nil
}

// InvalidPlaybook is the type of the failure of a run whose playbook was
// refused at the door.
const InvalidPlaybook = "invalid_playbook"

func invalid(err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), InvalidPlaybook,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}
