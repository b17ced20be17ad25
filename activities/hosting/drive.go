// Package hosting runs calls in activities: their attempts, pages, sinks and states, until they have to wait.
// Heartbeats and the ledgers of sinks record progress, from which the next worker continues.
package hosting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"reprise/activities/attempt"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// The progress of calls in heartbeats is bounded: calls that do not fit are repeated, with the
// same keys, after a worker is lost. The pages of one call fit up to the bytes that one
// activity fetches; Temporal accepts 2 MB.
const (
	// maxProgressBytes bounds the progress of all calls in a heartbeat, in bytes. Temporal
	// refuses a heartbeat over 2 MB, and the worker would count as lost. What does not fit is
	// made again after a worker was lost, with the same keys.
	maxProgressBytes = 256 << 10
	// maxPagesProgress is the same bound for an activity that fetches pages of one call: they
	// fit up to the bytes that one activity fetches.
	maxPagesProgress = 1280 << 10
)

// Calls hosts calls in activities.
type Calls struct {
	Attempts *attempt.Runner
	States   *StateStores
}

// Drive hosts calls: it makes all of their attempts, pages and sinks that need no wait. A call
// that has to wait, or that has reached the bounds of one activity, is returned with its state.
// Heartbeats record progress, so the worker that gets the next delivery continues from there.
func (c *Calls) Drive(ctx context.Context, in call.DriveInput, script call.Script) (call.DriveOutput, error) {
	in.Task = in.Task.WithScript(script)
	book, step, err := in.Task.LoadStep()
	if err != nil {
		return call.DriveOutput{}, attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error(), Final: true,
		})
	}
	d := &driveRun{
		host: c, in: in, book: book, step: step, clock: attempt.NewClock(ctx), progress: newProgress(ctx, in), tally: &tally{step: step, known: in.Known},
	}
	d.notes = call.NotedOnce
	if activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt > 1 {
		d.notes = call.NotedAgain
	}
	d.delivery = attempt.NewDelivery(ctx, step.Action.RateLimit != nil || len(c.Attempts.Resources.RateLimits) > 0 || lostBefore(in) > 0)
	d.delivery.Details = d.progress.heartbeatDetails
	stop := d.startHeartbeats(ctx)
	defer stop()
	if err := d.restoreCalls(attempt.WithDelivery(ctx, d.delivery)); err != nil {
		return call.DriveOutput{}, err
	}
	if in.Recall {
		for i, call := range d.calls {
			d.progress.setDriven(i, call.drivenState())
		}
		return d.driveOutput(), nil
	}
	if d.delivery.State.IsExhausted(lostBefore(in)) || len(d.delivery.State.Received) > 0 {
		return call.DriveOutput{}, d.lostError()
	}
	err = d.driveAll(attempt.WithDelivery(ctx, d.delivery))
	switch {
	case err == nil && !d.cut.Load():
		return d.finishRun()
	case err == nil, attempt.WorkerStopped(ctx):
		d.delivery.RecordReturn(ctx, d.interrupted.Load() || err != nil)
		return call.DriveOutput{}, attempt.RedeliveryError(errStopped)
	case attempt.IsRunCancelled(ctx):
		return call.DriveOutput{}, temporal.NewCanceledError(d.driveOutput().Shrink(step, c.Attempts.Resources.Payloads.MaxBytes))
	case ctx.Err() != nil:
		return call.DriveOutput{}, attempt.RedeliveryError(attempt.ErrDisconnected)
	}
	return call.DriveOutput{}, err
}

// errStopped is the end of a Drive whose worker stops.
var errStopped = errors.New("the worker stopped; another worker continues from here")

// finishRun returns the activity's result. If its only call ended with a failed attempt, the
// activity fails, so that people see the failure in Temporal's UI; the result is in the details
// of that error.
func (d *driveRun) finishRun() (call.DriveOutput, error) {
	output := d.driveOutput().Shrink(d.step, d.host.Attempts.Resources.Payloads.MaxBytes)
	if len(output.Calls) > 1 {
		return output, nil
	}
	failure := output.Calls[0].LastFailure(d.in.Calls[0].State)
	if failure == nil || interpreter.EncodedSize(output) > interpreter.MaxFailureDetails {
		return output, nil
	}
	return call.DriveOutput{}, temporal.NewApplicationErrorWithOptions(failure.Message, string(failure.Kind),
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
}

// lostError ends an activity whose workers are lost without getting further. What
// they did is in the details; the workflow makes the rest one attempt at a time.
func (d *driveRun) lostError() error {
	object := d.delivery.State.ExhaustedFailure(lostBefore(d.in))
	if len(d.delivery.State.Received) > 0 {
		d.countReceived()
		object.Message = "a worker was lost while it read a response; the calls are now made one at a time"
	}
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{d.driveOutput().Shrink(d.step, d.host.Attempts.Resources.Payloads.MaxBytes)},
	})
}

// lostBefore is how often the requests of the calls were lost, at most.
func lostBefore(in call.DriveInput) int {
	most := 0
	for _, call := range in.Calls {
		if call.State != nil {
			most = max(most, call.State.Lost)
		}
	}
	return most
}

// countReceived counts the worker against the calls whose answers it read when it
// was lost. Each is made alone now.
func (d *driveRun) countReceived() {
	for _, at := range d.delivery.State.Received {
		if at < len(d.calls) && !d.calls[at].done {
			state := d.calls[at].call.View().Snapshot()
			state.Lost++
			d.progress.setDriven(at, call.Driven{State: &state, Made: d.calls[at].made, Unwritten: d.calls[at].unwritten})
		}
	}
}

// driveOutput returns the state of all calls. Pages that the workflow sent along are left out.
func (d *driveRun) driveOutput() call.DriveOutput {
	output := d.progress.progressOutput()
	output.Budget = d.tally.budgetError()
	for i, driven := range output.Calls {
		output.Calls[i] = driven.WithoutKnown(d.in.Calls[i].State)
	}
	return output
}

// driveRun is one run of Drive.
type driveRun struct {
	host     *Calls
	in       call.DriveInput
	book     *playbook.Playbook
	step     *playbook.Step
	progress *progress
	tally    *tally
	delivery *attempt.Delivery
	clock    attempt.Clock
	notes    call.LedgerUse // what its notes are
	calls    []*hostedCall
	cut      atomic.Bool // a call was left because the worker stops
	// interrupted says that an attempt of the call was cut short.
	interrupted atomic.Bool
}

// driveAll drives the calls, Width at a time or strictly in order.
func (d *driveRun) driveAll(ctx context.Context) error {
	if d.in.Width == 0 || len(d.in.Calls) == 1 {
		for i := range d.in.Calls {
			if d.tally.budgetError() != nil {
				return nil
			}
			if err := d.calls[i].driveCall(ctx); err != nil || d.progress.drivenOf(i).Result == nil {
				return d.noteReturned(err)
			}
		}
		return nil
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	group, inner := errgroup.WithContext(within)
	group.SetLimit(d.in.Width)
	for i := range d.in.Calls {
		group.Go(func() error {
			if d.tally.budgetError() != nil {
				return nil
			}
			err := d.calls[i].driveCall(inner)
			if d.tally.budgetError() != nil {
				stop()
				return nil // running ones stay where they are
			}
			return d.noteReturned(err)
		})
	}
	return group.Wait()
}

// tally counts the iterations of a loop as they end, for its failure budget. Without a budget
// it counts nothing.
type tally struct {
	mu    sync.Mutex
	step  *playbook.Step
	known *interpreter.LoopCounts // nil without a budget
	spent *interpreter.ErrorObject
}

// countEnded adds an iteration that has ended. What ends after the budget is spent
// does not change that.
func (t *tally) countEnded(result *interpreter.CallResult) {
	if t.known == nil || result == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.CountResult(*result)
	if t.spent == nil {
		t.spent = t.known.BudgetError(t.step)
	}
}

// budgetError returns the error of the loop once its budget is spent.
func (t *tally) budgetError() *interpreter.ErrorObject {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spent
}

// noteReturned records that an attempt was returned to the server. Other calls are not
// interrupted: they stop by themselves.
func (d *driveRun) noteReturned(err error) error {
	if !errors.Is(err, attempt.ErrReleased) && !errors.Is(err, attempt.ErrCut) {
		return err
	}
	d.cut.Store(true)
	if errors.Is(err, attempt.ErrCut) {
		d.interrupted.Store(true)
	}
	return nil
}

// progress is what a Drive has done so far.
type progress struct {
	mu    sync.Mutex
	calls []call.Driven
	fresh []int // calls that ended or were left since the heartbeat before
	held  progressDetails
	most  int  // bytes of held
	moved bool // held shows more than the heartbeats of the worker before
	// before are the attempts of each call that the worker before had made.
	before []int
	doing  map[int]call.Doing
}

// progressDetails is the part of the progress that heartbeats carry, in the form of a
// DriveOutput. A call's state is encoded when it is held, because the call
// changes it afterwards.
type progressDetails struct {
	Calls []json.RawMessage     `json:"calls"`
	State attempt.DeliveryState `json:"delivery"`
	// Doing lists the calls with an attempt that runs or waits for its turn.
	Doing []call.Doing `json:"doing,omitempty"`
	// Step is the progress of a step's only call, shown to people; nil for calls of a loop, and before the first
	// request.
	Step  *interpreter.HostedStep `json:"step,omitempty"`
	bytes int
}

// newProgress begins with what the heartbeats of a lost worker report.
func newProgress(ctx context.Context, in call.DriveInput) *progress {
	n := len(in.Calls)
	p := &progress{
		calls: make([]call.Driven, n), held: progressDetails{Calls: make([]json.RawMessage, n)}, most: maxProgressBytes,
		before: make([]int, n), doing: map[int]call.Doing{},
	}
	if in.Pages {
		p.most = maxPagesProgress
	}
	for i, call := range in.Calls {
		p.held.Calls[i] = json.RawMessage("{}")
		if call.State != nil {
			p.before[i] = call.State.Attempts
		}
	}
	var before call.DriveOutput
	if activity.IsActivity(ctx) && activity.HasHeartbeatDetails(ctx) &&
		activity.GetHeartbeatDetails(ctx, &before) == nil && len(before.Calls) == n {
		for i, driven := range before.Calls {
			p.setDriven(i, driven)
			if driven.State != nil {
				p.before[i] = driven.State.Attempts
			}
		}
		p.progressSnapshot()
		p.moved = false
	}
	return p
}

func (p *progress) drivenOf(i int) call.Driven {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[i]
}

// setDriven records the result of a call, or the state in which it was left. It changes nothing
// else, so a heartbeat may encode it concurrently.
func (p *progress) setDriven(i int, driven call.Driven) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[i] = driven
	p.fresh = append(p.fresh, i)
}

// holdForHeartbeat adds the state of a call to the heartbeats, if it fits.
func (p *progress) holdForHeartbeat(i int, driven call.Driven) {
	encoded, err := json.Marshal(driven)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putIfItFits(i, driven, encoded)
	p.fresh = slices.DeleteFunc(p.fresh, func(set int) bool { return set == i }) // by which it was before
}

// setStep shows the progress of a step's call.
func (p *progress) setStep(step interpreter.HostedStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.Step = &step
}

func (p *progress) putIfItFits(i int, driven call.Driven, encoded json.RawMessage) {
	if bytes := p.held.bytes - len(p.held.Calls[i]) + len(encoded); bytes <= p.most {
		p.held.bytes, p.held.Calls[i] = bytes, encoded
		p.moved = p.moved || driven.Result != nil || driven.Outcome != nil ||
			driven.State != nil && driven.State.Attempts > p.before[i]
	}
}

func (p *progress) progressOutput() call.DriveOutput {
	p.mu.Lock()
	defer p.mu.Unlock()
	return call.DriveOutput{Calls: slices.Clone(p.calls)}
}

func (p *progress) progressSnapshot() progressDetails {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.fresh {
		if encoded, err := json.Marshal(p.calls[i]); err == nil {
			p.putIfItFits(i, p.calls[i], encoded)
		}
	}
	p.fresh = p.fresh[:0]
	return progressDetails{Calls: slices.Clone(p.held.Calls), Doing: p.openAttempts(), Step: p.held.Step}
}

// mostMade bounds the stretches that a heartbeat has of calls that make attempts.
const mostMade = 200

// openAttempts returns the attempts that are being made, by the positions of their calls.
func (p *progress) openAttempts() []call.Doing {
	all := slices.SortedFunc(maps.Values(p.doing), func(x, y call.Doing) int { return cmp.Compare(x.Call, y.Call) })
	made := 0
	for i := range all {
		if made += len(all[i].Made); made > mostMade {
			all[i].Made = nil
		}
	}
	return all
}

// showAttempt shows in the heartbeats that a call makes an attempt, until stop is called.
func (p *progress) showAttempt(doing call.Doing) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing[doing.Call] = doing
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.doing, doing.Call)
	}
}

// recordTurnWait shows whether the attempt of a call waits for its turn.
func (p *progress) recordTurnWait(i int, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if doing, known := p.doing[i]; known {
		doing.Turn, doing.Since = waits, time.Now()
		p.doing[i] = doing
	}
}

// heartbeatDetails returns the details of heartbeats. Lost workers count only if no progress was
// made between them.
func (p *progress) heartbeatDetails(w attempt.DeliveryState) any {
	h := p.progressSnapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved {
		w.Acted, w.Cut = 0, 0
	}
	h.State = w
	return h
}

// progressInterval is how often the state of a running call is recorded.
const progressInterval = 200 * time.Millisecond

// startHeartbeats reports to the server what is done until stop is called. The first heartbeat
// comes after the time between two: most activities end before.
func (d *driveRun) startHeartbeats(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	interval := heartbeat.ProgressInterval(ctx)
	first := time.AfterFunc(interval, func() { // in a goroutine that most activities never need
		defer close(ended)
		d.delivery.SendHeartbeat(ctx)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.delivery.SendHeartbeat(ctx)
			case <-done:
				return
			}
		}
	})
	return func() {
		if close(done); !first.Stop() {
			<-ended
		}
	}
}
