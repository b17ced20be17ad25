package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

const (
	// parkFrom is the shortest wait for which a child releases its slot in the window
	// of its loop: a release and another grant cost some ten events.
	parkFrom = 5 * time.Second
	// parkUntil is the length of the loop's history up to which its children may
	// release their slots; beyond it they keep them while they wait.
	parkUntil = 2000
	// slotSignal signals a loop that a child releases its slot, or requests one.
	slotSignal = "slot"
)

// slotRequest says that a child has released its slot, or that it requests one again.
// Kept in workflow history.
type slotRequest struct {
	Index int  `json:"index"` // of the child's first iteration
	Now   bool `json:"now,omitempty"`
	// Waiting is how many iterations of the child wait, and At when the first of them
	// continues; zero where people decide.
	Waiting int       `json:"waiting"`
	At      time.Time `json:"at,omitzero"`
	// Ended is how many of them have ended, Failed how many of these as failed.
	Ended  int `json:"ended,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Why is what that one waits for.
	Why string `json:"why,omitempty"`
}

// slotGrant gives a slot to a child. Kept in workflow history.
type slotGrant struct {
	MayRelease bool `json:"may_release,omitempty"` // again
}

// slot is that of a child in the window of its loop. While all calls of the child wait
// for long, it releases the slot to others, and continues once it was granted one
// again. The child stays open meanwhile, and shows what it waits for.
type slot struct {
	input      *CallsInput
	width      int  // how many of its calls may run at a time
	held       bool // the child has a slot
	mayRelease bool
	running    int // calls that run
	waiting    int // calls that want to
	parked     []*parkedCall
	ended      func() (ended, failed int) // of the child's iterations
	requested  bool                       // the loop has the request for a slot
}

// parkedCall is a call that waits, until a time or, where that is zero, until people
// end that, and what for.
type parkedCall struct {
	until time.Time
	why   string
}

// newSlot is the slot with which a child begins. All of its calls want to run.
func newSlot(ctx workflow.Context, input *CallsInput, width int, ended func() (ended, failed int)) *slot {
	return &slot{
		input: input, ended: ended, width: max(width, 1), held: true, waiting: len(input.Calls),
		mayRelease: input.MayRelease && workflow.GetInfo(ctx).ParentWorkflowExecution != nil,
	}
}

// accept applies a grant of the loop.
func (p *slot) accept(given slotGrant) {
	p.held, p.requested, p.mayRelease = true, false, given.MayRelease
}

// acquire waits until one of the calls that want to may run. The error is that of a
// cancelled ctx.
func (p *slot) acquire(ctx workflow.Context) error {
	defer func() { p.waiting-- }()
	if !p.held && !p.requested {
		p.requested = true
		p.signalLoop(ctx, slotRequest{Now: true})
	}
	if err := workflow.Await(ctx, func() bool { return p.held && p.running < p.width }); err != nil {
		return err
	}
	p.running++
	return nil
}

// done records that a call has ended.
func (p *slot) done(ctx workflow.Context) {
	p.running--
	p.release(ctx)
}

// park records that a call waits. back waits until it may continue.
func (p *slot) park(ctx workflow.Context, call parkedCall) (back func() error) {
	p.parked = append(p.parked, &call)
	p.running--
	p.release(ctx)
	return func() error {
		p.parked = slices.DeleteFunc(p.parked, func(other *parkedCall) bool { return other == &call })
		p.waiting++
		return p.acquire(ctx)
	}
}

// stayParked records that a parked call does not continue in this history.
func (p *slot) stayParked() { p.running++ }

// releases reports whether the child releases its slot once all of it waits for long, or has: its
// loop knows what it waits for.
func (p *slot) releases() bool { return p != nil && (p.mayRelease || !p.held) }

// keep has the child keep its slot in this history; nil has none.
func (p *slot) keep() {
	if p != nil {
		p.mayRelease = false
	}
}

// release releases the slot where all calls of the child wait.
func (p *slot) release(ctx workflow.Context) {
	if !p.held || !p.mayRelease || p.running > 0 || p.waiting > 0 || len(p.parked) == 0 || ctx.Err() != nil {
		return
	}
	request := slotRequest{Waiting: len(p.parked)}
	request.Ended, request.Failed = p.ended()
	for _, call := range p.parked {
		if sooner := !call.until.IsZero() && (request.At.IsZero() || call.until.Before(request.At)); sooner || request.Why == "" {
			request.At, request.Why = call.until, call.why
		}
	}
	p.held = false
	p.signalLoop(ctx, request)
}

func (p *slot) signalLoop(ctx workflow.Context, request slotRequest) {
	request.Index = *p.input.Calls[0].Index
	signal(ctx, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, slotSignal, request)
}

// longWait is until when a call is parked that is about to wait; false where that is
// not worth the release of a slot.
func longWait(ctx workflow.Context, wait interpreter.Wait) (until time.Time, long bool) {
	return workflow.Now(ctx).Add(wait.Delay), wait.Delay >= parkFrom
}

// window is how many batches of a loop may run, and how many may be open, those
// that wait included.
type window struct {
	size      func() int // slots
	used      int
	open      int
	maxOpen   func() int
	returning int // parked batches that wait for a slot
}

// maxOpen bounds the iterations of a loop that are open (docs/concepts/loops.md).
const maxOpen = 500

func (w *window) free() bool { return w.used < w.size() }

// acquire takes a slot for a new batch, once admits allows that. Parked batches go
// first.
func (w *window) acquire(ctx workflow.Context, letsIn func() bool) error {
	if err := workflow.Await(ctx, func() bool {
		return w.free() && w.returning == 0 && w.open < w.maxOpen() && letsIn()
	}); err != nil {
		return err
	}
	w.used++
	return nil
}

// release releases a slot.
func (w *window) release() { w.used-- }

// openBatch is an open batch of a loop.
type openBatch struct {
	id      string // of its workflow
	index   int    // of its first iteration
	calls   []call.Snapshot
	sent    *sent // its child, nil before that
	holds   bool  // a slot in the window
	ended   bool
	request slotRequest // with which it has released its slot, where it holds none
	// within are those of its iterations that have ended, as far as it has reported.
	within interpreter.LoopStats
	late   int // releases that the loop knows of, and whose signals have not arrived
}

// listenForSlots records which children release their slots, and grants slots to those
// that request one again. The signals of a child may arrive in another order: a child
// that requests a slot has released its own.
func (l *loop) listenForSlots(ctx workflow.Context) {
	onSignal(ctx, slotSignal, func(ctx workflow.Context, next slotRequest) {
		at := slices.IndexFunc(l.batches, func(b *openBatch) bool { return b.index == next.Index })
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
				l.window.release()
			}
			b.request.Now = true
			l.reportWaits(ctx)
			workflow.Go(ctx, func(ctx workflow.Context) { l.grantSlot(ctx, b) })
		case b.late > 0:
			b.late--
		case b.holds:
			b.holds, b.request = false, next
			l.window.release()
			l.describe(ctx)
		}
	})
}

// grantSlot grants a child a slot again.
func (l *loop) grantSlot(ctx workflow.Context, b *openBatch) {
	l.window.returning++
	err := workflow.Await(ctx, func() bool { return b.ended || l.window.free() })
	l.window.returning--
	if b.ended || err != nil {
		return
	}
	b.holds, b.request = true, slotRequest{}
	l.window.used++
	l.describe(ctx)
	signal(ctx, b.id, ControlSignal, Steering{
		Control: l.controls.Of(l.step.Name),
		Slot:    &slotGrant{MayRelease: workflow.GetInfo(ctx).GetCurrentHistoryLength() < parkUntil},
	})
}

// close forgets a child that has ended, and frees its slot.
func (l *loop) close(b *openBatch) {
	b.ended = true
	if b.holds {
		l.window.release()
	}
	l.batches = slices.DeleteFunc(l.batches, func(other *openBatch) bool { return other == b })
}

// parkedCounts is what the children of a loop do that have no slot: how many iterations
// wait, and when the first of them continues; zero where people decide. returning is
// how many only wait for a slot: of a batch that people have resumed all, else the one
// that is due. within are those that have ended in batches that are open.
type parkedCounts struct {
	waiting, returning int
	next               time.Time
	within             interpreter.LoopStats
}

// active is how many of the loop's open iterations may act.
func (r parkedCounts) active(all int) int {
	return all - r.waiting - r.returning - r.within.Success - r.within.Failed
}

// countParked counts over the children that are open.
func (l *loop) countParked() (rest parkedCounts) {
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
