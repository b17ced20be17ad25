package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
)

// lineage is the place of a run in its trace. It is passed from the starter to the run, its children and its
// activities. All IDs within a run are derived from it, so that any worker can record a span once it has ended, and
// children need to know only their parent.
type lineage struct {
	Trace  trace.TraceID
	Flags  trace.TraceFlags
	Parent trace.SpanID // of the run's span, zero for none
	Run    trace.SpanID // the run's span, zero before the run has begun
}

func (l lineage) isValid() bool { return l.Trace.IsValid() && l.Run.IsValid() }

// childLineage returns the lineage of a starting run from that of its parent. Without a parent's lineage, it begins a
// trace.
func (l lineage) childLineage(runID string, sampled func(trace.TraceID) trace.TraceFlags) lineage {
	sum := sha256.Sum256([]byte("reprise run " + runID))
	if !l.Trace.IsValid() {
		l.Trace = trace.TraceID(sum[:16])
		l.Flags = sampled(l.Trace)
	}
	l.Run = trace.SpanID(sum[16:24])
	return l
}

// spanID returns the ID of a step, iteration or sink of the run.
func (l lineage) spanID(of meter.Span) trace.SpanID {
	if of.Kind == meter.SpanRun {
		return l.Run
	}
	index := -1
	if of.Index != nil {
		index = *of.Index
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%d\x00%s\x00%d",
		l.Run, of.Kind, of.Step, of.Visit, index, of.Place, of.Page))
	return trace.SpanID(sum[:8])
}

// parentOf returns the ID of the parent of a span.
func (l lineage) parentOf(of meter.Span) trace.SpanID {
	switch {
	case of.Kind == meter.SpanRun:
		return l.Parent
	case of.Kind == meter.SpanStep:
		return l.Run
	case of.Kind == meter.SpanSink && of.Step == "": // a notice of the run
		return l.Run
	case of.Kind == meter.SpanSink && of.Index != nil:
		return l.spanID(meter.Span{Kind: meter.SpanIteration, Step: of.Step, Visit: of.Visit, Index: of.Index})
	}
	return l.spanID(meter.Span{Kind: meter.SpanStep, Step: of.Step, Visit: of.Visit})
}

// spanContext returns the context of a span of the trace, for its children.
func (l lineage) spanContext(parent trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: l.Trace, SpanID: parent, TraceFlags: l.Flags, Remote: true})
}

// lineageHeader is the Temporal header that carries a lineage; kept in workflow history.
const lineageHeader = "reprise-trace"

// lineageJSON is the encoded lineage; kept in workflow history.
type lineageJSON struct {
	Trace  string `json:"trace"`
	Flags  byte   `json:"flags,omitempty"`
	Parent string `json:"parent,omitempty"`
	Run    string `json:"run,omitempty"`
}

func (l lineage) toPayload() (*commonpb.Payload, error) {
	encoded := lineageJSON{Trace: l.Trace.String(), Flags: byte(l.Flags)}
	if l.Parent.IsValid() {
		encoded.Parent = l.Parent.String()
	}
	if l.Run.IsValid() {
		encoded.Run = l.Run.String()
	}
	return converter.GetDefaultDataConverter().ToPayload(encoded)
}

// lineageOf decodes a lineage. Any client may start a run with any header, so an invalid value is ignored.
func lineageOf(payload *commonpb.Payload) (l lineage, ok bool) {
	var encoded lineageJSON
	if converter.GetDefaultDataConverter().FromPayload(payload, &encoded) != nil {
		return lineage{}, false
	}
	l.Flags = trace.TraceFlags(encoded.Flags) & trace.FlagsSampled
	ok = decodeHex(encoded.Trace, l.Trace[:]) && (encoded.Parent == "" || decodeHex(encoded.Parent, l.Parent[:])) &&
		(encoded.Run == "" || decodeHex(encoded.Run, l.Run[:]))
	return l, ok && l.Trace.IsValid()
}

func decodeHex(text string, into []byte) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && copy(into, decoded) == len(into) && len(decoded) == len(into)
}

type lineageKey struct{}

// propagator passes lineages on in Temporal's headers.
type propagator struct{}

var _ workflow.ContextPropagator = propagator{}

// Inject adds the span of a starter to what it starts.
func (propagator) Inject(ctx context.Context, writer workflow.HeaderWriter) error {
	sc := trace.SpanContextFromContext(ctx)
	if _, within := ctx.Value(lineageKey{}).(lineage); within || !sc.IsValid() {
		return nil // what an activity starts belongs to no run
	}
	return setHeader(writer, lineage{Trace: sc.TraceID(), Flags: sc.TraceFlags(), Parent: sc.SpanID()})
}

// InjectFromWorkflow adds the lineage of a run to what it starts.
func (propagator) InjectFromWorkflow(ctx workflow.Context, writer workflow.HeaderWriter) error {
	l, ok := ctx.Value(lineageKey{}).(lineage)
	if !ok {
		return nil
	}
	return setHeader(writer, l)
}

func setHeader(writer workflow.HeaderWriter, l lineage) error {
	payload, err := l.toPayload()
	if err != nil {
		return err
	}
	writer.Set(lineageHeader, payload)
	return nil
}

// Extract reads a lineage for an activity.
func (propagator) Extract(ctx context.Context, reader workflow.HeaderReader) (context.Context, error) {
	if payload, found := reader.Get(lineageHeader); found {
		if l, ok := lineageOf(payload); ok {
			return context.WithValue(ctx, lineageKey{}, l), nil
		}
	}
	return ctx, nil
}

// ExtractToWorkflow reads a lineage for a workflow.
func (propagator) ExtractToWorkflow(ctx workflow.Context, reader workflow.HeaderReader) (workflow.Context, error) {
	if payload, found := reader.Get(lineageHeader); found {
		if l, ok := lineageOf(payload); ok {
			return workflow.WithValue(ctx, lineageKey{}, l), nil
		}
	}
	return ctx, nil
}
