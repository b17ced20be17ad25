package control

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

const (
	// parkFrom is the shortest wait for which a child releases its slot in the window
	// of its loop: a release and another grant cost some ten events.
	parkFrom = 5 * time.Second
	// ParkUntil is the length of the loop's history up to which its children may release their
	// slots; in a longer one they keep them while they wait.
	ParkUntil = 2000
)

// Slot is the place of a child workflow among the children of its loop that may run at the same time. While every
// call of the child has a long wait, the child releases the slot so that another child can run, and requests one
// again before it continues. The child stays open and shows what it waits for.
type Slot struct {
	input      *protocol.CallsInput
	width      int  // how many of its calls may run at a time
	held       bool // the child has a slot
	mayRelease bool
	running    int // calls that run
	Waiting    int // calls that want to
	parked     []*ParkedCall
	ended      func() (ended, failed int) // of the child's iterations
	requested  bool                       // the loop has the request for a slot
}

// ParkedCall is a call that waits, until a time or, where that is zero, until people
// end that, and what for.
type ParkedCall struct {
	Until time.Time
	Why   string
}

// NewSlot is the slot with which a child begins. All of its calls want to run.
func NewSlot(ctx workflow.Context, input *protocol.CallsInput, width int, ended func() (ended, failed int)) *Slot {
	return &Slot{
		input: input, ended: ended, width: max(width, 1), held: true, Waiting: len(input.Calls),
		mayRelease: input.MayRelease && workflow.GetInfo(ctx).ParentWorkflowExecution != nil,
	}
}

// acceptGrant applies a grant of the loop.
func (p *Slot) acceptGrant(given protocol.SlotGrant) {
	p.held, p.requested, p.mayRelease = true, false, given.MayRelease
}

// Acquire waits until one of the waiting calls may run. The error says that ctx was cancelled.
func (p *Slot) Acquire(ctx workflow.Context) error {
	defer func() { p.Waiting-- }()
	if !p.held && !p.requested {
		p.requested = true
		p.signalLoop(ctx, protocol.SlotRequest{Now: true})
	}
	if err := workflow.Await(ctx, func() bool { return p.held && p.running < p.width }); err != nil {
		return err
	}
	p.running++
	return nil
}

// CallDone records that a call has ended.
func (p *Slot) CallDone(ctx workflow.Context) {
	p.running--
	p.releaseSlot(ctx)
}

// ParkCall records that a call waits. back waits until it may continue.
func (p *Slot) ParkCall(ctx workflow.Context, call ParkedCall) (back func() error) {
	p.parked = append(p.parked, &call)
	p.running--
	p.releaseSlot(ctx)
	return func() error {
		p.parked = slices.DeleteFunc(p.parked, func(other *ParkedCall) bool { return other == &call })
		p.Waiting++
		return p.Acquire(ctx)
	}
}

// StayParked records that a parked call does not continue in this history.
func (p *Slot) StayParked() { p.running++ }

// Releases reports whether the child may release its slot when all its calls wait for long, or
// has released it already. Its loop knows what the child waits for.
func (p *Slot) Releases() bool { return p != nil && (p.mayRelease || !p.held) }

// KeepSlot makes the child keep its slot in this history; a nil slot has no effect.
func (p *Slot) KeepSlot() {
	if p != nil {
		p.mayRelease = false
	}
}

// releaseSlot releases the slot where all calls of the child wait.
func (p *Slot) releaseSlot(ctx workflow.Context) {
	if !p.held || !p.mayRelease || p.running > 0 || p.Waiting > 0 || len(p.parked) == 0 || ctx.Err() != nil {
		return
	}
	request := protocol.SlotRequest{Waiting: len(p.parked)}
	request.Ended, request.Failed = p.ended()
	for _, call := range p.parked {
		if sooner := !call.Until.IsZero() && (request.At.IsZero() || call.Until.Before(request.At)); sooner || request.Why == "" {
			request.At, request.Why = call.Until, call.Why
		}
	}
	p.held = false
	p.signalLoop(ctx, request)
}

func (p *Slot) signalLoop(ctx workflow.Context, request protocol.SlotRequest) {
	request.Index = *p.input.Calls[0].Index
	gate.Signal(ctx, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, protocol.SlotSignal, request)
}

// IsLongWait is until when a call is parked that is about to wait; false where that is
// not worth the release of a slot.
func IsLongWait(ctx workflow.Context, wait interpreter.Wait) (until time.Time, long bool) {
	return workflow.Now(ctx).Add(wait.Delay), wait.Delay >= parkFrom
}
