package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// What heartbeats hold of the calls' progress is bounded: what does not fit is
// done again after a worker was lost, with the same keys. The pages of one call
// fit up to the bytes that one activity fetches; Temporal takes 2 MB.
const (
	maxProgressBytes = 256 << 10
	maxPagesProgress = 1280 << 10
)

// Drive hosts calls: it makes all of their attempts, pages and sinks that need
// no wait. A call that has to wait, or that has had its share of this activity,
// is given back with its state. Heartbeats hold what is done, so a worker that
// takes over goes on behind it.
func (c *Catalogue) Drive(ctx context.Context, in interpreter.DriveInput) (interpreter.DriveOutput, error) {
	book, step, err := in.Task.Load()
	if err != nil {
		return interpreter.DriveOutput{}, applicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error(), Final: true,
		}, true)
	}
	d := &hosting{catalogue: c, in: in, book: book, step: step, progress: newProgress(ctx, in)}
	stop := d.progress.heartbeats(ctx)
	defer stop()
	err = d.driveAll(hosted(ctx))
	switch {
	case err == nil && !d.cut.Load():
		return fitting(d.output(), step, c.res.Payloads.MaxBytes), nil
	case err == nil, workerStopped(ctx):
		activity.RecordHeartbeat(ctx, d.progress.snapshot())
		return interpreter.DriveOutput{}, applicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindWorkerLost, Class: interpreter.ClassRetryable,
			Message: "the worker was stopped during the attempts",
		}, false)
	case ctx.Err() != nil:
		return interpreter.DriveOutput{}, temporal.NewCanceledError(fitting(d.output(), step, c.res.Payloads.MaxBytes))
	}
	return interpreter.DriveOutput{}, err
}

// fitting makes sure that the output can travel: a call whose result takes more
// than its share fails and says so, one that was left half-way begins again.
func fitting(output interpreter.DriveOutput, step *playbook.Step, most int) interpreter.DriveOutput {
	if surelyFits(output, most) || sizeOf(output) <= most {
		return output
	}
	share := most / len(output.Calls)
	for i, driven := range output.Calls {
		size := sizeOf(driven)
		if size <= share {
			continue
		}
		output.Calls[i] = interpreter.Driven{}
		if driven.Result != nil {
			output.Calls[i].Result = &interpreter.CallResult{
				Status: interpreter.StatusError, Meta: driven.Result.Meta,
				Warnings: append(driven.Result.Warnings, interpreter.Unwritten(step)...),
				Error: &interpreter.ErrorObject{
					Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
					Message: fmt.Sprintf("the result of an iteration is %d bytes, more than its share of %d in its batch; "+
						"write rows away with a sink and return less, or make the batch smaller", size, share),
				},
			}
		}
	}
	return output
}

// output is what the calls have come to. Pages go back without what they came
// with.
func (d *hosting) output() interpreter.DriveOutput {
	output := d.progress.output()
	if d.in.Pages {
		for i, driven := range output.Calls {
			output.Calls[i] = driven.Handed(d.in.Calls[i].State)
		}
	}
	return output
}

// hosting is one run of Drive.
type hosting struct {
	catalogue *Catalogue
	in        interpreter.DriveInput
	book      *playbook.Playbook
	step      *playbook.Step
	progress  *progress
	cut       atomic.Bool // a call was left because the worker stops
}

// driveAll drives the calls, Width at a time or strictly in order.
func (d *hosting) driveAll(ctx context.Context) error {
	if d.in.Width == 0 {
		for i := range d.in.Calls {
			if err := d.drive(ctx, i); err != nil || d.progress.of(i).Result == nil {
				return err
			}
		}
		return nil
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(d.in.Width)
	for i := range d.in.Calls {
		group.Go(func() error { return d.drive(inner, i) })
	}
	return group.Wait()
}

// drive takes one call as far as it goes without a wait. What it has done
// before an error stays in the progress.
func (d *hosting) drive(ctx context.Context, i int) error {
	carried := d.in.Calls[i]
	switch done := d.progress.of(i); {
	case done.Result != nil, done.Outcome != nil:
		return nil // before the worker was lost
	case done.State != nil:
		carried.State = done.State
	}
	call := d.in.Task.Call(d.book, d.step, carried, rand.Float64)
	noted := time.Now()
	note := func() {
		if now := time.Now(); now.Sub(noted) >= progressInterval {
			noted = now
			d.progress.hold(i, interpreter.Driven{State: &call.State})
		}
	}
	if d.in.Pages {
		driven, err := d.pages(ctx, call, note)
		if d.progress.keep(i, driven); err != nil || d.cut.Load() {
			d.progress.hold(i, driven)
		}
		return err
	}
	finished, err := d.host(ctx, call, note)
	if finished {
		d.progress.set(i, interpreter.Driven{Result: call.State.Result})
	} else {
		d.progress.set(i, interpreter.Driven{State: &call.State})
	}
	return err
}

// pages fetches pages of a call, with their sinks, until something else is due;
// that is left to the workflow, which holds what was collected before.
func (d *hosting) pages(ctx context.Context, call *interpreter.Call, page func()) (interpreter.Driven, error) {
	chunk := call.NewChunk(time.Now())
	for call.TurnsPage() && !chunk.Full(call, time.Now()) && !workerStopping(ctx) {
		command := call.Next(time.Now())
		if command.Kind == interpreter.DoSink {
			if err := d.pageSink(ctx, call, command.Sink); err != nil || call.State.Sink != nil {
				return interpreter.Driven{State: &call.State}, err
			}
			continue
		}
		before := call.Snapshot()
		outcome, size, err := d.attempt(ctx, command.Input)
		if err != nil {
			return interpreter.Driven{State: &before}, err
		}
		call.Attempted(outcome, time.Now())
		if size.all > maxPageBytes || !call.TurnsPage() {
			return d.handBack(interpreter.Driven{State: &before, Outcome: &outcome}), nil
		}
		chunk.Add(size.all)
		page()
	}
	state := call.Snapshot()
	return interpreter.Driven{State: &state}, nil
}

// maxPageBytes is the size of a page from which it is handed back as it came,
// so that large pages do not gather in one activity.
const maxPageBytes = 300_000

// handBack leaves an outcome out that cannot travel with its call's state: the
// workflow makes that attempt again, alone.
func (d *hosting) handBack(driven interpreter.Driven) interpreter.Driven {
	output, most := interpreter.DriveOutput{Calls: []interpreter.Driven{driven}}, d.catalogue.res.Payloads.MaxBytes
	if !surelyFits(output, most) && sizeOf(output) > most {
		driven.Outcome = nil
	}
	return driven
}

// pageSink writes a page away. A sink that waits or failed is left to the
// workflow, as far as it has come.
func (d *hosting) pageSink(ctx context.Context, call, sink *interpreter.Call) error {
	finished, err := d.host(ctx, sink, func() {})
	if err != nil {
		return err
	}
	if !finished || sink.State.Result.Failed() {
		call.State.Sink = &sink.State
		return nil
	}
	call.SinkDone(*sink.State.Result, time.Now())
	return nil
}

// host runs what the call asks for. It returns false where the call waits or
// has had its share.
func (d *hosting) host(ctx context.Context, call *interpreter.Call, page func()) (finished bool, err error) {
	chunk := call.NewChunk(time.Now())
	for ctx.Err() == nil {
		command := call.Next(time.Now())
		switch command.Kind {
		case interpreter.DoAttempt:
			if chunk.Full(call, time.Now()) {
				return false, nil
			}
			if workerStopping(ctx) {
				d.cut.Store(true)
				return false, nil
			}
			outcome, size, err := d.attempt(ctx, command.Input)
			if err != nil {
				return false, err
			}
			chunk.Add(size.data)
			call.Attempted(outcome, time.Now())
			page()
		case interpreter.DoWait:
			return false, nil
		case interpreter.DoSink:
			written, err := d.host(ctx, command.Sink, func() {})
			if err != nil {
				return false, err
			}
			if !written {
				call.State.Sink = &command.Sink.State
				return false, nil
			}
			call.SinkDone(*command.Sink.State.Result, time.Now())
			page()
		case interpreter.DoFinish:
			return true, nil
		}
	}
	return false, ctx.Err()
}

// workerStopping reports whether the worker takes no more work: what begins now
// might not end.
func workerStopping(ctx context.Context) bool {
	if !activity.IsActivity(ctx) {
		return false
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// attempt makes one attempt with the tool's own wrapping, and takes its failure
// apart again. The error is one that ends the activity.
func (d *hosting) attempt(ctx context.Context, input interpreter.ToolInput) (interpreter.Outcome, resultSize, error) {
	run := d.catalogue.function(input.Activity())
	if run == nil {
		return failed(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q", input.Tool),
		})
	}
	result, size, err := run(ctx, input)
	if err == nil {
		return interpreter.Outcome{Data: result.Data.Data, Meta: result.Meta}, size, nil
	}
	var application *temporal.ApplicationError
	var object interpreter.ErrorObject
	if errors.As(err, &application) && application.NonRetryable() &&
		application.HasDetails() && application.Details(&object) == nil {
		return failed(&object)
	}
	return interpreter.Outcome{}, size, err
}

// failed is the outcome of an attempt that has no data.
func failed(object *interpreter.ErrorObject) (interpreter.Outcome, resultSize, error) {
	outcome := interpreter.Outcome{Err: object}
	return outcome, resultSize{data: len("null"), all: sizeOf(outcome)}, nil
}

// progress is what Drive has done so far.
type progress struct {
	mu    sync.Mutex
	calls []interpreter.Driven
	fresh []int // calls that ended or were left since the heartbeat before
	held  held
	most  int // bytes of held
}

// held is the part of the progress that heartbeats carry, in the form of a
// DriveOutput. A call's state is encoded when it is held, because the call goes
// on changing it.
type held struct {
	Calls []json.RawMessage `json:"calls"`
	bytes int
}

// newProgress begins with what the heartbeats of a lost worker tell.
func newProgress(ctx context.Context, in interpreter.DriveInput) *progress {
	n := len(in.Calls)
	p := &progress{
		calls: make([]interpreter.Driven, n), held: held{Calls: make([]json.RawMessage, n)}, most: maxProgressBytes,
	}
	if in.Pages {
		p.most = maxPagesProgress
	}
	for i := range p.held.Calls {
		p.held.Calls[i] = json.RawMessage("{}")
	}
	var before interpreter.DriveOutput
	if activity.IsActivity(ctx) && activity.HasHeartbeatDetails(ctx) &&
		activity.GetHeartbeatDetails(ctx, &before) == nil && len(before.Calls) == n {
		for i, driven := range before.Calls {
			p.set(i, driven)
		}
	}
	return p
}

func (p *progress) of(i int) interpreter.Driven {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[i]
}

// set records where the call ended, or was left. It changes no more, so that
// the heartbeat that tells of it can encode it; most activities end before.
func (p *progress) set(i int, driven interpreter.Driven) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[i] = driven
	p.fresh = append(p.fresh, i)
}

// keep is set for an activity that ends now: no heartbeat will tell.
func (p *progress) keep(i int, driven interpreter.Driven) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[i] = driven
}

// hold puts what is known of a call into the heartbeats, if it fits.
func (p *progress) hold(i int, driven interpreter.Driven) {
	encoded, err := json.Marshal(driven)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(i, encoded)
}

func (p *progress) put(i int, encoded json.RawMessage) {
	if bytes := p.held.bytes - len(p.held.Calls[i]) + len(encoded); bytes <= p.most {
		p.held.bytes, p.held.Calls[i] = bytes, encoded
	}
}

func (p *progress) output() interpreter.DriveOutput {
	p.mu.Lock()
	defer p.mu.Unlock()
	return interpreter.DriveOutput{Calls: slices.Clone(p.calls)}
}

func (p *progress) snapshot() held {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.fresh {
		if encoded, err := json.Marshal(p.calls[i]); err == nil {
			p.put(i, encoded)
		}
	}
	p.fresh = p.fresh[:0]
	return held{Calls: slices.Clone(p.held.Calls)}
}

// progressInterval is how often heartbeats carry the progress.
const progressInterval = 200 * time.Millisecond

// heartbeats tells the server what is done until stop is called.
func (p *progress) heartbeats(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx, p.snapshot())
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// hostedKey marks attempts inside Drive, which sends their heartbeats.
type hostedKey struct{}

func hosted(ctx context.Context) context.Context { return context.WithValue(ctx, hostedKey{}, true) }

func isHosted(ctx context.Context) bool { return ctx.Value(hostedKey{}) != nil }
