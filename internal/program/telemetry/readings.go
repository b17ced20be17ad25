package telemetry

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"reprise/internal/base/meter"
)

// readings are the current values of one metric. The zero value is ready for use.
type readings struct {
	mu   sync.Mutex
	seen map[string]reading // by the values of the labels
}

// reading is a value, or a time whose age is shown.
type reading struct {
	attributes  metric.MeasurementOption
	value       float64
	since, asOf time.Time // zero for a value
}

// observe registers a gauge that shows the readings of a metric.
func (s *readings) observe(from metric.Meter, m *meter.Metric) error {
	gauge, err := from.Float64ObservableGauge(m.Name, metric.WithDescription(m.Help))
	if err != nil {
		return err
	}
	_, err = from.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.seen {
			value := one.value
			if !one.since.IsZero() {
				value = max(time.Since(one.since), 0).Seconds()
			}
			o.ObserveFloat64(gauge, value, one.attributes)
		}
		return nil
	}, gauge)
	return err
}

func (s *readings) put(key string, one reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]reading{}
	}
	if !one.asOf.Before(s.seen[key].asOf) {
		s.seen[key] = one
	}
}

func (s *readings) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}

// Set implements meter.Gauges.
func (r *recorder) Set(m *meter.Metric, value float64, values ...string) {
	r.read(m, reading{value: value}, values)
}

// Age implements meter.Gauges.
func (r *recorder) Age(m *meter.Metric, since, asOf time.Time, values ...string) {
	r.read(m, reading{since: since, asOf: asOf}, values)
}

// Clear implements meter.Gauges.
func (r *recorder) Clear(m *meter.Metric, values ...string) {
	r.readings[m].remove(strings.Join(r.names.boundValues(m.Labels, values), "\x00"))
}

// read sets a reading. It is dropped if its playbook or step is counted as Other, whose readings would be
// meaningless.
func (r *recorder) read(m *meter.Metric, one reading, values []string) {
	bounded := r.names.boundValues(m.Labels, values)
	if slices.Contains(bounded, Other) {
		return
	}
	one.attributes = r.attributesOf(m, values)
	r.readings[m].put(strings.Join(bounded, "\x00"), one)
}

// Gauges returns the receiver of this process's readings; nil if t is nil.
func (t *Telemetry) Gauges() meter.Gauges {
	if t == nil {
		return nil
	}
	return t.recorder
}
