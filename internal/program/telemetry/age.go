package telemetry

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"reprise/internal/base/meter"
)

// ages are times of which a gauge shows how long ago they are, whenever it is read. The zero value
// is ready.
type ages struct {
	mu   sync.Mutex
	seen map[string]age // by the values of the labels
}

type age struct {
	attributes metric.MeasurementOption
	since      time.Time
}

// observe has a gauge of that name show the ages.
func (a *ages) observe(from metric.Meter, m *meter.Metric) error {
	gauge, err := from.Float64ObservableGauge(m.Name, metric.WithUnit("s"), metric.WithDescription(m.Help))
	if err != nil {
		return err
	}
	_, err = from.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, one := range a.seen {
			o.ObserveFloat64(gauge, max(time.Since(one.since), 0).Seconds(), one.attributes)
		}
		return nil
	}, gauge)
	return err
}

func (a *ages) put(key string, one age) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[string]age{}
	}
	a.seen[key] = one
}

// Mark records a time, in seconds since 1970, whose age a gauge shows. One of a playbook or a step
// that is not distinguished says nothing.
func (r *recorder) Mark(m *meter.Metric, seconds float64, values ...string) {
	bounded := r.names.bounded(m.Labels, values)
	if slices.Contains(bounded, Other) {
		return
	}
	whole, part := math.Modf(seconds)
	since := time.Unix(int64(whole), int64(part*float64(time.Second)))
	r.ages.put(strings.Join(bounded, "\x00"), age{r.attributes(m, values), since})
}
