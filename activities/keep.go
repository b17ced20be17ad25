package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// PayloadStore is where large values go. It is safe for concurrent use.
type PayloadStore interface {
	// Ready reports whether the store accepts values.
	Ready(ctx context.Context) error
	// Keep writes a value, so that it need not be written once the activity has
	// ended. The error names key and store.
	Keep(ctx context.Context, value *commonpb.Payload) error
	// Inline marks a value to go into the history, whatever its size.
	Inline(value *commonpb.Payload) *commonpb.Payload
}

// keepWait is the first wait before a store is tried again, keepMaxWait the longest.
const (
	keepWait    = 100 * time.Millisecond
	keepMaxWait = 3 * time.Second
)

// lastTry is how long an outcome is kept that is no longer awaited.
const lastTry = 500 * time.Millisecond

// awaitStore returns once the payload store accepts values, so that no attempt is
// made whose outcome has nowhere to go. It sends heartbeats. The error is that of
// ctx, or says that the attempt has not begun.
func (p Payloads) awaitStore(ctx context.Context, in interpreter.ToolInput) error {
	if p.Store == nil {
		return nil
	}
	err := p.Store.Ready(ctx)
	if err == nil { // as nearly always: no ticker is needed
		return nil
	}
	heartbeat, stop := heartbeats(ctx)
	defer stop()
	until := time.Now().Add(p.Patience)
	for wait := keepWait; err != nil; wait = min(2*wait, keepMaxWait) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(until):
			return &tool.Error{
				Kind: interpreter.KindPayloadStore, Class: interpreter.ClassRetryable, Err: err,
				Message: fmt.Sprintf("step %q: the attempt was not started, because its result could not be stored: %v", in.Step, err),
			}
		}
		if err := waitWithHeartbeats(ctx, wait, heartbeat); err != nil {
			return err
		}
		err = p.Store.Ready(ctx)
	}
	return nil
}

// waitWithHeartbeats waits and sends heartbeats. The error is that of ctx, or says that the
// worker stops.
func waitWithHeartbeats(ctx context.Context, wait time.Duration, heartbeat <-chan time.Time) error {
	over := time.After(wait)
	for {
		select {
		case <-over:
			return nil
		case <-heartbeat:
			if b := beginningIn(ctx); b != nil {
				b.delivery.beat(ctx)
			}
		case <-stopChannel(ctx):
			return errReleased
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Keeping is what a worker puts around every activity: an outcome is in the
// payload store before the activity ends. What the SDK cannot store after the end
// it takes for a failure, and has the attempt made again.
func (c *Catalogue) Keeping() interceptor.WorkerInterceptor {
	return &keeping{payloads: c.res.Payloads}
}

type keeping struct {
	interceptor.WorkerInterceptorBase
	payloads Payloads
}

// InterceptActivity is called for each activity.
func (k *keeping) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	if k.payloads.Store == nil {
		return next
	}
	return &outcomeKeeper{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, payloads: k.payloads}
}

// outcomeKeeper keeps the outcome of one activity.
type outcomeKeeper struct {
	interceptor.ActivityInboundInterceptorBase
	payloads Payloads
	beats    beats
}

// Init lets the keeper see the heartbeats.
func (k *outcomeKeeper) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	k.beats.Next = outbound
	return k.Next.Init(&k.beats)
}

// ExecuteActivity runs the activity and keeps what came of it.
func (k *outcomeKeeper) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := k.Next.ExecuteActivity(context.WithValue(ctx, beatsKey{}, &k.beats), in)
	var cancelled *temporal.CanceledError
	if output := (call.DriveOutput{}); errors.As(err, &cancelled) && cancelled.HasDetails() && cancelled.Details(&output) == nil {
		value, err := k.keep(ctx, output)
		if err != nil {
			return nil, err
		}
		return nil, temporal.NewCanceledError(converter.NewRawValue(value))
	}
	if err != nil || activity.GetInfo(ctx).IsLocalActivity {
		return result, err
	}
	value, err := k.keep(ctx, result)
	if err != nil {
		return nil, err
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{value}}, nil
}

// keep gives the value as it goes to Temporal, once the store has it. When the
// store does not accept it in time it goes into the history; what is too large for
// that as well is a failure, in its place, of an attempt that was made.
func (k *outcomeKeeper) keep(ctx context.Context, result any) (*commonpb.Payload, error) {
	value, err := converter.GetDefaultDataConverter().ToPayload(result)
	if err != nil {
		return nil, err
	}
	failure := k.untilKept(ctx, value)
	if failure == nil {
		return value, nil
	}
	activity.GetLogger(ctx).Error("the payload store refused the outcome of an activity", "error", failure)
	if len(value.GetData()) > interpreter.MaxInlinePayload {
		if result, err = unkept(result, failure); err != nil {
			return nil, err
		}
		if value, err = converter.GetDefaultDataConverter().ToPayload(result); err != nil {
			return nil, err
		}
	}
	return k.payloads.Store.Inline(value), nil
}

// untilKept writes the value until the store accepts it: as long as patience lasts,
// and not much longer where the run is cancelled or the worker stops. It returns the
// last error.
func (k *outcomeKeeper) untilKept(ctx context.Context, value *commonpb.Payload) error {
	if proto.Size(value) < k.payloads.OffloadAbove {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.payloads.Patience)
	defer cancel()
	go k.watch(ctx, bounded, cancel)
	var reason error
	for wait := keepWait; ; wait = min(2*wait, keepMaxWait) {
		err := k.payloads.Store.Keep(bounded, value)
		if err == nil {
			return nil
		}
		if reason == nil || bounded.Err() == nil { // the end of our patience is not why
			reason = err
		}
		if sleep.For(bounded, wait) != nil {
			return reason
		}
	}
}

// watch sends heartbeats until bounded ends. It ends that soon where the value is no
// longer awaited.
func (k *outcomeKeeper) watch(ctx, bounded context.Context, end func()) {
	heartbeat, stop := heartbeats(ctx)
	defer stop()
	stopping, cancelled := activity.GetWorkerStopChannel(ctx), ctx.Done()
	for {
		select {
		case <-heartbeat:
			k.beats.repeat(ctx)
		case <-stopping:
			stopping = nil
			defer time.AfterFunc(lastTry, end).Stop()
		case <-cancelled:
			cancelled = nil
			defer time.AfterFunc(lastTry, end).Stop()
		case <-bounded.Done():
			return
		}
	}
}

// beats remembers what the last heartbeat said, so that those of the keeper say
// the same.
type beats struct {
	interceptor.ActivityOutboundInterceptorBase
	mu   sync.Mutex
	last []any
}

// beatsKey marks the context in which a keeper's activity runs.
type beatsKey struct{}

// recordBeat shows the keeper a heartbeat that does not go through the SDK.
func recordBeat(ctx context.Context, details any) {
	if b, ok := ctx.Value(beatsKey{}).(*beats); ok {
		b.record(details)
	}
}

func (b *beats) record(details ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = details
}

// RecordHeartbeat is called for each heartbeat of the activity.
func (b *beats) RecordHeartbeat(ctx context.Context, details ...any) {
	b.record(details...)
	b.Next.RecordHeartbeat(ctx, details...)
}

func (b *beats) repeat(ctx context.Context) {
	b.mu.Lock()
	details := b.last
	b.mu.Unlock()
	b.Next.RecordHeartbeat(ctx, details...)
}

// unkept is an outcome without what the store did not accept. Whatever it was the
// outcome of has happened, so nothing requests it again.
func unkept(result any, reason error) (any, error) {
	failure := &interpreter.ErrorObject{
		Kind: interpreter.KindPayloadStore, Class: interpreter.ClassRetryable, Final: true,
		Message: tool.CutText("the attempt was made, but its outcome could not be stored: "+reason.Error(), tool.MaxMessage),
	}
	output, many := result.(call.DriveOutput)
	if !many {
		return nil, applicationError(failure)
	}
	share := interpreter.MaxInlinePayload / max(len(output.Calls), 1)
	calls := slices.Clone(output.Calls)
	for i, driven := range calls {
		switch {
		case interpreter.EncodedSize(driven) <= share:
		case driven.Result != nil:
			calls[i].Result = &interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Meta: driven.Result.Meta, Warnings: driven.Result.Warnings,
			}
		case driven.Outcome != nil:
			calls[i].Outcome = &interpreter.Outcome{Err: failure, Meta: driven.Outcome.Meta}
		default:
			calls[i] = call.Driven{Result: &interpreter.CallResult{
				Status: interpreter.StatusError, Error: failure, Meta: interpreter.CallMeta{
					Attempts: driven.State.Attempts, Pages: driven.State.Successes, StartedAt: driven.State.StartedAt,
				},
			}}
		}
	}
	return call.DriveOutput{Calls: calls}, nil
}
