package attempt_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/payload"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/page"
	"reprise/interpreter/expression"
)

// away is a store that does not take a value the first times, or is slow.
type away struct {
	mu     sync.Mutex
	times  int           // that it refuses; -1 is always
	slow   time.Duration // what each writing takes
	tried  int
	stored []*commonpb.Payload
}

func (*away) CheckReady(context.Context) error { return nil }

func (*away) MarkInline(value *commonpb.Payload) *commonpb.Payload {
	var store *payload.Store
	return store.MarkInline(value)
}

func (a *away) Write(ctx context.Context, value *commonpb.Payload) error {
	select {
	case <-time.After(a.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried++
	if a.times < 0 || a.tried <= a.times {
		return errors.New("write sha256/00/00 to the payload store file:///full: no space left on device")
	}
	a.stored = append(a.stored, value)
	return nil
}

// outcome runs an activity with the keeper around it. beats are the details of
// its heartbeats.
func outcome(t *testing.T, store *away, patience time.Duration, run any) (value converter.EncodedValue, beats []any, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(testenv.Within(time.Minute))
	recorder := &recording{}
	catalogue := activities.NewCatalogue(activities.Resources{Payloads: attempt.Payloads{
		OffloadAbove: payload.Threshold, Store: store, Patience: patience,
	}})
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		recorder, catalogue.Attempts.StoreOutcomes(),
	}})
	env.RegisterActivity(run)
	value, err = env.ExecuteActivity(run)
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	return value, recorder.said, err
}

// recording notes the details of all heartbeats on their way out.
type recording struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityOutboundInterceptorBase
	mu   sync.Mutex
	said []any
}

func (r *recording) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &recorded{interceptor.ActivityInboundInterceptorBase{Next: next}, r}
}

type recorded struct {
	interceptor.ActivityInboundInterceptorBase
	recording *recording
}

func (r *recorded) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	r.recording.Next = outbound
	return r.Next.Init(r.recording)
}

// GetInfo says that somebody waits for heartbeats.
func (r *recording) GetInfo(ctx context.Context) activity.Info {
	info := r.Next.GetInfo(ctx)
	info.HeartbeatTimeout = 10 * time.Second
	return info
}

func (r *recording) RecordHeartbeat(ctx context.Context, details ...any) {
	r.mu.Lock()
	r.said = append(r.said, details...)
	r.mu.Unlock()
	r.Next.RecordHeartbeat(ctx, details...)
}

func answer(bytes int) interpreter.ToolResult {
	return interpreter.ToolResult{Data: expression.Of(strings.Repeat("x", bytes))}
}

func large(context.Context) (interpreter.ToolResult, error) { return answer(200_000), nil }

func failureOf(t *testing.T, err error) interpreter.ErrorObject {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.True(t, application.NonRetryable())
	var object interpreter.ErrorObject
	require.NoError(t, application.Details(&object))
	return object
}

// TestStoredOnceTheStoreAcceptsIt: what the SDK stores afterwards are the very bytes.
func TestStoredOnceTheStoreAcceptsIt(t *testing.T) {
	t.Parallel()

	for name, store := range map[string]*away{
		"at once": {}, "refused at first": {times: 4}, "slow": {slow: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, _, err := outcome(t, store, time.Minute, large)
			require.NoError(t, err)
			var raw converter.RawValue
			require.NoError(t, value.Get(&raw))
			require.Equal(t, store.times+1, store.tried)
			require.Equal(t, store.stored[0].GetData(), raw.Payload().GetData())
			require.Equal(t, store.stored[0].GetMetadata(), raw.Payload().GetMetadata())
		})
	}
}

func TestSmallOutcomesNeedNoStore(t *testing.T) {
	t.Parallel()
	store := &away{times: -1}
	value, _, err := outcome(t, store, time.Minute, func(context.Context) (interpreter.ToolResult, error) { return answer(1000), nil })
	require.NoError(t, err)
	var result interpreter.ToolResult
	require.NoError(t, value.Get(&result))
	require.Zero(t, store.tried)
}

// TestWhatIsNotStoredInTime goes to Temporal itself, and only what is too large for
// that is lost.
func TestWhatIsNotStoredInTime(t *testing.T) {
	t.Parallel()
	value, _, err := outcome(t, &away{times: -1}, 100*time.Millisecond, large)
	require.NoError(t, err)
	var raw converter.RawValue
	require.NoError(t, value.Get(&raw))
	require.Contains(t, raw.Payload().GetMetadata(), "reprise-inline")

	_, _, err = outcome(t, &away{times: -1}, 100*time.Millisecond, func(context.Context) (interpreter.ToolResult, error) {
		return answer(2_000_000), nil
	})
	object := failureOf(t, err)
	require.Equal(t, interpreter.KindPayloadStore, object.Kind)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.True(t, object.Final, "no policy may ask for what was sent")
	require.Contains(t, object.Message, "sha256/00/00 to the payload store file:///full: no space left")
}

// TestASlowStoreIsNotWaitedForForEver: no longer than patience lasts, and then is not called
// the end of that.
func TestASlowStoreIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	began := time.Now()
	value, _, err := outcome(t, &away{slow: time.Hour}, 100*time.Millisecond, large)
	require.NoError(t, err)
	require.Less(t, time.Since(began), testenv.Within(time.Minute))
	var raw converter.RawValue
	require.NoError(t, value.Get(&raw))
	require.Contains(t, raw.Payload().GetMetadata(), "reprise-inline")
}

// TestOfABatchOnlyTheLargeIsLost: the small results stay, and nothing that was done is asked
// for again.
func TestOfABatchOnlyTheLargeIsLost(t *testing.T) {
	t.Parallel()
	state := &call.State{Attempts: 3, Pages: page.Pages{Collected: expression.Of(strings.Repeat("x", 1_000_000))}}
	output := call.DriveOutput{Calls: []call.Driven{
		{Result: &interpreter.CallResult{Status: interpreter.StatusSuccess, Data: expression.Of("small")}},
		{Result: &interpreter.CallResult{Status: interpreter.StatusSuccess, Data: answer(1_000_000).Data, Meta: interpreter.CallMeta{Attempts: 2}}},
		{},
		{State: state},
	}}
	value, _, err := outcome(t, &away{times: -1}, time.Millisecond, func(context.Context) (call.DriveOutput, error) {
		return output, nil
	})
	require.NoError(t, err)
	var back call.DriveOutput
	require.NoError(t, value.Get(&back))
	require.Equal(t, "small", back.Calls[0].Result.Data.Data)

	for i, attempts := range map[int]int{1: 2, 3: 3} {
		require.Nil(t, back.Calls[i].State)
		require.Equal(t, interpreter.KindPayloadStore, back.Calls[i].Result.Error.Kind)
		require.Equal(t, attempts, back.Calls[i].Result.Meta.Attempts)
	}
	require.Equal(t, call.Driven{}, back.Calls[2])
}

// TestWhatACancelledBatchHad is kept like a result.
func TestWhatACancelledBatchHad(t *testing.T) {
	t.Parallel()
	output := call.DriveOutput{Calls: []call.Driven{
		{Result: &interpreter.CallResult{Status: interpreter.StatusSuccess, Data: answer(200_000).Data}},
	}}

	for times, stored := range map[int]int{1: 1, -1: 0} {
		store := &away{times: times}
		_, _, err := outcome(t, store, time.Second, func(context.Context) (call.DriveOutput, error) {
			return call.DriveOutput{}, temporal.NewCanceledError(output)
		})
		var cancelled *temporal.CanceledError
		require.ErrorAs(t, err, &cancelled)
		var back call.DriveOutput
		require.NoError(t, cancelled.Details(&back))
		require.Equal(t, output, back)
		require.Len(t, store.stored, stored)
	}
}

// TestHeartbeatsGoOnAsTheyWere: a worker that takes over has to know what is done.
func TestHeartbeatsGoOnAsTheyWere(t *testing.T) {
	t.Parallel()
	_, beats, err := outcome(t, &away{slow: heartbeat.Default + heartbeat.Default/2}, time.Minute,
		func(ctx context.Context) (interpreter.ToolResult, error) {
			activity.RecordHeartbeat(ctx, "progress")
			return answer(200_000), nil
		})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(beats), 2)

	for _, said := range beats {
		require.Equal(t, "progress", said)
	}
}
