package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
)

// Attempt makes one attempt outside of Temporal, as an activity would: under its rate limit,
// within its time, and without secrets in what it gives. A failure of the tool is an outcome; the
// error is that of ctx.
func (c *Catalogue) Attempt(ctx context.Context, in interpreter.ToolInput) (interpreter.Outcome, error) {
	made, _, err := c.attempt(hosted(ctx, newDelivery(ctx, false)), in)
	if ctx.Err() != nil {
		return interpreter.Outcome{}, context.Cause(ctx)
	}
	return made.outcome, err
}

// attempt makes one attempt with the tool's own wrapping, and takes its failure
// apart again. The error is one that ends the activity.
func (c *Catalogue) attempt(ctx context.Context, input interpreter.ToolInput) (madeAttempt, resultSize, error) {
	run := c.function(input.Activity())
	if run == nil {
		return failed(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q", input.Tool),
		})
	}
	result, size, err := run(ctx, input)
	if err == nil {
		return madeAttempt{outcome: result.Outcome(), noted: result.Noted, unnotable: result.Unnotable, turn: result.Turn}, size, nil
	}
	var application *temporal.ApplicationError
	var object interpreter.ErrorObject
	if errors.As(err, &application) && application.NonRetryable() &&
		application.HasDetails() && application.Details(&object) == nil {
		of, size, err := failed(&object)
		of.turn = interpreter.TurnOf(application)
		return of, size, err
	}
	return madeAttempt{}, size, err
}

// madeAttempt is what came of an attempt.
type madeAttempt struct {
	outcome   interpreter.Outcome
	noted     []byte // see interpreter.ToolResult
	unnotable bool
	turn      float64 // seconds that it waited for its turn
}

// failed is the outcome of an attempt that has no data.
func failed(object *interpreter.ErrorObject) (madeAttempt, resultSize, error) {
	outcome := interpreter.Outcome{Err: object}
	return madeAttempt{outcome: outcome}, resultSize{data: len("null"), all: interpreter.EncodedSize(outcome)}, nil
}
