package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/ratelimit"
)

// ControlSignal passes on what people have requested of a run, from a workflow to its
// children, as a Steering.
const ControlSignal = "control"

// Steering is what a workflow passes on to its children; kept in workflow history.
type Steering struct {
	Control interpreter.Control `json:"control"`
	// Resumes says that something continues that was held.
	Resumes bool            `json:"resumes,omitempty"`
	Settle  *ItemSettlement `json:"settle,omitempty"`
	// Then are what people have decided after Settle, in their order.
	Then []ItemSettlement `json:"then,omitempty"`
	// Run is the workflow ID of the run that Control is of, where that is a parent run;
	// "" is the own one, or to a run the one that it belongs to.
	Run string `json:"run,omitempty"`
	// Slot is a slot of the window for a child of a loop.
	Slot *slotGrant `json:"slot,omitempty"`
	// Shared is what the other shards of the loop use.
	Shared *Shared `json:"shared,omitempty"`
}

// ItemSettlement is what people have decided about items that wait; kept in workflow
// history.
type ItemSettlement struct {
	Step  string `json:"step,omitempty"`  // "" is every step
	Index *int   `json:"index,omitempty"` // nil is every iteration
	interpreter.Settlement
}

// Means reports whether it is about the waits of a step, or of one of its iterations.
func (s *ItemSettlement) Means(step string, index *int) bool {
	return (s.Step == "" || s.Step == step) && (s.Index == nil || index != nil && *index == *s.Index)
}

// controls is what a workflow knows of the requests of people to its run, with the
// waits that this may end and the children to which it is passed on.
type controls struct {
	interpreter.Control
	run      string // workflow ID of the run
	parents  []interpreter.Parent
	waits    []*openWait
	awaited  []*awaitedCall // calls that are answered from outside
	Answered []Answered     // the last answers that were accepted
	updates  int            // commands and answers that this history has accepted
	// elsewhere names the other workflow that accepts an answer, or says that its
	// attempt is over; nil where that is not known, and for a workflow that knows of no
	// other.
	elsewhere func(interpreter.AnswerTo) error
	// childCalls are the IDs of child workflows in which calls of this one continue.
	childCalls map[string]bool
	// forwards are answers that wait to be passed on, and forwarding says that one is.
	forwards   []forwarded
	forwarding bool
	children   []*steered
	slot       *slot // in the window of a loop, nil for none
	shared     func(workflow.Context, Shared)
	// commands wait until the run has begun, and answers until it awaits some.
	commands, answers updateGate
	awaitsAnswers     bool
	// reports are the last ones of the children, by their workflow IDs; reported is the last
	// that the parent workflow was sent, and changed has another one made.
	reports  map[string]waitReport
	reported waitReport
	changed  func(workflow.Context)
	debounce debounce
}

// openWait is a wait of a call in this workflow that people may end.
type openWait struct {
	// step and index are of what waits, and call is that, nil for moves at the end of a run.
	step    string
	index   *int
	call    *call.Call
	paused  bool // only a skip ends it before the run is resumed
	end     workflow.CancelFunc
	settled *ItemSettlement
	renews  bool
	called  bool // back for a turn that is free
}

// waitOf is a wait of a call.
func waitOf(call *call.Call) *openWait {
	of := call.Config()
	return &openWait{step: of.Step.Name, index: of.Index, call: call}
}

// errRenews ends the wait of a call that continues as new.
var errRenews = errors.New("the wait continues as new")

// renew ends all waits, because the workflow continues as new.
func (c *controls) renew() {
	for _, wait := range c.waits {
		if wait.renews = true; wait.end != nil {
			wait.end()
		}
	}
	for _, awaited := range c.awaited {
		awaited.stirred = true
	}
}

type controlsKey struct{}

// withControls gives a workflow what it knows of its run's control, and of that of its
// parent runs.
func withControls(
	ctx workflow.Context, run string, known interpreter.Control, parents []interpreter.Parent,
) (workflow.Context, *controls) {
	c := &controls{Control: known, run: run, parents: slices.Clone(parents), childCalls: map[string]bool{}, reports: map[string]waitReport{}}
	return workflow.WithValue(ctx, controlsKey{}, c), c
}

func controlsOf(ctx workflow.Context) *controls {
	return ctx.Value(controlsKey{}).(*controls) // withControls put it there
}

// listen applies what the parent workflow passes on. slot is what it may grant, nil for
// nothing.
func (c *controls) listen(ctx workflow.Context, slot *slot) {
	c.slot = slot
	onSignal(ctx, ControlSignal, func(ctx workflow.Context, steering Steering) {
		if c.apply(ctx, steering); steering.Resumes {
			c.changed(ctx)
		}
	})
	c.listenForTurns(ctx)
}

// listenForTurns ends waits for a turn under a rate limit where the limiter has one
// that no worker leases.
func (c *controls) listenForTurns(ctx workflow.Context) {
	onSignal(ctx, ratelimit.TurnSignal, func(_ workflow.Context, call ratelimit.TurnCall) {
		means := ItemSettlement{Step: call.Step, Index: call.Index}
		for _, wait := range c.waits {
			if wait.end != nil && wait.settled == nil && !wait.called && means.Means(wait.step, wait.index) && wait.call != nil && wait.call.CalledBack() {
				wait.called = true
				wait.end()
			}
		}
	})
}

// drain applies the signals that have arrived, before the workflow continues as new.
func (c *controls) drain(ctx workflow.Context) {
	for steering := range arrived[Steering](workflow.GetSignalChannel(ctx, ControlSignal)) {
		c.apply(ctx, steering)
	}
	c.drainAnswers(ctx)
}

// apply records what people have requested, ends the waits that are meant and passes it
// on. It returns the number of waits that end here, and whether a child is signalled.
func (c *controls) apply(ctx workflow.Context, steering Steering) (ended int, signalled bool) {
	if shared := steering.Shared; shared != nil && c.shared != nil {
		c.shared(ctx, *shared)
	}
	then := steering.Then
	steering.Then, steering.Shared = nil, nil
	ended, signalled = c.applyOne(ctx, steering)
	for i := range then {
		steering.Settle = &then[i]
		endedThen, signalledThen := c.applyOne(ctx, steering)
		ended, signalled = ended+endedThen, signalled || signalledThen
	}
	return ended, signalled
}

// applyOne is apply, of one decision at most.
func (c *controls) applyOne(ctx workflow.Context, steering Steering) (ended int, signalled bool) {
	c.applyControl(steering)
	if steering.Slot != nil && c.slot != nil {
		c.slot.accept(*steering.Slot)
		return 0, false
	}
	if steering.Settle != nil {
		ended = c.settle(ctx, steering.Settle)
	}
	for _, child := range slices.Clone(c.children) { // some end while others are signalled
		if slices.Contains(c.children, child) && child.acts(steering) && !c.refuses(ctx, steering.Settle, child.step) {
			child.signal(ctx, steering)
			signalled = true
		}
	}
	return ended, signalled
}

// settle ends the waits that a settlement means.
func (c *controls) settle(ctx workflow.Context, settlement *ItemSettlement) int {
	ended := 0
	for _, wait := range c.waits {
		if wait.settled != nil || wait.paused && !settlement.Skip || !settlement.Means(wait.step, wait.index) || c.refuses(ctx, settlement, wait.step) {
			continue
		}
		wait.settled = settlement
		if wait.end != nil {
			wait.end()
		}
		ended++
	}
	return ended
}

// refuses reports whether a decision is not for a step, because nothing of that may be
// tried now. The run decides that; the workflows that it signals were meant.
func (c *controls) refuses(ctx workflow.Context, settlement *ItemSettlement, step string) bool {
	return settlement != nil && !settlement.Skip && c.IsPaused(step) && workflow.GetInfo(ctx).WorkflowExecution.ID == c.run
}

// open records a wait that people may end, until it is over.
func (c *controls) open(wait *openWait) (over func()) {
	c.waits = append(c.waits, wait)
	return func() {
		c.waits = slices.DeleteFunc(c.waits, func(other *openWait) bool { return other == wait })
	}
}

// waitMark is that of a timer by which a call waits.
func waitMark(machine *call.Call, wait interpreter.Wait) interpreter.TimerMark {
	of := machine.Config()
	return interpreter.TimerMark{Call: of.Place(), Index: of.Index, Reason: wait.Reason}
}

// sleep is a durable timer whose summary says what a call waits for. It ends early
// where people decide about the call. The error is that of a cancelled ctx.
func (c *controls) sleep(ctx workflow.Context, call *call.Call, wait interpreter.Wait) (*ItemSettlement, error) {
	timer, end := workflow.WithCancel(ctx)
	open := waitOf(call)
	open.end = end
	defer c.open(open)()
	err := workflow.NewTimerWithOptions(timer, wait.Delay, workflow.TimerOptions{Summary: waitMark(call, wait).Summary(wait.Summary)}).Get(timer, nil)
	return open.outcome(ctx, err)
}

// outcome is what a wait comes to whose timer ended with err.
func (w *openWait) outcome(ctx workflow.Context, err error) (*ItemSettlement, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case w.settled != nil:
		return w.settled, nil
	case w.called:
		return nil, nil
	case w.renews:
		return nil, errRenews
	}
	return nil, err
}

// release waits until people resume a call that is held, or decide about it. The error
// is that of a cancelled ctx.
func (c *controls) release(ctx workflow.Context, call *call.Call, hold interpreter.Hold) (*ItemSettlement, error) {
	open := waitOf(call)
	open.paused = !hold.Exhausted
	defer c.open(open)()
	err := workflow.Await(ctx, func() bool {
		return open.settled != nil || open.renews || open.paused && c.knows(hold) && !c.IsPaused(call.Config().Step.Name)
	})
	return open.outcome(ctx, err)
}
