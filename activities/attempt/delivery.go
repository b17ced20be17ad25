package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
)

const (
	// maxCuts is how many workers may stop in the middle of one attempt. Normal operation never
	// reaches it: it ends an attempt that takes longer than any worker lives.
	maxCuts = 20
	// heartbeatTimeout bounds one heartbeat.
	heartbeatTimeout = 2 * time.Second
	// heartbeatRetry is the pause before a heartbeat that did not get through is sent
	// again.
	heartbeatRetry = 200 * time.Millisecond
)

// DeliveryState is what one delivery of an activity passes to the next in its heartbeats; kept in
// workflow history.
type DeliveryState struct {
	Delivery int `json:"delivery"`        // its number, from 1
	Acted    int `json:"acted,omitempty"` // how many before it were lost when they may have acted
	Cut      int `json:"cut,omitempty"`   // how many before it were cut by a stop in order
	// Begun says that this delivery may have acted, and that no worker has returned it unused.
	Begun bool `json:"begun,omitempty"`
	// Receiving lists the calls for which this worker reads a large answer, by their positions
	// in a Drive. Received lists those that lost workers were reading, once per worker: reading
	// the answer may have ended the worker.
	Receiving []int `json:"receiving,omitempty"`
	Received  []int `json:"received,omitempty"`
}

// heartbeatDetails is the part of the details of a heartbeat that holds the state of the delivery.
type heartbeatDetails struct {
	State DeliveryState `json:"delivery"`
	// Step is the progress of a long attempt; nil for others.
	Step *interpreter.HostedStep `json:"step,omitempty"`
}

// nextDelivery returns the state in which delivery n begins; w is the last state that earlier deliveries
// recorded. Without a recorded state the delivery has not begun: from the second on, deliveries record that
// before they act. The first one records it only if it announces; otherwise it may have acted.
func (w DeliveryState) nextDelivery(n int, announces bool) DeliveryState {
	acted, received := w.Acted, slices.Clip(w.Received)
	if w.Begun || w.Delivery == 0 && n > 1 && !announces {
		acted++
	}
	if w.Begun {
		received = append(received, w.Receiving...)
	}
	return DeliveryState{Delivery: n, Acted: acted, Cut: w.Cut, Received: received}
}

// mostReceived bounds how many workers may be lost while reading the response to one request.
// Without it, a response that kills its reader would kill one worker after another.
const mostReceived = 2

// IsExhausted reports whether the attempt must not be delivered again, because too many workers were lost or stopped with it. lost is how
// many attempts of the same request have already lost their workers (interpreter.ToolInput); one more is enough then.
func (w DeliveryState) IsExhausted(lost int) bool {
	return w.Cut > maxCuts || w.lostFailure(lost) != nil
}

// lostFailure returns the failure of an attempt that has lost too many workers, nil if another
// worker may make it.
func (w DeliveryState) lostFailure(lost int) *interpreter.ErrorObject {
	switch {
	case lost > 0 && w.Acted > 0, lost+len(w.Received) >= mostReceived:
		return interpreter.WorkersLost(len(w.Received) > 0)
	case w.Acted >= interpreter.MaxDeliveries:
		return interpreter.WorkerLostError()
	}
	return nil
}

// ExhaustedFailure returns the end of an attempt that is spent.
func (w DeliveryState) ExhaustedFailure(before int) *interpreter.ErrorObject {
	if end := w.lostFailure(before); end != nil {
		return end
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindWorkerLost, Class: interpreter.ClassRetryable, Type: interpreter.TypeStopped,
		Message: fmt.Sprintf("the attempt was interrupted %d times by a stopping worker", w.Cut),
	}
}

// Delivery is one delivery of an activity to a worker. It reports its progress to the server,
// in case the worker is lost.
type Delivery struct {
	Details func(DeliveryState) any // what a heartbeat holds

	mu sync.Mutex // held while a heartbeat is on its way, so that they arrive in order
	// State is the progress of the attempt. Drive reads it only while no attempt runs.
	State    DeliveryState
	step     *interpreter.HostedStep // how far a long attempt is; nil for others
	reported time.Time               // when that was sent last
	// announces is set if this delivery has to report before it acts, because the server last
	// heard something else, or would read silence as not having acted.
	announces bool
}

// NewDelivery continues the activity of ctx. announces says that a delivery reports
// before it acts, from the first on.
func NewDelivery(ctx context.Context, announces bool) *Delivery {
	d := &Delivery{announces: announces, State: DeliveryState{Delivery: 1}}
	d.Details = func(w DeliveryState) any { return heartbeatDetails{State: w, Step: d.step} }
	if !activity.IsActivity(ctx) {
		return d
	}
	var last heartbeatDetails
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &last) // what cannot be read says nothing
	}
	n := int(activity.GetInfo(ctx).Attempt)
	d.State, d.step = last.State.nextDelivery(n, announces), last.Step
	d.announces = announces || n > 1
	return d
}

// SendHeartbeat sends a heartbeat: that the worker lives, and its progress. What is lost is sent with
// the next heartbeat.
func (d *Delivery) SendHeartbeat(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.recordState(ctx)
}

// beatUnlessReported is SendHeartbeat, unless progress was sent a moment ago, which was a heartbeat too.
func (d *Delivery) beatUnlessReported(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.reported) >= heartbeat.Interval(ctx)/4 {
		_ = d.recordState(ctx)
	}
}

// recordBegin makes sure that the server knows that the delivery may have acted, if
// it would otherwise read silence as one that has not. The error says that the
// attempt is not to act: the run was cancelled, another worker has the attempt,
// or the worker stops.
func (d *Delivery) recordBegin(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State.Begun {
		return nil
	}
	d.State.Begun = true
	for d.announces && activity.IsActivity(ctx) {
		err := d.recordState(ctx)
		if err == nil {
			break
		}
		if isWithdrawn(err) {
			return errors.Join(err, context.Cause(ctx))
		}
		select {
		case <-time.After(heartbeatRetry):
		case <-stopChannel(ctx):
			d.State.Begun = false
			return ErrReleased
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// revokeBegin revokes begin: nothing was done.
func (d *Delivery) revokeBegin(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.State.Begun, d.announces = false, true
	_ = d.recordState(ctx)
}

// recordReceives records that a call reads a large answer from now on.
func (d *Delivery) recordReceives(ctx context.Context, place int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.State.Receiving, place) {
		d.State.Receiving = append(slices.Clip(d.State.Receiving), place)
		_ = d.recordState(ctx)
	}
}

// recordProgress records that part of the attempt is permanently done. Workers lost before no longer count, because
// what is left did not lose them.
func (d *Delivery) recordProgress(ctx context.Context, done *interpreter.HostedStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.State.Acted, d.State.Cut, d.State.Received, d.step = 0, 0, nil, cmp.Or(done, d.step)
	if time.Since(d.reported) >= heartbeat.ProgressInterval(ctx) {
		d.reported = time.Now()
		_ = d.recordState(ctx)
	}
}

// endReceives is the end of that. The next heartbeat reports it.
func (d *Delivery) endReceives(place int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.State.Receiving, place); i >= 0 {
		d.State.Receiving = slices.Delete(slices.Clone(d.State.Receiving), i, i+1)
	}
}

// RecordReturn records that this delivery does not count because its worker stops; cut says that an
// attempt was interrupted. The next worker knows only this heartbeat, so it is sent until it
// arrives or the worker runs out of time.
func (d *Delivery) RecordReturn(ctx context.Context, cut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.State.Begun = false
	if cut {
		d.State.Cut++
	}
	for connect.IsUnreachable(d.recordState(ctx)) && sleep.For(ctx, heartbeatRetry) == nil {
		continue
	}
}

// recordState sends a heartbeat and waits until it has arrived. Without a client it
// is left to the SDK. With d.mu.
func (d *Delivery) recordState(ctx context.Context) error {
	if !activity.IsActivity(ctx) {
		return nil
	}
	details := d.Details(d.State)
	recordBeat(ctx, details)
	d.announces = d.announces || !d.State.Begun
	host := WorkerOf(ctx)
	if host.Client == nil {
		activity.RecordHeartbeat(ctx, details)
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatTimeout)
	defer cancel()
	err := host.Client.RecordActivityHeartbeat(bounded, activity.GetInfo(ctx).TaskToken, details)
	if isWithdrawn(err) && ctx.Err() == nil {
		activity.RecordHeartbeat(ctx, details) // so that the SDK knows it too, and ends ctx
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatTimeout):
		}
	}
	return err
}

// isWithdrawn distinguishes the answers to a heartbeat that withdraw the attempt from a
// server that did not answer.
func isWithdrawn(err error) bool {
	return connect.IsNotFound(err) || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// ErrReleased is the cause of a context whose worker stops before the attempt has begun, and
// ErrCut if the attempt did not end in time.
var (
	ErrReleased = errors.New("the worker stopped before the attempt started; another worker makes it")
	ErrCut      = errors.New("the worker stopped during the attempt; another worker repeats it")
)

// beginning marks when an attempt may have acted. Waiting before that (for a turn, a lock, a
// connection) does not count.
type beginning struct {
	delivery *Delivery
	hosted   bool // the delivery is that of a Drive
	// gate holds the attempt while its run is paused, and knows the settings that people have
	// made.
	gate func(context.Context) (interpreter.Control, error)

	mu    sync.Mutex
	begun bool
	ended bool // the attempt is not to begin any more
	sent  bool // the tool acts
	// onSend is called when the tool acts and when it was answered, under a rate
	// limit; nil without.
	onSend func(answered bool)
	// turn is how long the attempt waited for its turn under a rate limit.
	turn time.Duration
}

// leastTurn is the least wait for a turn that is reported as one.
const leastTurn = 5 * time.Millisecond

// turnSeconds returns the wait for a turn as history has it.
func (b *beginning) turnSeconds() float64 {
	if b.turn < leastTurn {
		return 0
	}
	return b.turn.Round(time.Millisecond).Seconds()
}

// beginningIn returns the beginning of the attempt of ctx, nil outside of an attempt.
func beginningIn(ctx context.Context) *beginning {
	b, _ := tool.AttemptOf(ctx).(*beginning)
	return b
}

// Begin makes sure that the attempt may act, and that the server knows.
func (b *beginning) Begin(ctx context.Context) error {
	if !b.hasBegun() {
		if _, err := b.gate(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun {
		if b.onSend != nil && !b.sent {
			b.onSend(false)
		}
		b.sent = true
		return nil
	}
	if b.ended || WorkerStopping(ctx) {
		return ErrReleased
	}
	if err := b.delivery.recordBegin(ctx); err != nil {
		return err
	}
	b.begun = true
	return nil
}

// MarkAnswered records that the other side has received what the attempt sent.
func (b *beginning) MarkAnswered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.onSend != nil && b.sent {
		b.onSend(true)
	}
}

// MarkReceiving records that the attempt reads much: should the worker be lost then, this may
// be why.
func (b *beginning) MarkReceiving(ctx context.Context) {
	at := 0 // of an attempt that has the activity to itself
	if of, ok := ctx.Value(callKey{}).(*callContext); ok {
		at = of.at
	}
	b.delivery.recordReceives(ctx, at)
}

// MarkProgress records that more of the attempt is done permanently.
func (b *beginning) MarkProgress(ctx context.Context, done *interpreter.HostedStep) {
	if !b.hosted {
		b.delivery.recordProgress(ctx, done)
	}
}

// Propagate adds the request headers that identify the attempt to the other side.
func (b *beginning) Propagate(ctx context.Context, headers http.Header) {
	watchOf(ctx).addHeaders(ctx, headers)
}

func (b *beginning) hasBegun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun
}

// resetBegin undoes recordBegin after an attempt that did nothing.
func (b *beginning) resetBegin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = false
}

// revokeBegin revokes begin and reports it. A Drive has begun with the first of its
// attempts.
func (b *beginning) revokeBegin(ctx context.Context) {
	b.resetBegin()
	if !b.hosted {
		b.delivery.revokeBegin(ctx)
	}
}

// withdrawAttempt keeps the attempt from beginning; false if it has begun.
func (b *beginning) withdrawAttempt() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return !b.begun
}

// deliveryKey marks attempts inside Drive, which share the delivery of the Drive.
type deliveryKey struct{}

// WithDelivery returns a context for attempts inside a Drive, whose delivery is d.
func WithDelivery(ctx context.Context, d *Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// callContext is shared by the attempts of one call inside a Drive, which are made one after the other.
type callContext struct {
	at     int                // the position of the call
	onTurn func(waiting bool) // shows whether an attempt waits for its turn
	done   func()             // releases the memory of the last attempt, nil where it has none
}

type callKey struct{}

// WithCall returns the context for attempts of call number at of a Drive. onTurn is called when an attempt begins and
// when it stops waiting for its turn. release frees the memory of the last attempt.
func WithCall(ctx context.Context, at int, onTurn func(waiting bool)) (within context.Context, release func()) {
	within = context.WithValue(ctx, callKey{}, &callContext{at: at, onTurn: onTurn})
	return within, func() { releaseMemory(within) }
}

// recordTurnWait shows in the heartbeats of a Drive whether an attempt waits for its turn. Other
// attempts count as not begun until they have it.
func recordTurnWait(ctx context.Context, waits bool) {
	if of, hosted := ctx.Value(callKey{}).(*callContext); hosted {
		of.onTurn(waits)
	}
}

// holdMemory holds the memory of an attempt until the call has done with its outcome.
func (c *callContext) holdMemory(ctx context.Context, done func()) {
	c.done = done
	if b := beginningIn(ctx); b != nil {
		b.delivery.endReceives(c.at)
	}
}

// releaseMemory releases the memory of the call's attempt before: an attempt that waits for memory
// must have none.
func releaseMemory(ctx context.Context) {
	if of, ok := ctx.Value(callKey{}).(*callContext); ok && of.done != nil {
		of.done()
		of.done = nil
	}
}

// IsHosted reports whether ctx belongs to a Drive, whose heartbeats are for all its calls.
func IsHosted(ctx context.Context) bool { return ctx.Value(deliveryKey{}) != nil }

// newBeginning returns the beginning of an attempt of ctx.
func newBeginning(ctx context.Context, in interpreter.ToolInput) *beginning {
	if d, ok := ctx.Value(deliveryKey{}).(*Delivery); ok {
		return &beginning{delivery: d, hosted: true}
	}
	return &beginning{delivery: NewDelivery(ctx, in.RateLimit != nil || in.Lost > 0)}
}

// stopChannel is closed when the worker accepts no more work.
func stopChannel(ctx context.Context) <-chan struct{} {
	if !activity.IsActivity(ctx) {
		return nil
	}
	return activity.GetWorkerStopChannel(ctx)
}

// WorkerStopping reports whether the worker accepts no more work. What begins after that might
// not finish.
func WorkerStopping(ctx context.Context) bool {
	select {
	case <-stopChannel(ctx):
		return true
	default:
		return false
	}
}
