package control

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/tree"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// ParentsOf returns the parent runs of a task's run, the root first.
func ParentsOf(task protocol.Task) []interpreter.Parent {
	if task.Nesting == nil {
		return nil
	}
	return task.Nesting.Parents
}

// ParentsOfChild returns the parent runs of a run that a step starts; line is its Parent.Queue.
func (c *Controls) ParentsOfChild(step, line string) []interpreter.Parent {
	return append(slices.Clone(c.Parents), interpreter.Parent{Run: c.Run, Step: step, Control: c.OfStep(step), Queue: line})
}

// WithControls returns a task with the current controls of the parent runs.
func (c *Controls) WithControls(task protocol.Task) protocol.Task {
	if len(c.Parents) == 0 || task.Nesting == nil {
		return task
	}
	nesting := *task.Nesting
	nesting.Parents = slices.Clone(c.Parents)
	task.Nesting = &nesting
	return task
}

// IsPaused reports whether this run or a parent run holds the attempts of a step.
func (c *Controls) IsPaused(step string) bool {
	return c.Control.IsPaused(step) || slices.ContainsFunc(c.Parents, func(parent interpreter.Parent) bool {
		return parent.Control.IsPaused(parent.Step)
	})
}

// knowsHold reports whether this workflow knows of the pause that held an attempt.
func (c *Controls) knowsHold(hold interpreter.Hold) bool {
	if hold.Run == "" {
		return c.Version >= hold.Version
	}
	return slices.ContainsFunc(c.Parents, func(parent interpreter.Parent) bool {
		return parent.Run == hold.Run && parent.Control.Version >= hold.Version
	})
}

// applyControl records a newer control of the run, or of a parent run.
func (c *Controls) applyControl(steering protocol.Steering) {
	if steering.Run == "" {
		if steering.Control.Version > c.Version {
			c.Control = steering.Control
		}
		return
	}
	for i := range c.Parents {
		if parent := &c.Parents[i]; parent.Run == steering.Run && steering.Control.Version > parent.Control.Version {
			parent.Control = steering.Control
		}
	}
}

// ListenToParent applies the steerings that the parent run sends, if there is a parent run.
func (c *Controls) ListenToParent(ctx workflow.Context) {
	if len(c.Parents) == 0 {
		return
	}
	gate.HandleSignal(ctx, protocol.ControlSignal, func(ctx workflow.Context, steering protocol.Steering) { c.Apply(ctx, c.fromParent(steering)) })
}

// DrainParent is ApplyArrived for the signals of the parent run, if there is one.
func (c *Controls) DrainParent(ctx workflow.Context) {
	if len(c.Parents) == 0 {
		return
	}
	for steering := range gate.ArrivedSignals[protocol.Steering](workflow.GetSignalChannel(ctx, protocol.ControlSignal)) {
		c.Apply(ctx, c.fromParent(steering))
	}
}

// fromParent names the run to which people gave a command, and removes decisions: a parent run decides nothing
// about the waits of this one.
func (c *Controls) fromParent(steering protocol.Steering) protocol.Steering {
	if steering.Run == "" {
		steering.Run = c.Parents[len(c.Parents)-1].Run
	}
	return protocol.Steering{Control: steering.Control, Resumes: steering.Resumes, Run: steering.Run}
}

// HoldFor returns what an attempt of a step must check to learn whether it is paused.
func (c *Controls) HoldFor(step string) *interpreter.PausedBy {
	return &interpreter.PausedBy{
		Run: c.Run, Step: step, Version: c.Version, Parents: (&call.Nesting{Parents: c.Parents}).BriefParents(),
	}
}

// AdmissionRequest returns the request to admit count runs that this run waits for.
func (c *Controls) AdmissionRequest(of tree.Tree, count int) tree.Admission {
	admission := tree.Admission{Tree: of, Count: count}
	for _, parent := range c.Parents {
		admission.Runs = append(admission.Runs, parent.Run)
	}
	admission.Runs = append(admission.Runs, c.Run)
	return admission
}
