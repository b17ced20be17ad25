package gate

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"reprise/workflows/protocol"
)

// SteeredChildren is implemented by a workflow that has children. It learns of each child that starts and ends, and
// passes commands of people on to the open ones.
type SteeredChildren interface {
	// SteerChild starts passing commands on to a child, before its start is sent. If that start has to wait for
	// room in a workflow task, commands are delivered once the child has begun.
	SteerChild(to Recipient) *SteeredChild
	// StopSteering stops the signals to a child.
	StopSteering(child *SteeredChild)
	// AcceptedUpdates returns the number of commands and answers that the workflow's history has accepted.
	AcceptedUpdates() int
}

type childrenKey struct{}

// WithChildren adds the workflow's SteeredChildren to its context. A workflow that starts children calls it first.
func WithChildren(ctx workflow.Context, c SteeredChildren) workflow.Context {
	return workflow.WithValue(ctx, childrenKey{}, c)
}

// ChildrenOf returns what WithChildren added to the context; nil if the workflow starts no children.
func ChildrenOf(ctx workflow.Context) SteeredChildren {
	c, _ := ctx.Value(childrenKey{}).(SteeredChildren)
	return c
}

// SteeredChild is a child to which commands are passed on, one signal at a time. A busy server delivers signals
// late and out of order, and delays the run's other signals behind them. So commands wait until the previous signal
// has been delivered, and are then sent together. Grants of slots are sent separately, because a child never waits
// for two of them.
type SteeredChild struct {
	Recipient
	Child   workflow.ChildWorkflowFuture // nil until it is started
	last    workflow.Future              // the previous signal; nil before the first
	waiting []protocol.Steering          // to be sent once last has been delivered
	Ended   bool
}

// recordStart records that the child was started; waiting commands are sent now.
func (s *SteeredChild) recordStart(ctx workflow.Context, child workflow.ChildWorkflowFuture) {
	if s.Child = child; len(s.waiting) > 0 {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		workflow.Go(ctx, s.signalWaiting)
	}
}

// SignalChild sends a command to the child at once, or after the previous signal has been delivered. It waits until
// the child has begun.
func (s *SteeredChild) SignalChild(ctx workflow.Context, steering protocol.Steering) {
	if s.Child != nil && s.Child.GetChildWorkflowExecution().Get(ctx, nil) != nil {
		return // it never will begin
	}
	if steering.Run == "" { // a child run only learns the control of the step that started it
		steering.Control = steering.Control.OfStep(s.Step)
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

// signalWaiting sends the waiting commands in one signal, once the previous one has been delivered. It drops them
// if the child has ended.
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

// maxThen bounds the decisions that are sent together: they are one signal, which Temporal rejects above 2 MB, and
// a person may make any number while a child is busy.
const maxThen = 100

// mergeSteering adds a steering to the ordered list of those to be sent. Only the latest control is kept, since
// each includes all earlier requests. A decision about waiting calls is dropped if one in the list covers the same
// calls.
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
