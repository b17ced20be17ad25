package telemetry

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"reprise/internal/base/meter"
	"reprise/interpreter/lists"
)

// handler is the metrics handler of the SDK, and so of workflow code: metrics defined by package meter go to the
// recorder, with only their own labels, everything else to the SDK's handler.
type handler struct {
	recorder *recorder
	tagged   *handlerCache
	tags     map[string]string
	base     func() *instruments // of the tags; found when it is needed
}

// metricsHandler returns a handler without tags.
func (t *Telemetry) metricsHandler() client.MetricsHandler {
	base := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: t.meters.Meter("temporal-sdk-go"), UseMonotonicCounters: true,
		OnError: func(err error) { t.logger.Warn("a metric of Temporal's SDK is not counted", "error", err) },
	})
	known, _ := lru.New[string, *instruments](maxTagged) // of more than none
	h := &handler{recorder: t.recorder, tagged: &handlerCache{root: base, byTags: known}}
	return h.WithTags(nil)
}

// WithTags returns a handler with additional labels.
func (h *handler) WithTags(tags map[string]string) client.MetricsHandler {
	all := make(map[string]string, len(h.tags)+len(tags))
	maps.Copy(all, h.tags)
	maps.Copy(all, tags)
	return &handler{recorder: h.recorder, tagged: h.tagged, tags: all, base: sync.OnceValue(func() *instruments {
		labels := slices.Sorted(maps.Keys(all))
		values := lists.Map(labels, func(label string) string { return all[label] })
		return h.tagged.instrumentsOf(labels, h.recorder.names.boundValues(labels, values))
	})}
}

// maxTagged bounds how many combinations of tags are cached: Temporal's SDK adds names of workflows and activities,
// which others choose.
const maxTagged = 5000

// handlerCache caches the SDK's handlers by tags: the SDK requests them with every task, and creating one takes
// longer than counting.
type handlerCache struct {
	root   client.MetricsHandler
	byTags *lru.Cache[string, *instruments]
}

// instrumentsOf returns the instruments for the given tags.
func (t *handlerCache) instrumentsOf(labels, values []string) *instruments {
	key := strings.Join(labels, "\x00") + "\x01" + strings.Join(values, "\x00")
	if found, ok := t.byTags.Get(key); ok {
		return found
	}
	tags := make(map[string]string, len(labels))
	for i, label := range labels {
		tags[label] = values[i]
	}
	made := &instruments{handler: t.root.WithTags(tags)}
	t.byTags.Add(key, made)
	return made
}

// instruments are the instruments of an SDK handler, by name.
type instruments struct {
	handler                  client.MetricsHandler
	counters, gauges, timers sync.Map
}

// instrumentNamed returns the instrument with a name, created on first use.
func instrumentNamed[T any](all *sync.Map, name string, create func(string) T) T {
	found, ok := all.Load(name)
	if !ok {
		found, _ = all.LoadOrStore(name, create(name))
	}
	instrument, _ := found.(T) // nothing else is put in
	return instrument
}

// ownMetric returns the metric with a name and the values of its labels; nil if it is not one of ours.
func (h *handler) ownMetric(name string) (*meter.Metric, []string) {
	found, ok := h.recorder.byName[name]
	if !ok {
		return nil, nil
	}
	values := lists.Map(found.metric.Labels, func(label string) string { return h.tags[label] })
	return found.metric, values
}

type counterFunc func(int64)

// Inc adds n.
func (f counterFunc) Inc(n int64) { f(n) }

type timerFunc func(time.Duration)

// Record records a duration.
func (f timerFunc) Record(took time.Duration) { f(took) }

// Counter returns the counter with a name.
func (h *handler) Counter(name string) client.MetricsCounter {
	if m, values := h.ownMetric(name); m != nil {
		return counterFunc(func(n int64) { h.recorder.Add(m, n, values...) })
	}
	return instrumentNamed(&h.base().counters, name, h.base().handler.Counter)
}

type gaugeFunc func(float64)

// Update sets the value.
func (f gaugeFunc) Update(value float64) { f(value) }

// Gauge returns the gauge with a name. The gauge of watermarks shows the age of the time that it is set to.
func (h *handler) Gauge(name string) client.MetricsGauge {
	if m, values := h.ownMetric(name); m == meter.WatermarkAge {
		return gaugeFunc(func(seconds float64) {
			whole, part := math.Modf(seconds)
			h.recorder.Age(m, time.Unix(int64(whole), int64(part*float64(time.Second))), time.Now(), values...)
		})
	}
	return instrumentNamed(&h.base().gauges, name, h.base().handler.Gauge)
}

// Timer returns the histogram with a name.
func (h *handler) Timer(name string) client.MetricsTimer {
	if m, values := h.ownMetric(name); m != nil {
		return timerFunc(func(took time.Duration) { h.recorder.Observe(m, took, values...) })
	}
	return instrumentNamed(&h.base().timers, name, h.base().handler.Timer)
}
