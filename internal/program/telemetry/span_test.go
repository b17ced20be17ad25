package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/meter"
	"reprise/internal/base/secrets"
	"reprise/internal/program/telemetry"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// collected are the spans that arrive at the endpoint of the environment.
func collected(t *testing.T) func() []*otlp.Span {
	t.Helper()
	var mu sync.Mutex
	var spans []*otlp.Span
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err != nil || proto.Unmarshal(body, &request) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				spans = append(spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL+"/v1/traces")
	return func() []*otlp.Span {
		mu.Lock()
		defer mu.Unlock()
		return spans
	}
}

func attemptInput() interpreter.ToolInput {
	return interpreter.ToolInput{Tool: "http", Playbook: "book", Step: "fetch", Visit: 1, Page: 2, Attempt: 3}
}

// TestErrorsOfSpansAreMasked, and cut.
func TestErrorsOfSpansAreMasked(t *testing.T) {
	spans := collected(t)
	known := &secrets.Masker{}
	known.Add("bearer:s3cr3t-t0ken")
	watched, err := telemetry.New(t.Context(), telemetry.Options{Secrets: known})
	require.NoError(t, err)
	_, end := watched.AttemptRecorder().Attempt(t.Context(), attemptInput())
	failure := interpreter.ErrorObject{
		Kind: "http", Class: "final", Status: 403, Message: "s3cr3t-t0ken was refused " + string(make([]byte, 5000)),
	}
	end(&failure, true)
	watched.Close()
	require.Len(t, spans(), 1)
	span := spans()[0]
	require.Equal(t, "fetch attempt", span.GetName())
	require.Equal(t, otlp.Status_STATUS_CODE_ERROR, span.GetStatus().GetCode())
	require.Contains(t, span.GetStatus().GetMessage(), "*** was refused")
	require.Len(t, span.GetStatus().GetMessage(), 500)
	require.NotContains(t, span.String(), "s3cr3t")
}

func TestTraceHeadersOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]bool{"": true, "true": true, "1": true, "false": false, "0": false, "of course": false} {
		t.Setenv("REPRISE_TRACE_HEADERS", value)
		require.Equal(t, want, telemetry.TraceHeaders(), value)
	}
}

// TestMetricsAreSent at the end at the latest, by the name of the service that the
// environment has.
func TestMetricsAreSent(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] += string(body)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_SERVICE_NAME", "fetchers")
	watched, err := telemetry.New(t.Context(), telemetry.Options{Service: "reprise-worker"})
	require.NoError(t, err)
	watched.AttemptRecorder().Add(meter.Pages, 1, "book", "fetch", "http")
	watched.Close()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, got, 1)
	require.Contains(t, got["/v1/metrics"], meter.Pages.Name)
	require.Contains(t, got["/v1/metrics"], "fetchers")
	require.NotContains(t, got["/v1/metrics"], "reprise-worker")
}

// TestTraceHeaders: --trace-headers=false turns off what requests carry, and
// nothing else.
func TestTraceHeaders(t *testing.T) {
	for _, on := range []bool{true, false} {
		spans := collected(t)
		watched, err := telemetry.New(t.Context(), telemetry.Options{TraceHeaders: on})
		require.NoError(t, err)
		to, headers := watched.AttemptRecorder(), http.Header{}
		ctx, end := to.Attempt(t.Context(), attemptInput())
		to.Propagate(ctx, headers)
		end(nil, true)
		watched.Close()
		require.Len(t, spans(), 1)
		if on {
			require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", headers.Get("traceparent"))
		} else {
			require.Empty(t, headers)
		}
	}
}

// TestCollectorThatIsAway holds nothing up.
func TestCollectorThatIsAway(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	watched, err := telemetry.New(t.Context(), telemetry.Options{})
	require.NoError(t, err)
	_, end := watched.AttemptRecorder().Attempt(t.Context(), attemptInput())
	end(nil, true)
	began := time.Now()
	watched.Close()
	require.Less(t, time.Since(began), testenv.Within(time.Minute), "five seconds, on a machine with nothing else to do")
}
