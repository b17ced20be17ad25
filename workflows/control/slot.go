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
	// parkFrom is the shortest wait for which a child releases its slot in the window of its loop: releasing and
	// acquiring it cost about ten events.
	parkFrom = 5 * time.Second
	// ParkUntil is the length of the loop's history beyond which children keep their slots while they wait.
	ParkUntil = 2000
)

// Slot is the permission of a child workflow to run, one of a limited number that its loop grants. When every call
// of the child is in a long wait, the child releases the slot so that another child can run, and acquires one again
// before it continues. The child stays open and shows what it waits for.
type Slot struct {
	input      *protocol.CallsInput
	width      int  // number of its calls that may run at a time
	held       bool // the child has a slot
	mayRelease bool
	running    int // number of running calls
	Waiting    int // number of calls that are ready to run
	parked     []*ParkedCall
	ended      func() (ended, failed int) // numbers of ended and failed iterations of the child
	requested  bool                       // the child has requested a slot from the loop
}

// ParkedCall is a waiting call: what it waits for, and until when; zero if only people end the wait.
type ParkedCall struct {
	Until time.Time
	Why   string
}

// NewSlot returns the slot with which a child begins. All of its calls are ready to run.
func NewSlot(ctx workflow.Context, input *protocol.CallsInput, width int, ended func() (ended, failed int)) *Slot {
	return &Slot{
		input: input, ended: ended, width: max(width, 1), held: true, Waiting: len(input.Calls),
		mayRelease: input.MayRelease && workflow.GetInfo(ctx).ParentWorkflowExecution != nil,
	}
}

// acceptGrant records that the loop has granted a slot, and whether its history has room for the slot being released again, in this
// history of the child and in later ones.
func (p *Slot) acceptGrant(given protocol.SlotGrant) {
	p.held, p.requested, p.mayRelease = true, false, given.MayRelease
	p.input.MayRelease = given.MayRelease
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

// CallDone records that a running call has ended.
func (p *Slot) CallDone(ctx workflow.Context) {
	p.running--
	p.releaseSlot(ctx)
}

// ParkCall records that a running call waits. back waits until it may continue.
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

// MayRelease reports whether the child has released its slot, or may do so when all its calls are in long waits. Then
// its loop knows what the child waits for.
func (p *Slot) MayRelease() bool { return p != nil && (p.mayRelease || !p.held) }

// HoldSlot makes the child hold its slot in this history; a nil slot has no effect.
func (p *Slot) HoldSlot() {
	if p != nil {
		p.mayRelease = false
	}
}

// releaseSlot releases the slot if all calls of the child are in long waits.
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
	gate.SignalWorkflow(ctx, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, protocol.SlotSignal, request)
}

// IsLongWait returns when a wait that begins now ends, and whether it is long enough to release the slot.
func IsLongWait(ctx workflow.Context, wait interpreter.Wait) (until time.Time, long bool) {
	return workflow.Now(ctx).Add(wait.Delay), wait.Delay >= parkFrom
}
