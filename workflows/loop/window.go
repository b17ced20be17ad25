package loop

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// window limits the batches of a loop that may run, and those that may be open, which includes waiting ones.
type window struct {
	size      func() int // slots
	used      int
	open      int
	maxOpen   func() int
	returning int // parked batches that wait for a slot
}

func (w *window) hasFree() bool { return w.used < w.size() }

// acquireSlot takes a slot for a new batch, once letsIn allows it. Parked batches have precedence.
func (w *window) acquireSlot(ctx workflow.Context, letsIn func() bool) error {
	if err := workflow.Await(ctx, func() bool {
		return w.hasFree() && w.returning == 0 && w.open < w.maxOpen() && letsIn()
	}); err != nil {
		return err
	}
	w.used++
	return nil
}

// releaseSlot releases a slot.
func (w *window) releaseSlot() { w.used-- }

// openBatch is an open batch of a loop.
type openBatch struct {
	id      string // of its workflow
	index   int    // of its first iteration
	calls   []call.Snapshot
	sent    *gate.Handle // its child; nil before it is started
	holds   bool         // whether it has a slot in the window
	mayPark bool         // whether it may release that slot
	ended   bool
	request protocol.SlotRequest // with which it released its slot, if it has none
	// within counts its ended iterations, as far as it has reported them.
	within interpreter.LoopStats
	late   int // releases that the loop knows of and whose signals have not arrived
	// granting says that the signal with its slot has not been delivered.
	granting bool
}

// hasIteration reports whether an iteration is one of the batch. A child that has continued as new names itself by the first of its
// iterations that had not ended by then.
func (b *openBatch) hasIteration(index int) bool {
	return slices.ContainsFunc(b.calls, func(call call.Snapshot) bool { return call.Index != nil && *call.Index == index })
}

// listenForSlots records which children release their slots, and grants slots to children that request one again.
// The signals of a child may arrive out of order: a child that requests a slot has released its own before.
func (l *Loop) listenForSlots(ctx workflow.Context) {
	gate.HandleSignal(ctx, protocol.SlotSignal, func(ctx workflow.Context, next protocol.SlotRequest) {
		at := slices.IndexFunc(l.batches, func(b *openBatch) bool { return b.hasIteration(next.Index) })
		if at < 0 {
			return // it has ended meanwhile
		}
		b := l.batches[at]
		if !next.Now {
			b.within.Success, b.within.Failed = next.Ended-next.Failed, next.Failed
		}
		switch {
		case next.Now:
			if b.holds {
				b.late++
				b.holds = false
				l.window.releaseSlot()
			}
			b.request.Now = true
			l.reportWaits(ctx)
			workflow.Go(ctx, func(ctx workflow.Context) { l.grantSlot(ctx, b) })
		case b.late > 0:
			b.late--
		case b.holds:
			b.holds, b.request = false, next
			l.window.releaseSlot()
			l.describeLoop(ctx)
		}
	})
}

// grantSlot waits for a free slot and grants it to a child.
func (l *Loop) grantSlot(ctx workflow.Context, b *openBatch) {
	l.window.returning++
	err := workflow.Await(ctx, func() bool { return b.ended || l.window.hasFree() })
	l.window.returning--
	if b.ended || err != nil {
		return
	}
	b.holds, b.mayPark, b.granting, b.request = true, false, true, protocol.SlotRequest{}
	l.window.used++
	b.mayPark = room{l}.mayPark(ctx, 0)
	l.describeLoop(ctx)
	_ = gate.SignalWorkflow(ctx, b.id, protocol.ControlSignal, protocol.Steering{
		Control: l.controls.OfStep(l.step.Name), Slot: &protocol.SlotGrant{MayRelease: b.mayPark},
	}).Get(ctx, nil)
	b.granting = false
}

// closeBatch removes a child that has ended, and frees its slot.
func (l *Loop) closeBatch(b *openBatch) {
	b.ended = true
	if b.holds {
		l.window.releaseSlot()
	}
	l.batches = slices.DeleteFunc(l.batches, func(other *openBatch) bool { return other == b })
}

// parkedCounts describes the children of a loop that have no slot: waiting iterations, when the first of them
// continues (zero if only people end the waits), and returning ones, which wait only for a slot: all of a batch
// that people have resumed, otherwise the one that is due. within counts the ended iterations of open batches.
type parkedCounts struct {
	waiting, returning int
	next               time.Time
	within             interpreter.LoopStats
}

// activeCalls returns how many of the loop's open iterations can run.
func (r parkedCounts) activeCalls(all int) int {
	return all - r.waiting - r.returning - r.within.Success - r.within.Failed
}

// countParked summarizes the open children that have no slot.
func (l *Loop) countParked() (rest parkedCounts) {
	for _, b := range l.batches {
		rest.within.Success += b.within.Success
		rest.within.Failed += b.within.Failed
		if b.holds {
			continue
		}
		wait := b.request.Waiting
		if b.request.Now {
			due := 1
			if b.request.At.IsZero() {
				due = max(due, wait)
			}
			rest.returning, wait = rest.returning+due, max(0, wait-due)
		}
		rest.waiting += wait
		if at := b.request.At; wait > 0 && !at.IsZero() && (rest.next.IsZero() || at.Before(rest.next)) {
			rest.next = at
		}
	}
	return rest
}
