package attempt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/activity"

	"reprise/internal/base/connect"
	"reprise/interpreter"
)

// pauseGate holds attempts whose run or step is paused. Each attempt passes it right before it
// begins.
type pauseGate struct {
	logger   *slog.Logger
	controls *recent[interpreter.Control]
	cancels  *recent[bool]
}

func newGate(logger *slog.Logger) *pauseGate {
	return &pauseGate{logger: logger, controls: newRecent(describeControl), cancels: newRecent(describeCancel)}
}

// pausedError returns the error of an attempt whose run or step is paused: the attempt is made after the pause.
func pausedError(by interpreter.Hold) error {
	return &putOffError{until: interpreter.PutOff{Hold: &by}, text: "the run or the step is paused; the attempt is made when it is resumed"}
}

// holding names the runs whose pause holds an attempt. It is small enough to be stored with the
// attempt.
type holding struct {
	run     string // workflow ID, "" for none
	version int    // of the control that the workflow knew of
	step    string
	above   []interpreter.Parent
}

// passGate returns the control of the attempt's run, and a *putOffError if the run or a parent
// of it is paused. If the server does not respond, the control that was read last applies: an
// attempt could not end without the server either.
func (g *pauseGate) passGate(ctx context.Context, by holding) (interpreter.Control, error) {
	if by.run == "" || !activity.IsActivity(ctx) {
		return interpreter.Control{}, nil
	}
	control := g.controlOf(ctx, by.run, by.version)
	if control.IsPaused(by.step) {
		return control, pausedError(interpreter.Hold{Version: control.Version})
	}
	for _, above := range by.above {
		current := g.controlOf(ctx, above.Run, above.Control.Version)
		if current.IsPaused(above.Step) {
			return control, pausedError(interpreter.Hold{Run: above.Run, Version: current.Version})
		}
	}
	return control, ctx.Err()
}

// controlOf returns the control of a run, no earlier than a version.
func (g *pauseGate) controlOf(ctx context.Context, workflowID string, version int) interpreter.Control {
	control, err := g.controls.valueOf(ctx, workflowID, func(known interpreter.Control) bool { return known.Version >= version })
	if err != nil && ctx.Err() == nil {
		g.logger.Warn("cannot query whether a run is paused; using the last known answer", "run", workflowID, "error", err)
	}
	return control
}

// describeControl reads the control of a run from the memo of its workflow; a run
// that got no command has none.
func describeControl(ctx context.Context, workflowID string) (interpreter.Control, error) {
	var control interpreter.Control
	description, err := activity.GetClient(ctx).DescribeWorkflow(ctx, workflowID, "")
	if connect.IsNotFound(err) {
		return control, nil
	}
	if err != nil {
		return control, fmt.Errorf("describe: %w", err)
	}
	if _, found := description.Memo.GetFields()[interpreter.ControlMemo]; !found {
		return control, nil
	}
	if err := description.GetMemoValue(interpreter.ControlMemo, &control); err != nil {
		return control, fmt.Errorf("read the memo: %w", err)
	}
	return control, nil
}

// FindHold returns the pause that prevents an attempt from starting a run, nil for none. It passes
// the same gate as other attempts.
func (r *Runner) FindHold(ctx context.Context, attempt interpreter.PausedBy) (*interpreter.Hold, error) {
	_, err := r.gate.passGate(ctx, holding{run: attempt.Run, version: attempt.Version, step: attempt.Step, above: attempt.Parents})
	if off, ok := errors.AsType[*putOffError](err); ok {
		return off.until.Hold, nil
	}
	return nil, err
}

// RunCancelled reports whether a run was cancelled, no matter which part of it waits for a worker. If the server does
// not respond, the last response applies.
func (r *Runner) RunCancelled(ctx context.Context, workflowID string) bool {
	cancelled, _ := r.gate.cancels.valueOf(ctx, workflowID, func(bool) bool { return true })
	return cancelled
}

func describeCancel(ctx context.Context, workflowID string) (bool, error) {
	description, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, workflowID, "")
	return description.GetWorkflowExtendedInfo().GetCancelRequested(), err
}
