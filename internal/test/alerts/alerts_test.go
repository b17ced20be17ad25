// Package alerts_test evaluates the rules of docs/operations/alerts.yaml with Prometheus's own engine, over scrapes of
// real workers.
package alerts_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/internal/observe/census"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/internal/program/start"
	"reprise/internal/program/telemetry"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) {
	testworker.Main()
	testenv.Main(m)
}

const tick = 50 * time.Millisecond

var patience = testenv.Within(20 * time.Second)

// fleet is a server with workers, and an API that fails as the test says.
type fleet struct {
	t     *testing.T
	env   *testenv.Server
	api   *httptest.Server
	known connect.Attributes
	queue string
	dir   string
	runs  int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, env: testenv.TemporalServer(t), dir: t.TempDir()}
	f.queue = f.env.NewTaskQueue()
	f.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `[{"id": 1, "at": %q}]`, time.Now().Add(-72*time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(f.api.Close)
	require.Eventually(t, func() bool {
		known, err := connect.EnsureAttributes(t.Context(), f.env.Client(), f.env.Namespace, protocol.SearchAttributes())
		f.known = known
		return err == nil && len(known.Added) == 0
	}, patience, tick)
	return f
}

// worker starts a worker that reads figures often, and gives its URL.
func (f *fleet) worker() (url string, worker *testworker.Process) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "metrics")
	worker = testworker.Start(f.t, testworker.Options{
		Address: f.env.Address, Namespace: f.env.Namespace, TaskQueue: f.queue, Directory: f.dir, Metrics: file, Census: 100 * time.Millisecond,
	})
	require.Eventually(f.t, func() bool {
		text, err := os.ReadFile(file)
		url = string(text)
		return err == nil && url != ""
	}, patience, tick)
	return url, worker
}

// start starts a run.
func (f *fleet) start(queue, playbook string, workload map[string]any) client.WorkflowRun {
	f.t.Helper()
	f.runs++
	given := map[string]any{"api": f.api.URL}
	maps.Copy(given, workload)
	run, err := start.StartRun(f.t.Context(), start.Destination{Client: f.env.Client(), TaskQueue: queue}, start.Plan{
		WorkflowID: fmt.Sprint("run-", f.runs), Playbook: "load",
		Input: protocol.Input{Name: "load.yaml", Source: playbook, Workload: expression.Of(given)},
	}, f.known)
	require.NoError(f.t, err)
	return run
}

// ends runs a playbook to its end.
func (f *fleet) ends(status interpreter.Status, playbook string, workload map[string]any) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	result, err := ending.WaitForResult(ctx, f.start(f.queue, playbook, workload))
	require.NoError(f.t, err)
	require.Equal(f.t, status, result.Status, "%+v", result.Error)
}

// eventually waits until a scrape has a series.
func (f *fleet) eventually(url, metric string, is func(label string, value float64) bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		families, err := scraped(url)
		if err != nil {
			return false
		}
		return slices.ContainsFunc(families[metric].GetMetric(), func(one *dto.Metric) bool {
			label := ""
			if len(one.GetLabel()) > 0 {
				label = one.GetLabel()[0].GetValue()
			}
			return is(label, one.GetCounter().GetValue()+one.GetGauge().GetValue())
		})
	}, patience, tick, metric)
}

const head = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: load}
workload: {api: "", code: 200, codes: [200]}
workflow:
`

// loading fails as its workload says: the run, and the iterations of its loop, whose retries are exhausted.
const loading = head + `
  - step: each
    tool: http
    url: "{{ api }}?status={{ status }}"
    loop: {in: "{{ codes }}", iterator: status, thresholds: {completed: 1, partial_success: 0}}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, backoff: none}}]
    next: [{when: "{{ error is defined or true }}", then: [{step: one}]}]
  - step: one
    tool: http
    url: "{{ api }}?status={{ code }}"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 1}}]
`

// TestFirstFailuresAlert: the first failure that a worker counts raises its alert, whether it has just started, or
// started again with what it had counted gone.
func TestFirstFailuresAlert(t *testing.T) {
	t.Parallel()
	f, l := newFleet(t), newTimeline(t)
	alerts := map[string]string{
		"RepriseRunsFail":         `sum by (playbook) (increase(reprise_runs_total{status="failed"}[15m])) > 0`,
		"RepriseDeadLetters":      `sum by (playbook, step) (increase(reprise_iterations_total{state="failed"}[15m])) > 0`,
		"RepriseRetriesExhausted": `sum by (playbook, step, tool) (increase(reprise_task_retry_exhausted_total[15m])) > 10`,
	}
	fails := map[string]any{"code": 500, "codes": slices.Repeat([]any{503}, 12)}
	for _, life := range []string{"first", "second"} {
		url, worker := f.worker()
		at := map[string]string{"worker:9464": url}
		f.ends("completed", loading, nil)
		l.last(20*time.Minute, at)
		for alert, increases := range alerts {
			require.Empty(t, l.firing(alert), "%s in the %s life, before anything failed", alert, life)
			require.Empty(t, l.query(increases, l.now))
		}
		f.ends("failed", loading, fails)
		l.last(time.Minute, at)
		for alert, increases := range alerts {
			require.Len(t, l.firing(alert), 1, "%s in the %s life", alert, life)
			require.Len(t, l.query(increases, l.now.Add(-interval)), 1, "%s in the %s life: the counter was scraped as 0 before", alert, life)
		}
		worker.Kill()
		l.last(time.Minute, at)
	}
	require.Len(t, l.firing("RepriseRunsFail"), 1)
	require.Empty(t, l.firing("RepriseWorkerDown"), "after a minute")
	l.last(6*time.Minute, map[string]string{"worker:9464": "http://127.0.0.1:1/metrics"})
	require.Len(t, l.firing("RepriseWorkerDown"), 1)
}

// incrementally moves its watermark to three days ago.
const incrementally = head + `
  - step: fetch
    tool: http
    url: "{{ api }}?status={{ code }}&since={{ incremental.value }}"
    incremental: {cursor_path: at, initial_value: "2020-01-01T00:00:00Z"}
    sink: {tool: file, path: rows.jsonl}
`

// awaiting has one attempt that nobody answers, and retrying one that waits.
const (
	awaiting = head + `
  - {step: asks, tool: approval, message: "Load?"}
`
	retrying = head + `
  - step: waits
    tool: http
    url: "{{ api }}?status=503"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 5, delay: 3h, max_delay: 3h, jitter: none}}]
`
)

// TestReadingsAlert: old watermarks, runs that wait, await or find no worker, and a lost server raise alerts, whatever
// the process has done that shows them.
func TestReadingsAlert(t *testing.T) {
	t.Parallel()
	f, l := newFleet(t), newTimeline(t)
	_, worker := f.worker()
	f.ends("completed", incrementally, nil)
	f.ends("failed", incrementally, map[string]any{"code": 404}) // the watermark stays
	worker.Kill()
	url, _ := f.worker()
	f.eventually(url, meter.WatermarkAge.Name, func(_ string, age float64) bool { return age > 71*3600 })
	f.start(f.queue, awaiting, nil)
	f.start(f.queue, retrying, nil)
	f.start("nobody polls this", loading, nil)
	for _, status := range []interpreter.Status{interpreter.Awaiting, interpreter.RetryPending, interpreter.Running} {
		f.eventually(url, meter.OpenRuns.Name, func(label string, n float64) bool { return label == string(status) && n == 1 })
		f.eventually(url, meter.OldestRun.Name, func(label string, age float64) bool { return label == string(status) && age < 600 })
	}
	serve := f.observe("nobody polls this")
	f.eventually(serve, meter.BacklogAge.Name, func(_ string, age float64) bool { return age > 0 })
	at := map[string]string{"worker:9464": url, "serve:9464": serve}
	quiet := []string{"RepriseRunsWaitLong", "RepriseRunsAwaitLong", "RepriseBacklog", "RepriseServerUnreachable"}
	l.last(20*time.Minute, at)
	require.Len(t, l.firing("RepriseWatermarkOld"), 1)
	require.Len(t, l.firing("RepriseNoWorker"), 1, "of the queue that nobody polls alone")
	for _, alert := range quiet {
		require.Empty(t, l.firing(alert), alert)
	}
	l.later = 73 * time.Hour // those ages, then
	l.last(20*time.Minute, at)
	for _, alert := range quiet[:3] {
		require.NotEmpty(t, l.firing(alert), alert)
	}
	l.later = 0
	f.env.Kill()
	f.eventually(url, meter.ReadingsAge.Name, func(_ string, age float64) bool { return age > 1 })
	l.later = 5 * time.Minute
	l.last(20*time.Minute, at)
	require.Len(t, l.firing("RepriseServerUnreachable"), 2)
}

// TestStoreAlert: a payload store that is away raises an alert, whether a run needs it or not.
func TestStoreAlert(t *testing.T) {
	t.Parallel()
	l, dir := newTimeline(t), filepath.Join(t.TempDir(), "payloads")
	address, err := payload.DirectoryAddress(dir)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	watched, err := telemetry.New(t.Context(), telemetry.Options{Service: "test", MetricsAddress: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(watched.Close)
	go census.WatchStore(t.Context(), store, watched.Gauges(), slog.New(slog.DiscardHandler), tick)
	at, f := map[string]string{"worker:9464": watched.URL()}, &fleet{t: t}
	f.eventually(watched.URL(), meter.StoreUp.Name, func(_ string, up float64) bool { return up == 1 })
	l.last(20*time.Minute, at)
	require.Empty(t, l.firing("ReprisePayloadStoreAway"))
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.Error(t, store.Write(t.Context(), &commonpb.Payload{Data: make([]byte, payload.Threshold)}))
	f.eventually(watched.URL(), meter.StoreUp.Name, func(_ string, up float64) bool { return up == 0 })
	l.last(20*time.Minute, at)
	require.Len(t, l.firing("ReprisePayloadStoreAway"), 1)
}

// observe reads the figures of the server for a queue, as starter serve does, and gives the URL of its metrics.
func (f *fleet) observe(queue string) string {
	f.t.Helper()
	watched, err := telemetry.New(f.t.Context(), telemetry.Options{Service: "test", MetricsAddress: "127.0.0.1:0"})
	require.NoError(f.t, err)
	f.t.Cleanup(watched.Close)
	figures := &census.Sampler{
		Reader: &runs.Reader{Client: f.env.Client(), Namespace: f.env.Namespace}, To: watched.Gauges(), TaskQueue: queue,
		Logger: slog.New(slog.DiscardHandler),
	}
	go figures.Watch(f.t.Context(), 100*time.Millisecond)
	return watched.URL()
}

// TestCountersOfRulesBeginAsZero: each counter that a rule reads is there, with the labels that the rule asks for, once a
// worker has seen the playbook and before anything has failed.
func TestCountersOfRulesBeginAsZero(t *testing.T) {
	t.Parallel()
	f, l := newFleet(t), newTimeline(t)
	url, _ := f.worker()
	f.ends("completed", loading, nil)
	f.eventually(url, meter.QueueWorkers.Name, func(_ string, n float64) bool { return n == 1 })
	l.scrape(map[string]string{"worker:9464": url})
	later := []string{"reprise_task_retry_total", "reprise_payload_store_operations_total", meter.StoreUp.Name, meter.WatermarkAge.Name, meter.OldestRun.Name}
	for name, rule := range l.rules {
		for _, metric := range metricNames(t, rule.expr) {
			if !slices.Contains(later, metric) { // those of a first retry, of a store, of watermarks and of open runs
				require.NotEmpty(t, l.query(metric, l.now.Add(-interval)), "%s: %s", name, metric)
			}
		}
	}
	require.NotEmpty(t, l.query(`reprise_attempts_total{class="rate_limited", step="one"} == 0`, l.now.Add(-interval)))
}
