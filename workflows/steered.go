package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// steered is a child to which commands of people are passed on, one signal at a time: a
// busy server delivers signals later than people give commands, and not in their order,
// and other signals of the run would wait behind them. Commands wait until the last
// signal has arrived, and are then sent together. The grant of a slot is a signal of
// its own: no child has more than one to come.
type steered struct {
	destination
	child   workflow.ChildWorkflowFuture // nil until it is started
	last    workflow.Future              // the last signal; nil before the first
	waiting []Steering                   // what is to be sent after it
	ended   bool
}

// steer has commands of people passed on to a child, from when its input is made until it has
// ended: one that is started later, as the workflow task has no room for its input, gets those of
// that time once it has begun.
func (c *controls) steer(to destination) *steered {
	added := &steered{destination: to}
	c.children = append(c.children, added)
	return added
}

// ends has a child signalled no more.
func (c *controls) ends(child *steered) {
	child.ended = true
	delete(c.reports, child.id)
	c.children = slices.DeleteFunc(c.children, func(other *steered) bool { return other == child })
}

// starts has the child signalled that has been started.
func (s *steered) starts(ctx workflow.Context, child workflow.ChildWorkflowFuture) {
	if s.child = child; len(s.waiting) > 0 {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		workflow.Go(ctx, s.signalWaiting)
	}
}

// signal passes a steering on to one of the children, where it has not ended.
func (c *controls) signal(ctx workflow.Context, id string, steering Steering) {
	if at := slices.IndexFunc(c.children, func(child *steered) bool { return child.id == id }); at >= 0 {
		c.children[at].signal(ctx, steering)
	}
}

// signal signals the child at once, or once the last signal has arrived. It waits until
// the child has begun.
func (s *steered) signal(ctx workflow.Context, steering Steering) {
	if s.child != nil && s.child.GetChildWorkflowExecution().Get(ctx, nil) != nil {
		return // and it never will
	}
	if steering.Run == "" { // a child run knows of its parent only the control of the step that started it
		steering.Control = steering.Control.Of(s.step)
	}
	if s.child != nil && len(s.waiting) == 0 && (s.last == nil || s.last.IsReady()) {
		s.last = signalChild(ctx, s.child, ControlSignal, steering)
		return
	}
	first := len(s.waiting) == 0
	if s.waiting = merged(s.waiting, steering); first && s.child != nil {
		workflow.Go(ctx, s.signalWaiting)
	}
}

// signalWaiting sends the child what waits. A child that has ended need not be
// signalled.
func (s *steered) signalWaiting(ctx workflow.Context) {
	for len(s.waiting) > 0 {
		if s.child.GetChildWorkflowExecution().Get(ctx, nil) != nil || s.last != nil && s.last.Get(ctx, nil) != nil || s.ended {
			s.waiting = nil
			return
		}
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.last = signalChild(ctx, s.child, ControlSignal, next)
	}
}

// maxThen bounds the decisions that are sent together.
const maxThen = 100

// merged adds a steering to those that wait to be sent, in their order. The control is
// state, so the latest one is enough. A decision that another one covers is dropped:
// calls that waited when it was made get the other one first.
func merged(waiting []Steering, next Steering) []Steering {
	for i := range waiting {
		w := &waiting[i]
		if w.Run != next.Run || (w.Settle == nil) != (next.Settle == nil) {
			continue
		}
		if !w.covers(next.Settle) {
			if len(w.Then) == maxThen {
				continue
			}
			w.Then = append(w.Then, *next.Settle)
		}
		if next.Control.Version > w.Control.Version {
			w.Control = next.Control
		}
		w.Resumes, w.Shared = w.Resumes || next.Resumes, cmp.Or(next.Shared, w.Shared)
		return waiting
	}
	return append(waiting, next)
}

// covers reports whether an equal decision reaches everything that a decision means;
// nil is none.
func (s *Steering) covers(decision *ItemSettlement) bool {
	if decision == nil {
		return true
	}
	covers := func(earlier ItemSettlement) bool {
		return earlier.Skip == decision.Skip && earlier.Means(decision.Step, decision.Index)
	}
	return covers(*s.Settle) || slices.ContainsFunc(s.Then, covers)
}
