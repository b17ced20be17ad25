package gate

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
)

// Metrics counts what a workflow does, with the SDK's metrics handler, which does nothing during a replay.
type Metrics struct{ ctx workflow.Context }

// MetricsOf returns the metrics of a workflow.
func MetricsOf(ctx workflow.Context) Metrics { return Metrics{ctx} }

// Add adds n to a counter. values are the values of its labels, in the order in which it
// declares them.
func (of Metrics) Add(m *meter.Metric, n int64, values ...string) {
	workflow.GetMetricsHandler(of.ctx).WithTags(metricTags(m, values)).Counter(m.Name).Inc(n)
}

// Observe adds a duration to a histogram.
func (of Metrics) Observe(m *meter.Metric, took time.Duration, values ...string) {
	workflow.GetMetricsHandler(of.ctx).WithTags(metricTags(m, values)).Timer(m.Name).Record(took)
}

// MarkTime sets a gauge to a time, in seconds since 1970, so that a dashboard can show how long ago
// it was.
func (of Metrics) MarkTime(m *meter.Metric, at time.Time, values ...string) {
	seconds := float64(at.Unix()) + float64(at.Nanosecond())/float64(time.Second)
	workflow.GetMetricsHandler(of.ctx).WithTags(metricTags(m, values)).Gauge(m.Name).Update(seconds)
}

func metricTags(m *meter.Metric, values []string) map[string]string {
	all := make(map[string]string, len(values))
	for i, label := range m.Labels {
		all[label] = values[i]
	}
	return all
}

// SpanRecorder receives the spans of a run as they end, including during a replay.
type SpanRecorder interface {
	Ended(ctx workflow.Context, span meter.Span)
}

type spansKey struct{}

// WithSpans adds a recorder of spans to the context.
func WithSpans(ctx workflow.Context, spans SpanRecorder) workflow.Context {
	return workflow.WithValue(ctx, spansKey{}, spans)
}

// EmitSpan passes a span to the context's recorder, if it has one.
func EmitSpan(ctx workflow.Context, span meter.Span) {
	if spans, ok := ctx.Value(spansKey{}).(SpanRecorder); ok {
		spans.Ended(ctx, span)
	}
}

type seriesKey struct{}

// WithSeries adds the recorder for SeriesRecorder to the context.
func WithSeries(ctx workflow.Context, to meter.Recorder) workflow.Context {
	return workflow.WithValue(ctx, seriesKey{}, to)
}

// SeriesRecorder returns the recorder with which series are created with the value 0, even in a replay: each worker exports
// the series that it has seen. Without WithSeries it does nothing.
func SeriesRecorder(ctx workflow.Context) meter.Recorder {
	if to, ok := ctx.Value(seriesKey{}).(meter.Recorder); ok {
		return to
	}
	return noSeries{}
}

type noSeries struct{}

func (noSeries) Add(*meter.Metric, int64, ...string)             {}
func (noSeries) Observe(*meter.Metric, time.Duration, ...string) {}
