package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
)

// Attributes of spans. They are names and numbers; none holds a value of a run.
const (
	attrPlaybook = attribute.Key("reprise.playbook")
	attrRun      = attribute.Key("reprise.run")
	attrStep     = attribute.Key("reprise.step")
	attrVisit    = attribute.Key("reprise.visit")
	attrIndex    = attribute.Key("reprise.index")
	attrPage     = attribute.Key("reprise.page")
	attrPages    = attribute.Key("reprise.pages")
	attrAttempt  = attribute.Key("reprise.attempt")
	attrAttempts = attribute.Key("reprise.attempts")
	attrTool     = attribute.Key("reprise.tool")
	attrPlace    = attribute.Key("reprise.place")
	attrStatus   = attribute.Key("reprise.status")
	attrClass    = attribute.Key("reprise.class")
	attrKind     = attribute.Key("error.type")
	attrHTTP     = attribute.Key("http.response.status_code")
)

// shownDescription bounds an error's message in a span, in characters.
const shownDescription = 500

// idKey is the context key of the IDs for the next span.
type idKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// idGenerator gives spans the IDs in their context.
type idGenerator struct{}

// NewIDs returns the IDs of a trace and its first span.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if own, ok := ctx.Value(idKey{}).(ids); ok {
		return own.trace, own.span
	}
	var made ids
	_, _ = rand.Read(made.trace[:]) // it never fails
	_, _ = rand.Read(made.span[:])
	return made.trace, made.span
}

// NewSpanID returns the ID of a span in a trace.
func (g idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := g.NewIDs(ctx)
	return span
}

// sampledFlags returns the sampler's decision about a trace that begins with a run.
func (t *Telemetry) sampledFlags(id trace.TraceID) trace.TraceFlags {
	ctx := context.WithValue(context.Background(), idKey{}, ids{trace: id, span: trace.SpanID{1}})
	_, span := t.tracer.Start(ctx, "run") // which never ends, so it is not exported
	return span.SpanContext().TraceFlags()
}

// recordSpan exports a span that has ended.
func (t *Telemetry) recordSpan(l lineage, of meter.Span, more ...attribute.KeyValue) {
	if !l.isValid() || !l.Flags.IsSampled() || of.Started.IsZero() {
		return
	}
	ctx := context.WithValue(context.Background(), idKey{}, ids{trace: l.Trace, span: l.spanID(of)})
	if parent := l.parentOf(of); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, l.spanContext(parent))
	}
	_, span := t.tracer.Start(ctx, spanName(of), trace.WithTimestamp(of.Started),
		trace.WithAttributes(attributesOf(of)...), trace.WithAttributes(more...))
	t.recordError(span, of.Error)
	span.End(trace.WithTimestamp(of.Ended))
}

func spanName(of meter.Span) string {
	switch of.Kind {
	case meter.SpanRun:
		return "run " + of.Playbook
	case meter.SpanStep:
		return of.Step
	}
	return strings.TrimSpace(of.Step + " " + of.Kind)
}

func attributesOf(of meter.Span) []attribute.KeyValue {
	all := []attribute.KeyValue{attrPlaybook.String(of.Playbook), attrStatus.String(string(of.Status))}
	if of.Kind == meter.SpanRun {
		return all
	}
	all = append(all, attrStep.String(of.Step), attrVisit.Int(of.Visit), attrAttempts.Int(of.Attempts))
	if of.Index != nil {
		all = append(all, attrIndex.Int(*of.Index))
	}
	if of.Kind == meter.SpanSink {
		return append(all, attrPlace.String(of.Place), attrTool.String(of.Tool), attrPage.Int(of.Page))
	}
	return append(all, attrPages.Int(of.Pages))
}

// recordError records an error, masked as in logs.
func (t *Telemetry) recordError(span trace.Span, failure *interpreter.ErrorObject) {
	if failure == nil {
		return
	}
	message := []rune(t.maskText(failure.Message))
	span.SetStatus(codes.Error, string(message[:min(len(message), shownDescription)]))
	span.SetAttributes(attrKind.String(string(failure.Kind)), attrClass.String(string(failure.Class)))
	if failure.Status != 0 {
		span.SetAttributes(attrHTTP.Int(failure.Status))
	}
}

// spans records the parts of workflows.
type spans struct{ t *Telemetry }

// Ended records a span, except in a replay: then it was recorded before.
func (s spans) Ended(ctx workflow.Context, of meter.Span) {
	if workflow.IsReplaying(ctx) {
		return
	}
	l, _ := ctx.Value(lineageKey{}).(lineage)
	var more []attribute.KeyValue
	if of.Kind == meter.SpanRun {
		more = append(more, attrRun.String(workflow.GetInfo(ctx).WorkflowExecution.ID))
	}
	s.t.recordSpan(l, of, more...)
}

// watcher records the work of activities.
type watcher struct {
	*recorder
	t *Telemetry
}

// Ended records a span that has ended in an activity.
func (w watcher) Ended(ctx context.Context, of meter.Span) {
	if w.t.traces != nil {
		l, _ := ctx.Value(lineageKey{}).(lineage)
		w.t.recordSpan(l, of)
	}
}

// Attempt begins the span of an attempt.
func (w watcher) Attempt(
	ctx context.Context, in interpreter.ToolInput,
) (context.Context, func(*interpreter.ErrorObject, bool)) {
	if w.t.traces == nil {
		return ctx, func(*interpreter.ErrorObject, bool) {}
	}
	of := meter.Span{Kind: meter.SpanStep, Step: in.Step, Visit: in.Visit}
	if in.Index != nil {
		of.Kind, of.Index = meter.SpanIteration, in.Index
	}
	if in.Place != "" {
		of = meter.Span{Kind: meter.SpanSink, Step: in.Step, Visit: in.Visit, Index: in.Index, Place: in.Place, Page: in.Page}
	}
	parent := ctx
	if l, _ := ctx.Value(lineageKey{}).(lineage); l.isValid() {
		parent = trace.ContextWithRemoteSpanContext(ctx, l.spanContext(l.spanID(of)))
	}
	within, span := w.t.tracer.Start(parent, cmp.Or(in.Step, in.Tool)+" attempt", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attrPlaybook.String(in.Playbook), attrStep.String(in.Step), attrVisit.Int(in.Visit),
			attrTool.String(in.Tool), attrPage.Int(in.Page), attrAttempt.Int(in.Attempt)))
	if in.Index != nil {
		span.SetAttributes(attrIndex.Int(*in.Index))
	}
	if in.Place != "" {
		span.SetAttributes(attrPlace.String(in.Place))
	}
	return within, func(failure *interpreter.ErrorObject, made bool) {
		status := interpreter.StatusSuccess
		if failure != nil {
			status = interpreter.StatusError
		} else if !made {
			status = "abandoned"
		}
		span.SetAttributes(attrStatus.String(string(status)))
		w.t.recordError(span, failure)
		span.End()
	}
}

// Propagate sets the headers traceparent and tracestate (W3C Trace Context).
func (w watcher) Propagate(ctx context.Context, headers http.Header) {
	if w.t.traces != nil && w.t.headers {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(headers))
	}
}
