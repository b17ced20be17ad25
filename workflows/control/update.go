package control

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// updateGate holds back updates that arrive before the workflow can check them. They may arrive with its first
// task, or while it validates its input. The SDK rejects an update without a handler as soon as nothing else can
// run, so a workflow sets all handlers before it waits for anything.
type updateGate struct {
	opened  bool
	refusal error // error for all updates; nil for none
	waiting int
}

// passGate returns once the gate is open, even after a cancel.
func (g *updateGate) passGate(ctx workflow.Context) {
	g.waiting++
	defer func() { g.waiting-- }()
	gate.AwaitDespiteCancel(ctx, func() bool { return g.opened })
}

// Open lets updates pass, and returns once all waiting updates have been handled.
func (g *updateGate) Open(ctx workflow.Context) {
	g.opened = true
	gate.AwaitDespiteCancel(ctx, func() bool { return g.waiting == 0 })
}

// RefuseUpdates refuses all updates of a run that ends before it started, for the given reason.
func (c *Controls) RefuseUpdates(ctx workflow.Context, reason error) {
	message := "the run ended before it started: " + protocol.AttemptError(reason).Message
	c.Commands.refusal = errors.New(message)
	c.Answers.refusal = answerError(&interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: message})
	c.Commands.Open(ctx)
	c.Answers.Open(ctx)
}

// HandleUpdate registers an update handler. Once the gate is open, it calls do for each update, unless check returns an
// error, and counts the update.
func HandleUpdate[In, Out any](
	ctx workflow.Context, c *Controls, g *updateGate, name string, check func(In) error, do func(workflow.Context, In) (Out, error),
) error {
	validate := func(in In) error {
		if !g.opened {
			return nil // the handler checks it when it can
		}
		if g.refusal != nil {
			return g.refusal
		}
		return check(in)
	}
	handle := func(ctx workflow.Context, in In) (out Out, err error) {
		c.Updates++
		if !g.opened {
			g.passGate(ctx)
			if err := validate(in); err != nil {
				return out, err
			}
		}
		return do(ctx, in)
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, name, handle, workflow.UpdateHandlerOptions{Validator: validate}); err != nil {
		return fmt.Errorf("set update handler %s: %w", name, err)
	}
	return nil
}
