// Package control holds what a workflow knows about requests of people to its run: commands, answers, pauses. It
// ends the waits that a request concerns, passes requests on to child workflows, and manages a child's slot in the
// window of its loop.
package control

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// Controls holds what a workflow knows about requests of people to its run, the waits that they may end, and the
// children to which they are passed on.
type Controls struct {
	interpreter.Control
	Run      string // workflow ID of the run
	Parents  []interpreter.Parent
	Waits    []*OpenWait
	awaited  []*AwaitedCall            // calls that people or other systems answer
	Answered []protocol.AcceptedAnswer // the latest answers that were accepted
	Asked    []protocol.AskedQuestion  // the latest questions to people
	Updates  int                       // number of commands and answers that this history has accepted
	// Elsewhere returns an error that names the workflow which accepts an answer, or that says that the attempt is
	// over. It returns nil if this is not known; the field is nil if no other workflow can have the attempt.
	Elsewhere func(interpreter.AnswerTo) error
	// ChildCalls are the IDs of child workflows in which calls of this one continue.
	ChildCalls map[string]bool
	// forwards are answers that wait to be forwarded; forwarding is true while they are being sent.
	forwards   []forwardedAnswer
	forwarding bool
	Children   []*gate.SteeredChild
	slot       *Slot // in the window of a loop, nil for none
	Shared     func(workflow.Context, protocol.SharedWindow)
	// Commands and Answers hold back updates: Commands until the run has begun, Answers until it awaits any.
	Commands, Answers updateGate
	awaitsAnswers     bool
	// Reports are the latest reports of the children, by workflow ID. Reported is the last report sent to the
	// parent workflow; changed sends another one if the waits have changed.
	Reports  map[string]protocol.WaitReport
	Reported protocol.WaitReport
	// HasSiblings says that the parent workflow has several open children at a time. LongestReported is then the
	// longest wait that was reported.
	HasSiblings     bool
	LongestReported time.Duration
	changed         func(workflow.Context)
	debounce        debounce
}

// OpenWait is a wait of a call in this workflow that people may end early.
type OpenWait struct {
	// Step and Index identify the waiting step; call is the waiting call, nil for moves at the end of a run.
	Step    string
	Index   *int
	call    *call.Call
	paused  bool // only a skip ends it before the run is resumed
	End     workflow.CancelFunc
	settled *protocol.ItemSettlement
	renews  bool
	called  bool // a slot under the rate limit is free
}

// NewOpenWait returns the wait of a call.
func NewOpenWait(call *call.Call) *OpenWait {
	of := call.Config()
	return &OpenWait{Step: playbook.LoopStep(of.Step.Name), Index: of.Index, call: call}
}

// ErrRenews ends a wait because its call continues as new, where the wait continues.
var ErrRenews = errors.New("the wait continues as new")

// EndWaits ends all waits, because the workflow continues as new.
func (c *Controls) EndWaits() {
	for _, wait := range c.Waits {
		if wait.renews = true; wait.End != nil {
			wait.End()
		}
	}
	for _, awaited := range c.awaited {
		awaited.Stirred = true
	}
}

// WithControls adds the controls of a run to the context of a workflow, with what is known about its control and
// its parent runs.
func WithControls(
	ctx workflow.Context, run string, known interpreter.Control, parents []interpreter.Parent,
) (workflow.Context, *Controls) {
	c := &Controls{Control: known, Run: run, Parents: slices.Clone(parents), ChildCalls: map[string]bool{}, Reports: map[string]protocol.WaitReport{}}
	return gate.WithChildren(ctx, c), c
}

// ControlsOf returns the controls that WithControls added to the context.
func ControlsOf(ctx workflow.Context) *Controls {
	return gate.ChildrenOf(ctx).(*Controls) // WithControls put it there
}

// ApplyFromParent applies the steerings that the parent workflow sends. slot is the slot that they may grant, nil
// for none.
func (c *Controls) ApplyFromParent(ctx workflow.Context, slot *Slot) {
	c.slot = slot
	gate.HandleSignal(ctx, protocol.ControlSignal, func(ctx workflow.Context, steering protocol.Steering) {
		if c.Apply(ctx, steering); steering.Resumes {
			c.changed(ctx)
		}
	})
	c.ListenForTurns(ctx)
}

// ListenForTurns ends waits for a slot under a rate limit when the limiter has a free one.
func (c *Controls) ListenForTurns(ctx workflow.Context) {
	gate.HandleSignal(ctx, ratelimit.TurnSignal, func(_ workflow.Context, call ratelimit.TurnCall) {
		means := protocol.ItemSettlement{Step: playbook.LoopStep(call.Step), Index: call.Index}
		for _, wait := range c.Waits {
			if wait.End != nil && wait.settled == nil && !wait.called && means.IsAbout(wait.Step, wait.Index) && wait.call != nil && wait.call.CalledBack() {
				wait.called = true
				wait.End()
			}
		}
	})
}

// ApplyArrived applies the signals that have already arrived, before the workflow continues as new.
func (c *Controls) ApplyArrived(ctx workflow.Context) {
	for steering := range gate.ArrivedSignals[protocol.Steering](workflow.GetSignalChannel(ctx, protocol.ControlSignal)) {
		c.Apply(ctx, steering)
	}
	c.drainAnswers(ctx)
}

// Apply records a request of people, ends the waits that it concerns, and passes it on. It returns the number of
// waits that end in this workflow, and whether a child is signalled.
func (c *Controls) Apply(ctx workflow.Context, steering protocol.Steering) (ended int, signalled bool) {
	if shared := steering.Shared; shared != nil && c.Shared != nil {
		c.Shared(ctx, *shared)
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

// applyOne applies a steering with at most one decision.
func (c *Controls) applyOne(ctx workflow.Context, steering protocol.Steering) (ended int, signalled bool) {
	c.applyControl(steering)
	if steering.Slot != nil && c.slot != nil {
		c.slot.acceptGrant(*steering.Slot)
		return 0, false
	}
	if steering.Settle != nil {
		ended = c.settleWaits(ctx, steering.Settle)
	}
	for _, child := range slices.Clone(c.Children) { // some end while others are signalled
		if slices.Contains(c.Children, child) && child.Acts(steering) && !c.refusesSettlement(ctx, steering.Settle, child.Step) {
			child.SignalChild(ctx, steering)
			signalled = true
		}
	}
	return ended, signalled
}

// settleWaits ends the waits that a settlement concerns, and returns their number.
func (c *Controls) settleWaits(ctx workflow.Context, settlement *protocol.ItemSettlement) int {
	ended := 0
	for _, wait := range c.Waits {
		if wait.settled != nil || wait.paused && !settlement.Skip || !settlement.IsAbout(wait.Step, wait.Index) || c.refusesSettlement(ctx, settlement, wait.Step) {
			continue
		}
		wait.settled = settlement
		if wait.End != nil {
			wait.End()
		}
		ended++
	}
	return ended
}

// refusesSettlement reports whether a decision to retry cannot apply to a step because it is paused. Only the run
// checks that; the workflows that it signals rely on it.
func (c *Controls) refusesSettlement(ctx workflow.Context, settlement *protocol.ItemSettlement, step string) bool {
	return settlement != nil && !settlement.Skip && c.IsPaused(step) && workflow.GetInfo(ctx).WorkflowExecution.ID == c.Run
}

// OpenWait records a wait that people may end, until over is called.
func (c *Controls) OpenWait(wait *OpenWait) (over func()) {
	c.Waits = append(c.Waits, wait)
	return func() {
		c.Waits = slices.DeleteFunc(c.Waits, func(other *OpenWait) bool { return other == wait })
	}
}

// waitMark returns the mark for the timer of a waiting call.
func waitMark(machine *call.Call, wait interpreter.Wait) interpreter.TimerMark {
	of := machine.Config()
	return interpreter.TimerMark{Call: of.StepOrSink(), Index: of.Index, Reason: wait.Reason}
}

// SleepFor waits with a durable timer whose summary says what the call waits for. The wait ends early if a person
// decides about the call. The error is ErrRenews, or that of a cancelled ctx.
func (c *Controls) SleepFor(ctx workflow.Context, call *call.Call, wait interpreter.Wait) (*protocol.ItemSettlement, error) {
	timer, end := workflow.WithCancel(ctx)
	open := NewOpenWait(call)
	open.End = end
	defer c.OpenWait(open)()
	err := workflow.NewTimerWithOptions(timer, wait.Delay, workflow.TimerOptions{Summary: waitMark(call, wait).MarkSummary(wait.Summary)}).Get(timer, nil)
	return open.WaitOutcome(ctx, err)
}

// WaitOutcome returns how a wait ended; err is the error of its timer.
func (w *OpenWait) WaitOutcome(ctx workflow.Context, err error) (*protocol.ItemSettlement, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case w.settled != nil:
		return w.settled, nil
	case w.called:
		return nil, nil
	case w.renews:
		return nil, ErrRenews
	}
	return nil, err
}

// AwaitRelease waits until people resume a held call, or decide about it. The error is ErrRenews, or that of a
// cancelled ctx.
func (c *Controls) AwaitRelease(ctx workflow.Context, call *call.Call, hold interpreter.Hold) (*protocol.ItemSettlement, error) {
	open := NewOpenWait(call)
	open.paused = !hold.Exhausted
	defer c.OpenWait(open)()
	err := workflow.Await(ctx, func() bool {
		return open.settled != nil || open.renews || open.paused && c.knowsHold(hold) && !c.IsPaused(call.Config().Step.Name)
	})
	return open.WaitOutcome(ctx, err)
}

// RenderHold describes whether people hold the run, and why.
func (c *Controls) RenderHold() string {
	what := ""
	switch {
	case c.Paused:
		what = "the run is paused"
	case len(c.Steps) > 0:
		what = "paused: " + source.MarkdownCode(strings.Join(c.Steps, ", "), protocol.MaxText)
	default:
		return ""
	}
	for _, said := range []struct{ word, text string }{{"by", c.Said.By}, {"because", c.Said.Reason}} {
		if text := source.MarkdownCode(said.text, protocol.MaxText); text != "" {
			what += " " + said.word + " " + text
		}
	}
	return "**" + what + "**\n\n"
}

// describeAttempt returns the details of the attempt with an address.
func (c *Controls) describeAttempt(to interpreter.AnswerTo) (protocol.AttemptDetails, error) {
	for _, one := range slices.Backward(c.Answered) {
		if one.MatchesAddress(to) {
			return protocol.AttemptDetails{Answered: &one, Asked: c.askedQuestion(one.Key)}, nil
		}
	}
	for _, awaited := range c.awaited {
		if awaited.Call.View().IsAddressed(to, awaited.Sent) && !awaited.Call.View().HasAnswer() {
			asking := &interpreter.AwaitedDetails{Attempt: awaited.Call.View().Attempts + 1}
			asking.Approval, _ = awaited.Call.View().PendingApproval()
			return protocol.AttemptDetails{Awaiting: cmp.Or(awaited.Call.View().AwaitedDetails(), asking)}, nil
		}
	}
	return protocol.AttemptDetails{Elsewhere: interpreter.AnsweredAt(c.notAwaitedError(to)), Asked: c.askedQuestion(to.Key)}, nil
}
