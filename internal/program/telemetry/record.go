package telemetry

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// instrument is the instrument of a metric.
type instrument struct {
	metric    *meter.Metric
	counter   adder
	histogram metric.Float64Histogram
}

// adder is a counter, or a gauge that can be increased and decreased.
type adder interface {
	Add(ctx context.Context, n int64, options ...metric.AddOption)
}

// recorder records the metrics that package meter defines.
type recorder struct {
	meter  metric.Meter
	byName map[string]instrument
	names  names
	// sets caches attributes by metric and label values; cached is the number of entries, at most about maxSeries.
	sets     sync.Map
	cached   atomic.Int64
	readings map[*meter.Metric]*readings
}

// newRecorder creates the instruments of all metrics.
func newRecorder(from metric.Meter) (*recorder, error) {
	r := &recorder{meter: from, byName: map[string]instrument{}, readings: map[*meter.Metric]*readings{}}
	for _, m := range meter.ReadingMetrics() {
		r.byName[m.Name], r.readings[m] = instrument{metric: m}, &readings{}
		if err := r.readings[m].observe(from, m); err != nil {
			return nil, err
		}
	}
	for _, m := range meter.AllMetrics() {
		made := instrument{metric: m}
		var err error
		switch {
		case m == meter.Loads || m == meter.Evaluations || r.readings[m] != nil:
			continue // observed
		case m.Kind == meter.Histogram:
			made.histogram, err = from.Float64Histogram(m.Name, metric.WithUnit("s"), metric.WithDescription(m.Help))
		case m.Kind == meter.Gauge:
			made.counter, err = from.Int64UpDownCounter(m.Name, metric.WithDescription(m.Help))
		default:
			made.counter, err = from.Int64Counter(m.Name, metric.WithDescription(m.Help))
		}
		if err != nil {
			return nil, err
		}
		r.byName[m.Name] = made
	}
	return r, r.observeInterpreter()
}

// observeInterpreter registers the interpreter's figures, which are read when they are collected.
func (r *recorder) observeInterpreter() error {
	loads, err := r.meter.Int64ObservableCounter(meter.Loads.Name, metric.WithDescription(meter.Loads.Help))
	if err != nil {
		return err
	}
	evaluations, err := r.meter.Int64ObservableCounter(meter.Evaluations.Name, metric.WithDescription(meter.Evaluations.Help))
	if err != nil {
		return err
	}
	_, err = r.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		cached, compiled := interpreter.LoadCounts()
		o.ObserveInt64(loads, cached, metric.WithAttributes(attribute.String(meter.LabelResult, "cached")))
		o.ObserveInt64(loads, compiled, metric.WithAttributes(attribute.String(meter.LabelResult, "compiled")))
		o.ObserveInt64(evaluations, expression.EvaluationCount())
		return nil
	}, loads, evaluations)
	return err
}

// Add adds n.
func (r *recorder) Add(m *meter.Metric, n int64, values ...string) {
	r.byName[m.Name].counter.Add(context.Background(), n, r.attributesOf(m, values))
}

// Observe records a duration.
func (r *recorder) Observe(m *meter.Metric, took time.Duration, values ...string) {
	r.byName[m.Name].histogram.Record(context.Background(), max(took, 0).Seconds(), r.attributesOf(m, values))
}

func (r *recorder) attributesOf(m *meter.Metric, values []string) metric.MeasurementOption {
	values = r.names.boundValues(m.Labels, values)
	key := m.Name + "\x00" + strings.Join(values, "\x00")
	if found, ok := r.sets.Load(key); ok {
		return found.(metric.MeasurementOption) // nothing else is put in
	}
	all := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		all[i] = attribute.String(m.Labels[i], value)
	}
	set := metric.WithAttributeSet(attribute.NewSet(all...))
	if r.cached.Add(1) <= maxSeries {
		r.sets.Store(key, set)
	}
	return set
}

// Other replaces the values of a label beyond its limit.
const Other = "other"

// Limits on the values of a label that a process distinguishes. The first values are kept.
const (
	// MaxPlaybooks bounds the playbooks that a label distinguishes in one process; others are counted as Other.
	// Without it, each name would be another series in Prometheus for the life of the process.
	MaxPlaybooks = 100
	// MaxSteps bounds the steps that a label distinguishes, for all playbooks together.
	MaxSteps = 500
	// maxValues bounds the values of any other label that a process distinguishes.
	maxValues = 100
)

// maxName bounds a label's value, in characters: outsiders may choose it, and each scrape includes it. Names of
// playbooks have the same limit.
const maxName = 64

// names bounds the values of labels. The zero value is ready for use; it is safe for concurrent use.
type names struct {
	mu    sync.RWMutex
	known map[string]map[string]bool // by label
}

// boundValues replaces values beyond the limits by Other. If a step or its playbook is replaced, the step is Other
// too.
func (n *names) boundValues(labels, values []string) []string {
	values = slices.Clone(values)
	playbookAt := slices.Index(labels, meter.LabelPlaybook)
	for i, label := range labels {
		value := shortenName(values[i])
		switch {
		case label == meter.LabelPlaybook && !n.hasPlace(label, value, MaxPlaybooks):
			value = Other
		case label == meter.LabelStep && playbookAt >= 0 &&
			(values[playbookAt] == Other || !n.hasPlace(label, values[playbookAt]+"\x00"+value, MaxSteps)):
			value = Other
		case label != meter.LabelPlaybook && label != meter.LabelStep && !n.hasPlace(label, value, maxValues):
			value = Other
		}
		values[i] = value
	}
	return values
}

// hasPlace reports whether a value is within the limit, and adds it if there is room.
func (n *names) hasPlace(label, value string, most int) bool {
	n.mu.RLock()
	found := n.known[label][value]
	n.mu.RUnlock()
	if found {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]map[string]bool{}
	}
	if n.known[label] == nil {
		n.known[label] = map[string]bool{}
	}
	if len(n.known[label]) >= most && !n.known[label][value] {
		return false
	}
	n.known[label][value] = true
	return true
}

// shortenName cuts a value to the length of a name.
func shortenName(value string) string {
	value = strings.ToValidUTF8(value, "")
	if runes := []rune(value); len(runes) > maxName {
		return string(runes[:maxName])
	}
	return value
}
