package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// steered is a child that is told what people say. It is told one thing at a time: a
// server that has much to do delivers signals later than people give commands, and
// not in their order, and what else the run has to say would stand behind them. What
// comes before the last signal has arrived waits, and what waits is told together.
// A place in a window goes its own way: no child has more than one to come.
type steered struct {
	destination
	child   workflow.ChildWorkflowFuture
	last    workflow.Future // the last signal; nil before the first
	waiting []Steering      // what is to be told after it
	ended   bool
}

// steer has a child told what people say, until it has ended.
func (c *controls) steer(to destination, child workflow.ChildWorkflowFuture) (ended func()) {
	added := &steered{destination: to, child: child}
	c.children = append(c.children, added)
	return func() {
		added.ended = true
		c.children = slices.DeleteFunc(c.children, func(other *steered) bool { return other == added })
	}
}

// signal tells one of the children, where it has not ended.
func (c *controls) signal(ctx workflow.Context, id string, steering Steering) {
	if at := slices.IndexFunc(c.children, func(child *steered) bool { return child.id == id }); at >= 0 {
		c.children[at].signal(ctx, steering)
	}
}

// signal tells the child at once, or where it has not heard yet what it was told last,
// when it has. It waits until the child has begun.
func (s *steered) signal(ctx workflow.Context, steering Steering) {
	if s.child.GetChildWorkflowExecution().Get(ctx, nil) != nil {
		return // and it never will
	}
	if steering.Run == "" { // of a run above it knows only what is said of the step below it
		steering.Control = steering.Control.Of(s.step)
	}
	if s.last == nil || s.last.IsReady() && len(s.waiting) == 0 {
		s.last = signalChild(ctx, s.child, ControlSignal, steering)
		return
	}
	first := len(s.waiting) == 0
	if s.waiting = merged(s.waiting, steering); first {
		workflow.Go(ctx, s.signalWaiting)
	}
}

// signalWaiting tells the child what waits. Who has ended need not hear.
func (s *steered) signalWaiting(ctx workflow.Context) {
	for len(s.waiting) > 0 {
		if s.last.Get(ctx, nil) != nil || s.ended {
			s.waiting = nil
			return
		}
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.last = signalChild(ctx, s.child, ControlSignal, next)
	}
}

// maxThen bounds the decisions that are told together.
const maxThen = 100

// merged adds a steering to those that wait to be told, in their order. The control
// is state, so the latest one is enough. A decision that another one covers has no
// more to say: what waited when it was made hears the other one first.
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

// covers reports whether all that a decision means hears of one as good before; nil
// is none.
func (s *Steering) covers(decision *Settlement) bool {
	if decision == nil {
		return true
	}
	covers := func(earlier Settlement) bool {
		return earlier.Skip == decision.Skip && earlier.Means(decision.Step, decision.Index)
	}
	return covers(*s.Settle) || slices.ContainsFunc(s.Then, covers)
}
