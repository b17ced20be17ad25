package gate

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
)

// Metrics counts what a workflow does, with the handler of the SDK, which counts
// nothing while the workflow replays.
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

// Mark sets a gauge to a time, in seconds since 1970, so that a dashboard can show how long ago
// it was.
func (of Metrics) Mark(m *meter.Metric, at time.Time, values ...string) {
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

// SpanRecorder records the spans of a run as they end, also when they are replayed.
type SpanRecorder interface {
	Ended(ctx workflow.Context, span meter.Span)
}

type spansKey struct{}

// WithSpans sets the recorder of spans for a context.
func WithSpans(ctx workflow.Context, spans SpanRecorder) workflow.Context {
	return workflow.WithValue(ctx, spansKey{}, spans)
}

// Emit passes a span to the context's recorder, if it has one.
func Emit(ctx workflow.Context, span meter.Span) {
	if spans, ok := ctx.Value(spansKey{}).(SpanRecorder); ok {
		spans.Ended(ctx, span)
	}
}

type seriesKey struct{}

// WithSeries sets the recorder of Series for a context.
func WithSeries(ctx workflow.Context, to meter.Recorder) workflow.Context {
	return workflow.WithValue(ctx, seriesKey{}, to)
}

// Series is where series begin as 0, also in a replay: each worker exports those of what it sees. It does
// nothing where nobody counts.
func Series(ctx workflow.Context) meter.Recorder {
	if to, ok := ctx.Value(seriesKey{}).(meter.Recorder); ok {
		return to
	}
	return noSeries{}
}

type noSeries struct{}

func (noSeries) Add(*meter.Metric, int64, ...string)             {}
func (noSeries) Observe(*meter.Metric, time.Duration, ...string) {}
