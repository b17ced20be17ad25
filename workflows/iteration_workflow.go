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
	output := &IterationOutput{Iterations: make([]interpreter.IterationResult, len(input.Elements))}
	width := 1
	if step.Loop.Mode == playbook.Parallel {
		width = step.Loop.MaxConcurrency
	}
	fanOut(ctx, len(input.Elements), width, func(ctx workflow.Context, i int) bool {
		output.Iterations[i] = iterate(ctx, book, step, input, i)
		return true
	})
	return finishIterations(ctx, output)
}

// iterate runs one iteration: its call, with the sinks of its policies and of
// the loop.
func iterate(
	ctx workflow.Context, book *playbook.Playbook, step *playbook.Step, input IterationInput, i int,
) interpreter.IterationResult {
	index := input.First + i
	iteration := interpreter.IterationResult{Index: index}
	if ctx.Err() != nil {
		iteration.Cancelled = true
		return iteration
	}
	position := interpreter.Position{Index: index, Size: input.Size}
	scope := interpreter.NewScope(book, input.Task.Run, input.Task.Data).
		WithElement(step.Loop.Element, input.Elements[i].Data, position)
	call := interpreter.NewCall(interpreter.CallConfig{
		Book: book, Run: input.Task.Run, Step: step, Action: step.Action, Policies: step.Retry,
		Visit: input.Task.Visit, Index: &index, Scope: scope, Args: input.Task.Args.Data, Limits: input.Task.Limits,
		After:  sinks(step.Loop.Sink),
		Random: stream(ctx, fmt.Sprintf("%s#%d/%d", step.Name, input.Task.Visit, index)),
	})
	iteration.Result = drive(ctx, call, nil)
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

func sinks(sink *playbook.Sink) []*playbook.Sink {
	if sink == nil {
		return nil
	}
	return []*playbook.Sink{sink}
}

// load compiles the task's playbook and finds its step.
func load(task Task) (*playbook.Playbook, *playbook.Step, error) {
	book, err := interpreter.Load(task.Name, task.Source)
	if err != nil {
		return nil, nil, invalid(err)
	}
	step := book.Step(task.Step)
	if step == nil {
		return nil, nil, invalid(fmt.Errorf("playbook %q has no step %q", task.Name, task.Step))
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
