package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"reprise/activities/attempt"
	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/workflows/gate"
)

// ClientOptions returns options for a client that records metrics and propagates traces.
func (t *Telemetry) ClientOptions(options client.Options) client.Options {
	if t == nil {
		return options
	}
	options.MetricsHandler = t.metricsHandler()
	if t.traces != nil {
		options.ContextPropagators = append(slices.Clip(options.ContextPropagators), propagator{})
	}
	return options
}

// AttemptRecorder returns the recorder of a worker's attempts; nil if t is nil.
func (t *Telemetry) AttemptRecorder() attempt.Telemetry {
	if t == nil {
		return nil
	}
	return watcher{recorder: t.recorder, t: t}
}

// CountOperations makes the operations of a payload store counted.
func (t *Telemetry) CountOperations(store *payload.Store) {
	if t == nil {
		return
	}
	const failed = "error"
	for _, operation := range payload.Operations() {
		t.recorder.Add(meter.StoreOperations, 0, operation, failed)
	}
	store.SetWatch(func(operation string, bytes int64, took time.Duration, err error) {
		result := "ok"
		if err != nil {
			result = failed
		}
		t.recorder.Add(meter.StoreOperations, 1, operation, result)
		t.recorder.Observe(meter.StoreTime, took, operation, result)
		t.recorder.Add(meter.StoreBytes, bytes, operation, result)
	})
}

// Interceptors returns the interceptors with which a worker records the parts of runs.
func (t *Telemetry) Interceptors() []interceptor.WorkerInterceptor {
	if t == nil {
		return nil
	}
	return []interceptor.WorkerInterceptor{&recording{t: t}}
}

// BeginSpan begins the span of a command; end ends it with the command's error, or nil.
func (t *Telemetry) BeginSpan(ctx context.Context, name string) (within context.Context, end func(error)) {
	if t == nil || t.traces == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, t.maskText(err.Error()))
		}
		span.End()
	}
}

type recording struct {
	interceptor.WorkerInterceptorBase
	t *Telemetry
}

// InterceptWorkflow wraps each workflow.
func (i *recording) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &recordedWorkflow{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, t: i.t}
}

type recordedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	t *Telemetry
}

// ExecuteWorkflow runs the workflow with a recorder that can create series, and within the trace that has its spans.
func (w *recordedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	ctx = gate.WithSeries(ctx, w.t.recorder)
	if w.t.traces == nil {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	l, _ := ctx.Value(lineageKey{}).(lineage)
	info := workflow.GetInfo(ctx)
	if !l.Run.IsValid() && info.ParentWorkflowExecution == nil {
		l = l.childLineage(info.FirstRunID, w.t.sampledFlags)
	}
	if l.isValid() {
		ctx = gate.WithSpans(workflow.WithValue(ctx, lineageKey{}, l), spans{w.t})
	}
	return w.Next.ExecuteWorkflow(ctx, in)
}
