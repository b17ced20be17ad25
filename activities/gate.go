package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/internal/base/connect"
	"reprise/interpreter"
)

const (
	// gateTimeout bounds a request for the control of a run. Without an answer an attempt
	// uses the control that was read last.
	gateTimeout = 2 * time.Second
	// gateForgets is how long the control of a run that makes no attempts is kept.
	gateForgets = time.Minute
)

// gate is what every attempt passes right before it begins: it holds those whose
// run or step is paused. All attempts of a worker share what it knows, so that
// the server gets one request for a run in interpreter.ControlPatience, however
// many attempts begin.
type gate struct {
	logger *slog.Logger
	// describe reads the control of a run from the server.
	describe func(ctx context.Context, workflowID string) (interpreter.Control, error)
	mu       sync.Mutex
	runs     map[string]*watched
}

// watched is what the gate knows of a run.
type watched struct {
	mu      sync.Mutex // held during the request
	control interpreter.Control
	asked   time.Time // of the last request
	used    time.Time // under the gate's lock
}

func newGate(logger *slog.Logger) *gate {
	return &gate{logger: logger, describe: describeControl, runs: map[string]*watched{}}
}

// paused is the end of an attempt that must not begin now.
func paused(by interpreter.Hold) error {
	return &putOffError{until: interpreter.PutOff{Hold: &by}, text: "the run or the step is paused; the attempt is made once it is resumed"}
}

// holding is what may hold an attempt: little enough to be kept beside it.
type holding struct {
	run     string // workflow ID, "" for none
	version int    // of the control that the workflow knew of
	step    string
	above   []interpreter.Parent
}

// pass returns the control of the attempt's run, and a *putOffError where that, or that of
// a parent run, holds the attempt. Without an answer of the server the control counts
// that was read last: an attempt whose server is away cannot end either.
func (g *gate) pass(ctx context.Context, by holding) (interpreter.Control, error) {
	if by.run == "" || !activity.IsActivity(ctx) {
		return interpreter.Control{}, nil
	}
	control := g.control(ctx, by.run, by.version)
	if control.IsPaused(by.step) {
		return control, paused(interpreter.Hold{Version: control.Version})
	}
	for _, above := range by.above {
		current := g.control(ctx, above.Run, above.Control.Version)
		if current.IsPaused(above.Step) {
			return control, paused(interpreter.Hold{Run: above.Run, Version: current.Version})
		}
	}
	return control, ctx.Err()
}

// control is that of a run, no older than interpreter.ControlPatience and no
// earlier than a version.
func (g *gate) control(ctx context.Context, workflowID string, version int) interpreter.Control {
	run := g.watch(workflowID)
	run.mu.Lock()
	defer run.mu.Unlock()
	asking := time.Now()
	if asking.Sub(run.asked) < interpreter.ControlPatience && run.control.Version >= version {
		return run.control
	}
	bounded, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	control, err := g.describe(bounded, workflowID)
	switch {
	case err == nil:
		run.control = control
	case ctx.Err() == nil:
		g.logger.Warn("cannot query whether a run is paused; the last known answer counts", "run", workflowID, "error", err)
	}
	run.asked = asking
	return run.control
}

// watch finds what is known of a run, and forgets the runs that make no attempts.
func (g *gate) watch(workflowID string) *watched {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, run := time.Now(), g.runs[workflowID]
	if run == nil {
		for id, other := range g.runs {
			if now.Sub(other.used) > gateForgets {
				delete(g.runs, id)
			}
		}
		run = &watched{}
		g.runs[workflowID] = run
	}
	run.used = now
	return run
}

// describeControl reads the control of a run from the memo of its workflow; a run
// that got no command has none.
func describeControl(ctx context.Context, workflowID string) (interpreter.Control, error) {
	var control interpreter.Control
	description, err := activity.GetClient(ctx).DescribeWorkflow(ctx, workflowID, "")
	if connect.NotFound(err) {
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
