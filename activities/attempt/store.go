package attempt

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

// Payloads bound the values of a run, in bytes of JSON.
type Payloads struct {
	// MaxBytes bounds every value that crosses a boundary: requests, results, inputs and
	// results of iterations. 0 is interpreter.MaxInlinePayload, the most that Temporal accepts
	// without a payload store.
	MaxBytes int
	// AnswersBytes bounds the memory, by estimate, that all attempts of a worker use together
	// for what they read; 0 is DefaultBytes.
	AnswersBytes int64
	// OffloadAbove is the size above which this worker stores values in the payload store; 0
	// switches that off.
	OffloadAbove int
	// Store is the payload store, nil for none.
	Store PayloadStore
	// Patience is how long the store may be unreachable before an attempt, and again after it,
	// until the attempt fails; 0 is interpreter.StorePatience.
	Patience time.Duration
}

// PayloadStore stores large values. It is safe for concurrent use.
type PayloadStore interface {
	// CheckReady reports whether the store accepts values.
	CheckReady(ctx context.Context) error
	// Write writes a value, so that it need not be written once the activity has
	// ended. The error names key and store.
	Write(ctx context.Context, value *commonpb.Payload) error
	// MarkInline marks a value to go into the history, whatever its size.
	MarkInline(value *commonpb.Payload) *commonpb.Payload
}

// storeRetry is the first wait before a store is tried again, storeRetryMax the longest.
const (
	storeRetry    = 100 * time.Millisecond
	storeRetryMax = 3 * time.Second
)

// lastTry is how long writing an outcome is tried that is no longer awaited.
const lastTry = 500 * time.Millisecond

// awaitStore sends heartbeats until the payload store accepts values, so that no attempt is
// made whose outcome could not be stored. The error comes from ctx, or says that the attempt
// has not begun.
func (p Payloads) awaitStore(ctx context.Context, in interpreter.ToolInput) error {
	if p.Store == nil {
		return nil
	}
	err := p.Store.CheckReady(ctx)
	if err == nil { // as nearly always: no ticker is needed
		return nil
	}
	heartbeat, stop := heartbeatTicks(ctx)
	defer stop()
	until := time.Now().Add(p.Patience)
	for wait := storeRetry; err != nil; wait = min(2*wait, storeRetryMax) {
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
		err = p.Store.CheckReady(ctx)
	}
	return nil
}

// waitWithHeartbeats waits and sends heartbeats. The error is ctx's, or says that the
// worker stops.
func waitWithHeartbeats(ctx context.Context, wait time.Duration, heartbeat <-chan time.Time) error {
	over := time.After(wait)
	for {
		select {
		case <-over:
			return nil
		case <-heartbeat:
			if b := beginningIn(ctx); b != nil {
				b.delivery.SendHeartbeat(ctx)
			}
		case <-stopChannel(ctx):
			return ErrReleased
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// StoreOutcomes wraps every activity so that its outcome is in the payload store before the
// activity ends. If the SDK failed to store it afterwards, Temporal would repeat the attempt.
func (r *Runner) StoreOutcomes() interceptor.WorkerInterceptor {
	return &storeInterceptor{payloads: r.Resources.Payloads}
}

type storeInterceptor struct {
	interceptor.WorkerInterceptorBase
	payloads Payloads
}

// InterceptActivity is called for each activity.
func (o *storeInterceptor) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	if o.payloads.Store == nil {
		return next
	}
	return &outcomeStore{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, payloads: o.payloads}
}

// outcomeStore writes the outcome of one activity to the payload store.
type outcomeStore struct {
	interceptor.ActivityInboundInterceptorBase
	payloads Payloads
	beats    beats
}

// Init shows it the heartbeats.
func (o *outcomeStore) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	o.beats.Next = outbound
	return o.Next.Init(&o.beats)
}

// ExecuteActivity runs the activity and stores its outcome.
func (o *outcomeStore) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := o.Next.ExecuteActivity(context.WithValue(ctx, beatsKey{}, &o.beats), in)
	var cancelled *temporal.CanceledError
	if output := (call.DriveOutput{}); errors.As(err, &cancelled) && cancelled.HasDetails() && cancelled.Details(&output) == nil {
		value, err := o.storedValue(ctx, output)
		if err != nil {
			return nil, err
		}
		return nil, temporal.NewCanceledError(converter.NewRawValue(value))
	}
	if err != nil || activity.GetInfo(ctx).IsLocalActivity {
		return result, err
	}
	value, err := o.storedValue(ctx, result)
	if err != nil {
		return nil, err
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{value}}, nil
}

// storedValue returns the value as Temporal gets it, once the store has it. If the store does not
// accept it in time it goes into the history; if it is too large for that, a failure takes its
// place.
func (o *outcomeStore) storedValue(ctx context.Context, result any) (*commonpb.Payload, error) {
	value, err := converter.GetDefaultDataConverter().ToPayload(result)
	if err != nil {
		return nil, err
	}
	failure := o.writeValue(ctx, value)
	if failure == nil {
		return value, nil
	}
	activity.GetLogger(ctx).Error("the payload store refused the outcome of an activity", "error", failure)
	if len(value.GetData()) > interpreter.MaxInlinePayload {
		if result, err = withoutData(result, failure); err != nil {
			return nil, err
		}
		if value, err = converter.GetDefaultDataConverter().ToPayload(result); err != nil {
			return nil, err
		}
	}
	return o.payloads.Store.MarkInline(value), nil
}

// writeValue writes the value until the store accepts it or patience ends; a little longer if
// the run is cancelled or the worker stops. It returns the last error.
func (o *outcomeStore) writeValue(ctx context.Context, value *commonpb.Payload) error {
	if proto.Size(value) < o.payloads.OffloadAbove {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.payloads.Patience)
	defer cancel()
	go o.watchUntil(ctx, bounded, cancel)
	var reason error
	for wait := storeRetry; ; wait = min(2*wait, storeRetryMax) {
		err := o.payloads.Store.Write(bounded, value)
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

// watchUntil sends heartbeats until bounded ends. It ends that soon where the value is no
// longer awaited.
func (o *outcomeStore) watchUntil(ctx, bounded context.Context, end func()) {
	heartbeat, stop := heartbeatTicks(ctx)
	defer stop()
	stopping, cancelled := activity.GetWorkerStopChannel(ctx), ctx.Done()
	for {
		select {
		case <-heartbeat:
			o.beats.repeatBeats(ctx)
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

// beats remembers the details of the last heartbeat, which the heartbeats of an outcomeStore
// repeat.
type beats struct {
	interceptor.ActivityOutboundInterceptorBase
	mu   sync.Mutex
	last []any
}

// beatsKey marks the context of an activity whose outcome is stored.
type beatsKey struct{}

// recordBeat shows an outcomeStore a heartbeat that does not go through the SDK.
func recordBeat(ctx context.Context, details any) {
	if b, ok := ctx.Value(beatsKey{}).(*beats); ok {
		b.recordBeat(details)
	}
}

func (b *beats) recordBeat(details ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = details
}

// RecordHeartbeat is called for each heartbeat of the activity.
func (b *beats) RecordHeartbeat(ctx context.Context, details ...any) {
	b.recordBeat(details...)
	b.Next.RecordHeartbeat(ctx, details...)
}

func (b *beats) repeatBeats(ctx context.Context) {
	b.mu.Lock()
	details := b.last
	b.mu.Unlock()
	b.Next.RecordHeartbeat(ctx, details...)
}

// withoutData returns an outcome without the value that the store did not accept. The attempt has
// taken effect, so it must not be repeated.
func withoutData(result any, reason error) (any, error) {
	failure := &interpreter.ErrorObject{
		Kind: interpreter.KindPayloadStore, Class: interpreter.ClassRetryable, Final: true,
		Message: tool.CutText("the attempt was made, but its outcome could not be stored: "+reason.Error(), tool.MaxMessage),
	}
	output, many := result.(call.DriveOutput)
	if !many {
		return nil, ApplicationError(failure)
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
