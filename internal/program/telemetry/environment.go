package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"reprise/internal/base/secrets"
)

// sending is the configuration from OpenTelemetry's environment variables.
type sending struct {
	disabled        bool
	metrics, traces bool
}

// fromEnvironment reads the variables. The exporters read others themselves.
func fromEnvironment(known *secrets.Masker) (sending, error) {
	var s sending
	s.disabled, _ = strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")) // what is no boolean is false
	if s.disabled {
		return s, nil
	}
	var err error
	if s.metrics, err = isWanted("METRICS"); err != nil {
		return s, err
	}
	if s.traces, err = isWanted("TRACES"); err != nil {
		return s, err
	}
	if known != nil {
		for _, variable := range []string{
			"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		} {
			known.Add(headerValues(os.Getenv(variable))...)
		}
	}
	return s, nil
}

// TraceHeaders returns Options.TraceHeaders from REPRISE_TRACE_HEADERS: true if it is not set, false if it is not a
// boolean.
func TraceHeaders() bool {
	value := os.Getenv("REPRISE_TRACE_HEADERS")
	on, err := strconv.ParseBool(value)
	return value == "" || err == nil && on
}

// isWanted reports whether a signal is exported: if its endpoint, or the endpoint for all signals, is set.
func isWanted(signal string) (bool, error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch value := os.Getenv(exporter); value {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("%s is %q, expected otlp or none; for Prometheus give --metrics-address", exporter, value)
	}
	if endpoint == "" {
		return false, nil
	}
	if parsed, err := url.Parse(endpoint); err != nil || parsed.Host == "" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT and that of %s must be the URL of a collector, such as http://localhost:4318",
			strings.ToLower(signal))
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, expected http/protobuf, which collectors take at port 4318", protocol)
	}
	return true, nil
}

// headerValues returns the values of a list such as api-key=VALUE,other=VALUE.
func headerValues(list string) []string {
	var values []string
	for pair := range strings.SplitSeq(list, ",") {
		_, value, _ := strings.Cut(pair, "=")
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		values = append(values, value)
		if decoded, err := url.PathUnescape(value); err == nil && decoded != value {
			values = append(values, decoded)
		}
	}
	return values
}
