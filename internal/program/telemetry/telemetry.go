// Package telemetry exports what workflows and activities record as metrics and traces: for Prometheus at an address,
// and by OTLP if OpenTelemetry's variables name a collector. Without either, Telemetry is nil, which records nothing
// at no cost.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"reprise/internal/base/secrets"
)

// Options configure a Telemetry.
type Options struct {
	// Service is service.name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES set another.
	Service string
	Version string
	// MetricsAddress is host:port of the endpoint for Prometheus; "" for none.
	MetricsAddress string
	// TraceHeaders adds the trace to the headers of the http tool's requests.
	TraceHeaders bool
	Logger       *slog.Logger // nil discards
	// Secrets are masked in spans; nil masks nothing.
	Secrets *secrets.Masker
}

const (
	// maxSeries bounds the combinations of a metric's labels. It is more than the limits of the labels allow, and
	// keeps a label without a limit from filling the memory.
	maxSeries = 10_000
	// closeTimeout bounds how long the last export may take.
	closeTimeout = 5 * time.Second
)

// bounds are the bucket boundaries of all histograms, in seconds.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}

// Telemetry records metrics and traces. It is safe for concurrent use.
type Telemetry struct {
	meters   *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider // nil where nothing is traced
	tracer   trace.Tracer
	recorder *recorder
	listener net.Listener // of the endpoint, nil for none
	server   *http.Server
	headers  bool
	secrets  *secrets.Masker
	logger   *slog.Logger
}

// New returns the telemetry that options and environment configure; nil if they configure none. The error names the
// invalid setting.
func New(ctx context.Context, options Options) (*Telemetry, error) {
	sends, err := fromEnvironment(options.Secrets)
	if err != nil {
		return nil, err
	}
	logger := cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	if sends.disabled {
		if options.MetricsAddress != "" {
			logger.Warn("there are no metrics, for OTEL_SDK_DISABLED is true", "address", options.MetricsAddress)
		}
		return nil, nil
	}
	if options.MetricsAddress == "" && !sends.metrics && !sends.traces {
		return nil, nil
	}
	t := &Telemetry{headers: options.TraceHeaders, secrets: options.Secrets, logger: logger}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", options.Service), attribute.String("service.version", options.Version),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if err := t.startMeter(ctx, options.MetricsAddress, sends.metrics, about); err != nil {
		t.Close()
		return nil, err
	}
	if sends.traces {
		if err := t.startTracer(ctx, about); err != nil {
			t.Close()
			return nil, err
		}
	}
	if sends.metrics || sends.traces { // the SDK has one handler for all that cannot be sent
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			logger.Warn("telemetry was not sent", "error", t.maskText(err.Error()))
		}))
	}
	return t, nil
}

// startMeter starts recording metrics.
func (t *Telemetry) startMeter(ctx context.Context, address string, sent bool, about *resource.Resource) error {
	options := []sdkmetric.Option{
		sdkmetric.WithResource(about), sdkmetric.WithCardinalityLimit(maxSeries),
		sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: "*", Kind: sdkmetric.InstrumentKindHistogram},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: bounds}},
		)),
	}
	if address != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
		if err != nil {
			return fmt.Errorf("make the metrics for Prometheus: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
		if err := t.listenPrometheus(ctx, address, registry); err != nil {
			return err
		}
	}
	if sent {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return fmt.Errorf("send metrics by OTLP: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	t.meters = sdkmetric.NewMeterProvider(options...)
	var err error
	t.recorder, err = newRecorder(t.meters.Meter("reprise"))
	return err
}

// listenPrometheus opens the endpoint for Prometheus.
func (t *Telemetry) listenPrometheus(ctx context.Context, address string, registry *prometheus.Registry) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("open the metrics address %q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	t.listener = listener
	t.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := t.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.logger.Error("the metrics address is closed", "error", err)
		}
	}()
	return nil
}

// startTracer starts recording traces.
func (t *Telemetry) startTracer(ctx context.Context, about *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return fmt.Errorf("send traces by OTLP: %w", err)
	}
	t.traces = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(about), sdktrace.WithIDGenerator(idGenerator{}))
	t.tracer = t.traces.Tracer("reprise")
	return nil
}

// URL returns the URL for Prometheus; "" without an endpoint.
func (t *Telemetry) URL() string {
	if t == nil || t.listener == nil {
		return ""
	}
	return "http://" + t.listener.Addr().String() + "/metrics"
}

// Close exports what has been recorded and stops. It takes at most a few seconds.
func (t *Telemetry) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.Shutdown(ctx))
	}
	if t.server != nil {
		errs = append(errs, t.server.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.logger.Warn("telemetry was not sent", "error", t.maskText(err.Error()))
	}
}

// maskText masks secrets.
func (t *Telemetry) maskText(text string) string {
	if t.secrets == nil {
		return text
	}
	return t.secrets.MaskText(text)
}
