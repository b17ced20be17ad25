package telemetry_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/internal/program/telemetry"
	"reprise/internal/test/testenv"
)

func newTelemetry(t *testing.T, options telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	if options.MetricsAddress == "" {
		options.MetricsAddress = "127.0.0.1:0"
	}
	watched, err := telemetry.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(watched.Close)
	return watched
}

func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := textParser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

// countAll counts everything that there is once.
func countAll(watched *telemetry.Telemetry, value func(label string) string) {
	to := watched.AttemptRecorder()
	for _, m := range meter.AllMetrics() {
		values := make([]string, len(m.Labels))
		for i, label := range m.Labels {
			values[i] = value(label)
		}
		switch {
		case m == meter.Loads || m == meter.Evaluations: // counted by the interpreter
		case m == meter.WatermarkAge: // workflows report it, too
			tags := map[string]string{}
			for i, label := range m.Labels {
				tags[label] = values[i]
			}
			watched.ClientOptions(client.Options{}).MetricsHandler.WithTags(tags).Gauge(m.Name).Update(1)
		case slices.Contains(meter.ReadingMetrics(), m):
			watched.Gauges().Set(m, 1, values...)
		case m.Kind == meter.Histogram:
			to.Observe(m, time.Second, values...)
		default:
			to.Add(m, 1, values...)
		}
	}
}

// scrapedLabels are the labels of each series at the address of a worker that has
// counted everything.
func scrapedLabels(t *testing.T) map[string][]string {
	t.Helper()
	watched := newTelemetry(t, telemetry.Options{})
	countAll(watched, func(label string) string { return "a " + label })
	// As Temporal's SDK does; the tests of internal/test/e2e and of the worker see that it has them.
	sdk := watched.ClientOptions(client.Options{}).MetricsHandler
	sdk.WithTags(map[string]string{"worker_type": "ActivityWorker"}).Gauge("temporal_worker_task_slots_available").Update(1)
	found := map[string][]string{"up": {"instance", "job"}} // which Prometheus itself makes
	for name, family := range scrape(t, watched.URL()) {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			found[name+"_sum"], found[name+"_count"], found[name+"_bucket"] = labels, labels, append(labels, "le")
			continue
		}
		found[name] = labels
	}
	return found
}

// TestNamesAreAsDeclared: Prometheus sees each metric under its own name, with its
// labels and no others.
func TestNamesAreAsDeclared(t *testing.T) {
	t.Parallel()
	labels := scrapedLabels(t)
	for _, m := range meter.AllMetrics() {
		name := m.Name
		if m.Kind == meter.Histogram {
			name += "_count"
		}
		require.Contains(t, labels, name)
		require.ElementsMatch(t, m.Labels, labels[name], m.Name)
	}
	for name := range labels {
		if strings.HasPrefix(name, "reprise_") {
			require.True(t, slices.ContainsFunc(meter.AllMetrics(), func(m *meter.Metric) bool { return strings.HasPrefix(name, m.Name) }), name)
		}
	}
}

// TestCardinality: however many names and other values come, the series are
// bounded, and nothing is lost.
// It passes maxValues and maxName.
func TestCardinality(t *testing.T) {
	t.Parallel()
	watched := newTelemetry(t, telemetry.Options{})
	to := watched.AttemptRecorder()
	const playbooks, steps = 1000, 20
	for i := range playbooks {
		for j := range steps {
			to.Add(meter.Pages, 1, fmt.Sprint("book", i), fmt.Sprint("step", j), "http")
		}
	}
	for i := range 1000 {
		to.Add(meter.DeadLetters, 1, "book0", "step0", fmt.Sprint("kind", i), strings.Repeat("long", 1000))
	}
	handler := watched.ClientOptions(client.Options{}).MetricsHandler
	for i := range 1000 {
		handler.WithTags(map[string]string{"workflow_type": fmt.Sprint("type", i)}).Counter("temporal_of_test").Inc(1)
		handler.WithTags(map[string]string{"playbook": fmt.Sprint("late", i), "status": "completed", "task_queue": fmt.Sprint(i)}).
			Counter(meter.Runs.Name).Inc(1)
	}
	families := scrape(t, watched.URL())
	pages := families[meter.Pages.Name].GetMetric()
	seen, sum := map[string]bool{}, 0.0
	for _, metric := range pages {
		for _, label := range metric.GetLabel() {
			if label.GetName() == meter.LabelPlaybook {
				seen[label.GetValue()] = true
			}
		}
		sum += metric.GetCounter().GetValue()
	}
	require.Equal(t, float64(playbooks*steps), sum)
	require.True(t, seen[telemetry.Other])
	require.LessOrEqual(t, len(seen), telemetry.MaxPlaybooks+1)
	require.LessOrEqual(t, len(pages), telemetry.MaxSteps+telemetry.MaxPlaybooks+1)
	require.LessOrEqual(t, len(families[meter.DeadLetters.Name].GetMetric()), 101)
	require.LessOrEqual(t, len(families["temporal_of_test_total"].GetMetric()), 101)
	runs := families[meter.Runs.Name].GetMetric()
	require.Len(t, runs, 1, "there is no room for more playbooks")
	require.Equal(t, 1000.0, runs[0].GetCounter().GetValue())
	for _, label := range families[meter.DeadLetters.Name].GetMetric()[0].GetLabel() {
		require.LessOrEqual(t, len(label.GetValue()), 64)
	}
}

// TestSeriesAreBounded passes maxSeries: what comes beyond them is counted together.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	const maxSeries, playbooks, steps, tools = 10_000, 15, 15, 60
	watched := newTelemetry(t, telemetry.Options{})
	to := watched.AttemptRecorder()
	for i := range playbooks * steps * tools {
		to.Add(meter.Pages, 1, fmt.Sprint("book", i%playbooks), fmt.Sprint("step", i/playbooks%steps), fmt.Sprint("tool", i/playbooks/steps))
	}
	sum, pages := 0.0, scrape(t, watched.URL())[meter.Pages.Name].GetMetric()
	for _, metric := range pages {
		sum += metric.GetCounter().GetValue()
	}
	require.Len(t, pages, maxSeries)
	require.Equal(t, float64(playbooks*steps*tools), sum)
}

// TestWatermarkAge: the age of a watermark grows until it is moved, never is below zero, and is said
// of no playbook for which there is no room.
func TestWatermarkAge(t *testing.T) {
	t.Parallel()
	watched := newTelemetry(t, telemetry.Options{})
	mark := func(playbook, step string, at time.Time) {
		watched.ClientOptions(client.Options{}).MetricsHandler.WithTags(map[string]string{"playbook": playbook, "step": step, "workflow_type": "any"}).
			Gauge(meter.WatermarkAge.Name).Update(float64(at.UnixMicro()) / 1e6)
	}
	ages := func() map[string]float64 {
		found := map[string]float64{}
		for _, metric := range scrape(t, watched.URL())[meter.WatermarkAge.Name].GetMetric() {
			require.Len(t, metric.GetLabel(), 2)
			found[metric.GetLabel()[0].GetValue()+"/"+metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
		}
		return found
	}
	began := time.Now()
	mark("load", "orders", began.Add(-time.Hour))
	mark("load", "shops", began.Add(time.Hour))
	first := ages()
	require.Len(t, first, 2)
	require.GreaterOrEqual(t, first["load/orders"], 3600-1e-3)
	require.LessOrEqual(t, first["load/orders"], 3600+time.Since(began).Seconds()+1e-3)
	require.Zero(t, first["load/shops"])
	require.Eventually(t, func() bool { return ages()["load/orders"] > first["load/orders"] }, testenv.Within(10*time.Second), time.Millisecond)
	mark("load", "orders", time.Now())
	require.Less(t, ages()["load/orders"], 3600.0)
	for i := range 2 * telemetry.MaxPlaybooks {
		mark(fmt.Sprint("book", i), "step", began)
	}
	found := ages()
	require.LessOrEqual(t, len(found), telemetry.MaxPlaybooks+1)
	require.NotContains(t, found, telemetry.Other+"/"+telemetry.Other)
}

// TestNothingUnlessConfigured: without an address and without a collector there is no
// telemetry, and none of it does anything.
func TestNothingUnlessConfigured(t *testing.T) {
	watched, err := telemetry.New(t.Context(), telemetry.Options{Service: "test"})
	require.NoError(t, err)
	require.Nil(t, watched)
	require.Nil(t, watched.AttemptRecorder())
	require.Empty(t, watched.Interceptors())
	require.Empty(t, watched.URL())
	require.Nil(t, watched.ClientOptions(client.Options{}).MetricsHandler)
	watched.CountOperations(nil)
	_, end := watched.BeginSpan(t.Context(), "command")
	end(nil)
	watched.Close()
}

// TestSettings that turn telemetry off, or cannot be.
func TestSettings(t *testing.T) {
	var log bytes.Buffer
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	watched, err := telemetry.New(t.Context(), telemetry.Options{
		MetricsAddress: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.Nil(t, watched)
	require.Contains(t, log.String(), "OTEL_SDK_DISABLED is true")
	t.Setenv("OTEL_SDK_DISABLED", "")
	for name, row := range map[string]struct{ variable, value, want string }{
		"protocol": {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", expected http/protobuf`},
		"exporter": {"OTEL_METRICS_EXPORTER", "prometheus", `OTEL_METRICS_EXPORTER is "prometheus", expected otlp or none`},
		"endpoint": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318", "the URL of a collector, such as http://localhost:4318"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(row.variable, row.value)
			_, err := telemetry.New(t.Context(), telemetry.Options{})
			require.ErrorContains(t, err, row.want)
		})
	}
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	watched, err = telemetry.New(t.Context(), telemetry.Options{})
	require.NoError(t, err)
	require.Nil(t, watched)
}

// TestPayloadStore: what is written is counted, and what cannot be.
func TestPayloadStore(t *testing.T) {
	t.Parallel()
	watched := newTelemetry(t, telemetry.Options{})
	address, err := payload.DirectoryAddress(t.TempDir())
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	watched.CountOperations(store)
	value := &commonpb.Payload{Data: make([]byte, payload.Threshold)}
	require.NoError(t, store.Write(t.Context(), value))
	require.NoError(t, store.Write(t.Context(), value), "it is there: nothing is written")
	require.NoError(t, store.Close())
	value.Data[0] = 1
	require.Error(t, store.Write(t.Context(), value))
	want := float64(proto.Size(value))
	families := scrape(t, watched.URL())
	for _, metric := range families[meter.StoreBytes.Name].GetMetric() {
		require.Equal(t, want, metric.GetCounter().GetValue(), "%s", metric)
	}
	results := map[string]uint64{}
	for _, metric := range families[meter.StoreTime.Name].GetMetric() {
		results[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetHistogram().GetSampleCount()
	}
	require.Equal(t, map[string]uint64{"write ok": 1, "write error": 1}, results)
}

// TestAddress: one that is taken is an error that names it, and the endpoint
// answers nothing but GET /metrics.
func TestAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = telemetry.New(t.Context(), telemetry.Options{MetricsAddress: taken.Addr().String()})
	require.ErrorContains(t, err, "open the metrics address "+fmt.Sprintf("%q", taken.Addr().String()))
	watched := newTelemetry(t, telemetry.Options{})
	for path, method := range map[string]string{"/metrics": http.MethodPost, "/": http.MethodGet, "/debug/pprof/": http.MethodGet} {
		request, err := http.NewRequest(method, strings.TrimSuffix(watched.URL(), "/metrics")+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		require.NoError(t, response.Body.Close())
		require.GreaterOrEqual(t, response.StatusCode, 400, path)
	}
	families := scrape(t, watched.URL())
	require.Contains(t, families, "go_goroutines")
	require.Contains(t, families, "process_cpu_seconds_total")
}
