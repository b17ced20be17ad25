package gate

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"reprise/workflows/protocol"
)

// SteeredChildren is implemented by a workflow that has children: it knows each child that starts and ends, and passes the
// commands of people on to the open ones.
type SteeredChildren interface {
	// SteerChild passes commands on to a child, from when its input is made until it has ended. A
	// child whose start waits for room in a workflow task gets the commands of that time once
	// it has begun.
	SteerChild(to Recipient) *SteeredChild
	// StopSteering ends the signals to a child.
	StopSteering(child *SteeredChild)
	// AcceptedUpdates is how many commands and answers the workflow's history has accepted.
	AcceptedUpdates() int
}

type childrenKey struct{}

// WithChildren makes the workflow's children known in its context. A workflow that starts
// children calls it first.
func WithChildren(ctx workflow.Context, c SteeredChildren) workflow.Context {
	return workflow.WithValue(ctx, childrenKey{}, c)
}

// ChildrenOf returns what WithChildren has put into the context; nil for a workflow that starts no children.
func ChildrenOf(ctx workflow.Context) SteeredChildren {
	c, _ := ctx.Value(childrenKey{}).(SteeredChildren)
	return c
}

// SteeredChild is a child to which commands are passed on, one signal at a time. A busy server
// delivers signals late and out of order, and delays the run's other signals behind them.
// Commands wait until the previous signal has arrived, and are then sent together. Granting a
// slot is a separate signal, because a child never waits for two of them.
type SteeredChild struct {
	Recipient
	Child   workflow.ChildWorkflowFuture // nil until it is started
	last    workflow.Future              // the last signal; nil before the first
	waiting []protocol.Steering          // what is to be sent after it
	Ended   bool
}

// recordStart records the child that was started; from now on it is signalled.
func (s *SteeredChild) recordStart(ctx workflow.Context, child workflow.ChildWorkflowFuture) {
	if s.Child = child; len(s.waiting) > 0 {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		workflow.Go(ctx, s.signalWaiting)
	}
}

// SignalChild signals the child at once, or once the last signal has arrived. It waits until
// the child has begun.
func (s *SteeredChild) SignalChild(ctx workflow.Context, steering protocol.Steering) {
	if s.Child != nil && s.Child.GetChildWorkflowExecution().Get(ctx, nil) != nil {
		return // and it never will
	}
	if steering.Run == "" { // a child run knows of its parent only the control of the step that started it
		steering.Control = steering.Control.Of(s.Step)
	}
	if s.Child != nil && len(s.waiting) == 0 && (s.last == nil || s.last.IsReady()) {
		s.last = signalChild(ctx, s.Child, protocol.ControlSignal, steering)
		return
	}
	first := len(s.waiting) == 0
	if s.waiting = mergeSteering(s.waiting, steering); first && s.Child != nil {
		workflow.Go(ctx, s.signalWaiting)
	}
}

// signalWaiting sends the child the commands that have waited for the last signal to arrive, in one signal. A child that has
// ended gets none.
func (s *SteeredChild) signalWaiting(ctx workflow.Context) {
	for len(s.waiting) > 0 {
		if s.Child.GetChildWorkflowExecution().Get(ctx, nil) != nil || s.last != nil && s.last.Get(ctx, nil) != nil || s.Ended {
			s.waiting = nil
			return
		}
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.last = signalChild(ctx, s.Child, protocol.ControlSignal, next)
	}
}

// maxThen bounds the decisions that are sent together: they are one signal, which Temporal
// refuses over 2 MB, and a person may send any number while a child is busy.
const maxThen = 100

// mergeSteering adds a steering to the list of steerings to be sent, in their order. Of controls only the latest is kept, since each
// has all that people requested. A decision about waiting calls is dropped if one that waits already covers the same calls.
func mergeSteering(waiting []protocol.Steering, next protocol.Steering) []protocol.Steering {
	for i := range waiting {
		w := &waiting[i]
		if w.Run != next.Run || (w.Settle == nil) != (next.Settle == nil) {
			continue
		}
		if !w.CoversDecision(next.Settle) {
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
