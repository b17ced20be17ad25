package activities

import (
	"context"
	"encoding/json"
	"fmt"
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
