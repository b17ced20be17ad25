package e2e_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/program/demoapi"
	"reprise/internal/program/telemetry"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// measured is a run of which everything that is counted is known.
const measured = `
  - step: listed
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10, fail_pages: 2}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {backoff: none}
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page: {sink: {tool: file, path: rows.jsonl}}
    next: flaky
  - step: flaky
    tool: http
    url: "{{ api }}/flaky?times=2"
    rate_limit: {requests: 100, per: 1}
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 3, delay: 1, jitter: none}
    next: each
  - step: each
    tool: http
    url: "{{ api }}/status/{{ code }}"
    loop:
      in: "{{ [200, 201, 404, 500] }}"
      iterator: code
      mode: parallel
      batch: %d
      thresholds: {completed: 0.9, partial_success: 0.1}
      sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {code: "{{ code }}"}}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 2, backoff: none}
`

// wantMetrics are the values after one run of measured. Of histograms there are
// the number of what was counted and, for waits, the sum of it.
var wantMetrics = map[string]float64{
	`reprise_runs_total{playbook="test",status="partial_success"}`:                              1,
	`reprise_run_duration_seconds_count{playbook="test",status="partial_success"}`:              1,
	`reprise_steps_total{playbook="test",status="completed",step="listed"}`:                     1,
	`reprise_steps_total{playbook="test",status="completed",step="flaky"}`:                      1,
	`reprise_steps_total{playbook="test",status="partial_success",step="each"}`:                 1,
	`reprise_step_duration_seconds_count{playbook="test",status="completed",step="listed"}`:     1,
	`reprise_step_duration_seconds_count{playbook="test",status="completed",step="flaky"}`:      1,
	`reprise_step_duration_seconds_count{playbook="test",status="partial_success",step="each"}`: 1,

	`reprise_iterations_total{playbook="test",state="completed",step="each"}`:                           2,
	`reprise_iterations_total{playbook="test",state="failed",step="each"}`:                              2,
	`reprise_dead_letters_total{class="final",kind="http",playbook="test",step="each"}`:                 1,
	`reprise_dead_letters_total{class="retryable",kind="http",playbook="test",step="each"}`:             1,
	`reprise_task_retry_total{attempt="1",class="retryable",playbook="test",step="listed",tool="http"}`: 1,
	`reprise_task_retry_total{attempt="1",class="retryable",playbook="test",step="flaky",tool="http"}`:  1,
	`reprise_task_retry_total{attempt="2",class="retryable",playbook="test",step="flaky",tool="http"}`:  1,
	`reprise_task_retry_total{attempt="1",class="retryable",playbook="test",step="each",tool="http"}`:   1,
	`reprise_task_retry_exhausted_total{class="retryable",playbook="test",step="each",tool="http"}`:     1,
	`reprise_wait_seconds_count{playbook="test",reason="failure",step="flaky"}`:                         2,
	`reprise_wait_seconds_sum{playbook="test",reason="failure",step="flaky"}`:                           2,
	`reprise_rate_limit_wait_seconds_count{playbook="test",step="flaky"}`:                               3,

	`reprise_calls_total{playbook="test",role="step",status="success",step="listed",tool="http"}`: 1,
	`reprise_calls_total{playbook="test",role="sink",status="success",step="listed",tool="file"}`: 4,
	`reprise_calls_total{playbook="test",role="step",status="success",step="flaky",tool="http"}`:  1,
	`reprise_calls_total{playbook="test",role="step",status="success",step="each",tool="http"}`:   2,
	`reprise_calls_total{playbook="test",role="step",status="error",step="each",tool="http"}`:     2,
	`reprise_calls_total{playbook="test",role="sink",status="success",step="each",tool="http"}`:   2,

	`reprise_attempts_total{class="none",playbook="test",role="step",step="listed",tool="http"}`:      4,
	`reprise_attempts_total{class="retryable",playbook="test",role="step",step="listed",tool="http"}`: 1,
	`reprise_attempts_total{class="none",playbook="test",role="sink",step="listed",tool="file"}`:      4,
	`reprise_attempts_total{class="none",playbook="test",role="step",step="flaky",tool="http"}`:       1,
	`reprise_attempts_total{class="retryable",playbook="test",role="step",step="flaky",tool="http"}`:  2,
	`reprise_attempts_total{class="none",playbook="test",role="step",step="each",tool="http"}`:        2,
	`reprise_attempts_total{class="retryable",playbook="test",role="step",step="each",tool="http"}`:   2,
	`reprise_attempts_total{class="final",playbook="test",role="step",step="each",tool="http"}`:       1,
	`reprise_attempts_total{class="none",playbook="test",role="sink",step="each",tool="http"}`:        2,

	`reprise_pages_total{playbook="test",step="listed",tool="http"}`:        4,
	`reprise_pages_total{playbook="test",step="flaky",tool="http"}`:         1,
	`reprise_pages_total{playbook="test",step="each",tool="http"}`:          2,
	`reprise_rows_written_total{playbook="test",step="listed",tool="file"}`: 35,
	`reprise_rows_written_total{playbook="test",step="each",tool="http"}`:   2,

	`reprise_attempts_max`: 200,

	`reprise_rows_total{operation="read",playbook="test",step="listed",table=""}`:              35,
	`reprise_rows_total{operation="written",playbook="test",step="listed",table="rows.jsonl"}`: 35,
	`reprise_rows_total{operation="read",playbook="test",step="each",table=""}`:                2,
	`reprise_rows_total{operation="written",playbook="test",step="each",table="http"}`:         2,
}

func init() {
	for series, n := range wantMetrics { // every call and attempt has its time
		for _, counted := range []string{"call", "attempt"} {
			if labels, found := strings.CutPrefix(series, "reprise_"+counted+"s_total"); found {
				wantMetrics["reprise_"+counted+"_duration_seconds_count"+labels] = n
			}
		}
		if labels, found := strings.CutPrefix(series, "reprise_attempts_total"); found { // all have ended
			wantMetrics["reprise_attempts_in_flight"+classLabel.ReplaceAllString(labels, "")] = 0
		}
	}
}

var classLabel = regexp.MustCompile(`class="[a-z_]*",`)

// scrape reads metrics that begin with a prefix, by name and sorted labels.
func scrape(t *testing.T, url, prefix string) map[string]float64 {
	t.Helper()
	found, err := scraped(url, prefix)
	require.NoError(t, err)
	return found
}

func scraped(url, prefix string) (map[string]float64, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := textParser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := labelsOf(metric)
			if histogram := metric.GetHistogram(); histogram != nil {
				found[name+"_count"+labels] = float64(histogram.GetSampleCount())
				found[name+"_sum"+labels] = histogram.GetSampleSum()
				continue
			}
			found[name+labels] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return found, nil
}

func labelsOf(metric *dto.Metric) string {
	var all []string
	for _, label := range metric.GetLabel() {
		all = append(all, label.GetName()+"="+strconv.Quote(label.GetValue()))
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

// spawnCounting starts a worker with an endpoint for metrics and gives its URL.
func (w *world) spawnCounting(env ...string) (url string, worker *testworker.Process) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "metrics")
	worker = testworker.Start(w.t, testworker.Options{
		Address: w.env.Address, Namespace: w.env.Namespace, TaskQueue: w.queue, Directory: w.dir,
		Connections: w.connected, Env: env, Metrics: file,
	})
	require.Eventually(w.t, func() bool {
		text, err := os.ReadFile(file)
		url = string(text)
		return err == nil && url != ""
	}, patience, tick)
	return url, worker
}

// TestMetricsOfARun: a worker counts exactly what a run does, whether it keeps
// workflows in memory or replays them for every task, and however calls are
// hosted.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"cache": nil, "no cache": {"TEST_NO_CACHE=1"}} {
		for _, batch := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, batch %d", name, batch), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.serve(demoapi.Options{Items: 35})
				url, _ := w.spawnCounting(env...)
				w.ends("partial_success", book(fmt.Sprintf(measured, batch)), nil)
				found := scrape(t, url, "reprise_")
				for series, n := range found {
					switch {
					case n == 0 && !strings.HasPrefix(series, "reprise_attempts_in_flight"): // which alerts count from
						delete(found, series)
					case strings.HasPrefix(series, "reprise_interpreter_"):
						delete(found, series)
					case strings.Contains(series, "_seconds_sum") && !strings.HasPrefix(series, "reprise_wait_"):
						delete(found, series)
					}
				}
				require.Equal(t, wantMetrics, found)
				interpreted := scrape(t, url, "reprise_interpreter_")
				require.Equal(t, 1.0, interpreted[`reprise_interpreter_loads_total{result="compiled"}`])
				require.Greater(t, interpreted[`reprise_interpreter_loads_total{result="cached"}`], 2.0)
				require.Greater(t, interpreted[`reprise_interpreter_evaluations_total`], 10.0)
				slots := strings.Join(slices.Collect(maps.Keys(scrape(t, url, "temporal_worker_task_slots_available"))), "\n")
				require.Contains(t, slots, `worker_type="ActivityWorker"`, "of Temporal's SDK, as alerts ask for it")
			})
		}
	}
}

// TestMetricsOfAwaitedAttempts: an attempt that somebody outside answers, and one that
// is a run of another playbook, counts once, as what it came to.
func TestMetricsOfAwaitedAttempts(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"cache": nil, "no cache": {"TEST_NO_CACHE=1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url, _ := w.spawnCounting(env...)
			w.completes(book(`
  - step: hook
    tool: webhook
    on_start: {url: "{{ api }}/status/200", body: {}}
    timeout: 1s
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 0}}]
    next: [{when: "{{ error is defined }}", then: [{step: unsent}]}]
  - step: unsent
    tool: webhook
    on_start: {url: "{{ api }}/status/404", body: {}}
    next: [{when: "{{ error is defined }}", then: [{step: below}]}]
  - step: below
    tool: playbook
    workload: {url: "{{ api }}/flaky?times=1&key=below"}
    workflow: [{step: inner, tool: http, url: "{{ workload.url }}"}]
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 0}}]
`), nil)
			found := scrape(t, url, "reprise_")
			series := func(metric, class, step, tool string) float64 {
				return found[fmt.Sprintf(`reprise_%s{class="%s",playbook="test",role="step",step="%s",tool="%s"}`, metric, class, step, tool)]
			}
			for _, metric := range []string{"attempts_total", "attempt_duration_seconds_count"} {
				require.Equal(t, 2.0, series(metric, "retryable", "hook", "webhook"), "nobody has answered")
				require.Zero(t, series(metric, "none", "hook", "webhook"))
				require.Equal(t, 1.0, series(metric, "final", "unsent", "webhook"))
				require.Equal(t, 1.0, series(metric, "retryable", "below", "playbook"))
				require.Equal(t, 1.0, series(metric, "none", "below", "playbook"))
			}
			require.GreaterOrEqual(t, found[`reprise_attempt_duration_seconds_sum{class="retryable",playbook="test",role="step",step="hook",tool="webhook"}`], 2.0)
			require.NotContains(t, found, `reprise_pages_total{playbook="test",step="hook",tool="webhook"}`)
			require.Equal(t, 1.0, found[`reprise_pages_total{playbook="test",step="below",tool="playbook"}`])
		})
	}
}

// TestWatermarkAge: a worker shows how old the watermarks are that runs have moved, of a loop the
// oldest one, and of a step without a sink once the run has ended well.
func TestWatermarkAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hours, _ := strconv.Atoi(r.URL.Query().Get("hours"))
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `[{"id": %d, "at": %q, "day": %q}]`, hours, at.Format(time.RFC3339), at.UTC().Format(time.DateOnly))
	}))
	t.Cleanup(api.Close)
	url, _ := w.spawnCounting("TEST_NO_CACHE=1")
	const playbook = `
  - {step: aged_each, tool: http, url: "{{ at }}?hours={{ hours }}&since={{ incremental.value }}", loop: {in: [2, 9, 5], iterator: hours, sink: {tool: file, path: rows.jsonl}}, incremental: {cursor_path: at, initial_value: "2020-01-01T00:00:00Z"}, next: aged_unwritten}
  - {step: aged_unwritten, tool: http, url: "{{ at }}?hours=7&since={{ incremental.value }}", incremental: {cursor_path: at, initial_value: "2020-01-01T00:00:00Z"}, next: aged_ids}
  - {step: aged_ids, tool: http, url: "{{ at }}?hours=3&since={{ incremental.value }}", incremental: {cursor_path: id, initial_value: 0}, sink: {tool: file, path: rows.jsonl}, next: aged_days}
  - {step: aged_days, tool: http, url: "{{ at }}?hours=100&since={{ incremental.value }}", incremental: {cursor_path: day, initial_value: "2020-01-01"}, sink: {tool: file, path: rows.jsonl}}
`
	w.completes(book(playbook), map[string]any{"at": api.URL})
	found := scrape(t, url, "reprise_watermark")
	hours := map[string]int{}
	for series, age := range found {
		hours[series] = int(age / 3600)
	}
	const series = `reprise_watermark_age_seconds{playbook="test",step="%s"}`
	require.Equal(t, 9, hours[fmt.Sprintf(series, "aged_each")], "the oldest of its elements")
	require.Equal(t, 7, hours[fmt.Sprintf(series, "aged_unwritten")])
	require.InDelta(t, 100+12, hours[fmt.Sprintf(series, "aged_days")], 13, "since the day began")
	require.Len(t, found, 3, "integers are no times")
}

// TestAttemptsInFlight: those that a worker is making are counted while it makes
// them, and those of a worker that was lost by the one that makes them again.
func TestAttemptsInFlight(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 3} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer := make(chan struct{})
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-answer:
					_, _ = io.WriteString(w, "{}")
				case <-r.Context().Done():
				}
			}))
			t.Cleanup(api.Close)
			const series = `reprise_attempts_in_flight{playbook="test",role="step",step="each",tool="http"}`
			until := func(url string, n float64) {
				t.Helper()
				require.Eventually(t, func() bool {
					found, err := scraped(url, "reprise_attempts_in_flight")
					return err == nil && found[series] == n
				}, patience, tick, "%g attempts are under way", n)
			}
			url, worker := w.spawnCounting()
			run := w.start(book(fmt.Sprintf(`
  - step: each
    tool: http
    url: "{{ at }}/"
    timeout: 10m
    loop: {in: [1, 2, 3], iterator: n, mode: parallel, batch: %d}
`, batch)), map[string]any{"at": api.URL})
			until(url, 3)
			worker.Kill()
			url, _ = w.spawnCounting()
			until(url, 3)
			close(answer)
			_, err := w.outcome(run)
			require.NoError(t, err)
			until(url, 0)
		})
	}
}

// TestWaitsAreCountedOnce: an iteration that leaves its place while it waits, and
// comes back, has waited once.
func TestWaitsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"cache": nil, "no cache": {"TEST_NO_CACHE=1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url, _ := w.spawnCounting(env...)
			w.completes(book(`
  - step: each
    tool: http
    url: "{{ api }}/flaky?times=1&key={{ key }}"
    loop: {in: "{{ ['a', 'b', 'c'] }}", iterator: key, mode: parallel, max_concurrency: 1}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 6, jitter: none}}]
`), nil)
			found := scrape(t, url, "reprise_")
			require.Equal(t, 3.0, found[`reprise_wait_seconds_count{playbook="test",reason="failure",step="each"}`])
			require.Equal(t, 18.0, found[`reprise_wait_seconds_sum{playbook="test",reason="failure",step="each"}`])
			require.Equal(t, 3.0, found[`reprise_task_retry_total{attempt="1",class="retryable",playbook="test",step="each",tool="http"}`])
			require.Equal(t, 3.0, found[`reprise_calls_total{playbook="test",role="step",status="success",step="each",tool="http"}`])
			require.Equal(t, 3.0, found[`reprise_iterations_total{playbook="test",state="completed",step="each"}`])
		})
	}
}

// TestHeldAttemptsAreNotCounted: an attempt that is held because its run is paused
// was not made.
func TestHeldAttemptsAreNotCounted(t *testing.T) {
	t.Parallel()
	w, api := newWorld(t), newGauge(t)
	url, _ := w.spawnCounting()
	api.set(true)
	run := w.start(book(`
  - step: each
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..4 }}", element: n, mode: parallel, max_concurrency: 4}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 11, delay: 2s, jitter: none}}]
`), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) >= 4 }, patience, tick)
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	require.Eventually(t, func() bool { return w.holding(run.GetID()+"/each#1") == 4 }, patience, tick)
	api.set(false)
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	counted := 0.0
	for _, n := range scrape(t, url, "reprise_attempts_total") {
		counted += n
	}
	require.Equal(t, float64(api.began(time.Time{})), counted)
}

// holding counts the iterations of a loop that people hold.
func (w *world) holding(loop string) (held int) {
	for _, iteration := range w.openIterations(loop) {
		if iteration.Status == interpreter.Paused {
			held++
		}
	}
	return held
}

// TestIterationsThatAreCancelled, those that never began among them, are counted
// by their run.
func TestIterationsThatAreCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, _ := w.spawnCounting()
	_, err := w.run(book(`
  - step: each
    tool: http
    url: "{{ api }}/status/{{ code }}"
    loop: {in: "{{ [200, 404, 200, 200] }}", iterator: code, failure_budget: {rate: 0.1, min_samples: 2}}
`), nil)
	require.NoError(t, err)
	found := scrape(t, url, "reprise_iterations")
	require.Equal(t, map[string]float64{
		`reprise_iterations_total{playbook="test",state="completed",step="each"}`: 1,
		`reprise_iterations_total{playbook="test",state="failed",step="each"}`:    1,
		`reprise_iterations_total{playbook="test",state="cancelled",step="each"}`: 2,
	}, found)
}

// TestTraceContinuesFromAStarter: a run that is started under a span belongs to it,
// and so does all that is below the run.
func TestTraceContinuesFromAStarter(t *testing.T) {
	to := newSpanCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	w := newWorld(t)
	_, worker := w.spawnCounting()
	starter, err := telemetry.New(t.Context(), telemetry.Options{Service: "starter"})
	require.NoError(t, err)
	ctx, end := starter.BeginSpan(t.Context(), "starter run")
	run, err := w.env.Dial(t, starter.ClientOptions(client.Options{})).ExecuteWorkflow(ctx,
		client.StartWorkflowOptions{ID: w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "test.yaml", Source: book(`
  - step: each
    tool: http
    url: "{{ at }}/status/200"
    loop: {in: [1], iterator: n}
`), Workload: expression.Of(map[string]any{"at": w.api.URL()})})
	require.NoError(t, err)
	_, err = w.outcome(run)
	require.NoError(t, err)
	end(nil)
	starter.Close()
	worker.Stop()
	require.Equal(t, []string{
		"each > each iteration i0 success",
		"each iteration i0 > each attempt i0 p1 a1 success",
		"run test > each completed",
		"starter run ",
		"starter run > run test completed",
	}, to.lines(t))
}

// spanCollector takes spans by OTLP.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
}

func newSpanCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := &spanCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// lines are the spans as `parent > name status`, sorted.
func (c *spanCollector) lines(t *testing.T) []string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*otlp.Span{}
	for _, span := range c.spans {
		require.NotContains(t, byID, string(span.GetSpanId()), "span %q was told twice", span.GetName())
		byID[string(span.GetSpanId())] = span
		require.Equal(t, c.spans[0].GetTraceId(), span.GetTraceId(), "one run is one trace")
	}
	var lines []string
	for _, span := range c.spans {
		parent := ""
		if above := byID[string(span.GetParentSpanId())]; above != nil {
			parent = label(above) + " > "
			require.LessOrEqual(t, above.GetStartTimeUnixNano(), span.GetStartTimeUnixNano()+uint64(1e9), "%s", label(span))
		} else {
			require.Empty(t, span.GetParentSpanId(), "span %q has lost its parent", span.GetName())
		}
		lines = append(lines, parent+label(span)+" "+attribute(span, "reprise.status"))
	}
	slices.Sort(lines)
	return lines
}

func label(span *otlp.Span) string {
	name := span.GetName()
	for _, key := range []string{"index", "page", "attempt"} {
		if value := attribute(span, "reprise."+key); value != "" {
			name += " " + key[:1] + value
		}
	}
	return name
}

func attribute(span *otlp.Span, key string) string {
	at := slices.IndexFunc(span.GetAttributes(), func(kv *common.KeyValue) bool { return kv.GetKey() == key })
	if at < 0 {
		return ""
	}
	switch value := span.GetAttributes()[at].GetValue().GetValue().(type) {
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(value.IntValue, 10)
	case *common.AnyValue_StringValue:
		return value.StringValue
	}
	return "?"
}

// TestTraceOfARun: one span per run, step, iteration, attempt and sink, told once
// each, and the requests of http carry their attempt.
func TestTraceOfARun(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"cache": nil, "no cache": {"TEST_NO_CACHE=1"}} {
		for _, batch := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, batch %d", name, batch), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.serve(demoapi.Options{Items: 15})
				to := newSpanCollector(t)
				_, worker := w.spawnCounting(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+to.URL)...)
				w.ends("partial_success", book(fmt.Sprintf(measured, batch)), nil)
				worker.Stop()
				require.Equal(t, wantSpans, to.lines(t))
				for _, request := range w.api.Requests("") {
					parent := strings.Split(request.Headers["Traceparent"], "-")
					require.Len(t, parent, 4, "%s carries its trace", request.Path)
					require.True(t, slices.ContainsFunc(to.spans, func(span *otlp.Span) bool {
						return fmt.Sprintf("%x", span.GetSpanId()) == parent[2] && strings.HasSuffix(span.GetName(), " attempt")
					}), "%s names an attempt", request.Path)
				}
			})
		}
	}
}

// TestTraceContinuesAsNew: what goes on in another history, a run, an
// iteration or a call, stays where it is in its trace, and is told once.
func TestTraceContinuesAsNew(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"cache": nil, "no cache": {"TEST_NO_CACHE=1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const each = 45 // answers of 100,000 bytes, which no history holds together
			w := newWorld(t)
			to := newSpanCollector(t)
			_, worker := w.spawnCounting(append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+to.URL)...)
			w.completes(book(fmt.Sprintf(`
  - step: begin
    vars: {n: 0}
    next: turn
  - step: turn
    tool: http
    url: "{{ api }}/body?bytes=100000"
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < %[1]d }}", step: turn}
      - {when: "{{ vars.n == %[1]d }}", step: poll}
  - step: poll
    tool: http
    url: "{{ api }}/body?bytes=100000"
    retry: [{when: "{{ error is not defined and _retry.count < %[1]d }}", then: {max_attempts: 100, backoff: none}}]
    next: loop
  - step: loop
    tool: http
    url: "{{ api }}/body?bytes=100000"
    loop: {in: [1], iterator: n}
    retry: [{when: "{{ error is not defined and _retry.count < %[1]d }}", then: {max_attempts: 100, backoff: none}}]
output: 1
`, each)), nil)
			worker.Stop()
			for _, kind := range []string{"PlaybookWorkflow", "CallsWorkflow", "CallsWorkflow"} {
				require.True(t, slices.ContainsFunc(w.histories, func(h testenv.RunHistory) bool {
					return h.Type == kind && (h.Ending() == "ContinuedAsNew" || kind == "CallsWorkflow")
				}), "no %s goes on", kind)
			}
			want := []string{
				"loop > loop iteration i0 success", "run test > begin completed", "run test > loop completed", "run test > poll completed",
				"run test completed",
			}
			for n := range each {
				want = append(want, "run test > turn completed", "turn > turn attempt p1 a1 success",
					fmt.Sprintf("poll > poll attempt p%[1]d a%[1]d success", n+1),
					fmt.Sprintf("loop iteration i0 > loop attempt i0 p%[1]d a%[1]d success", n+1))
			}
			slices.Sort(want)
			require.Equal(t, want, to.lines(t))
		})
	}
}

// wantSpans are those of a run of measured with two pages: parent > span status.
var wantSpans = []string{
	"each > each iteration i0 success",
	"each > each iteration i1 success",
	"each > each iteration i2 error",
	"each > each iteration i3 error",
	"each iteration i0 > each attempt i0 p1 a1 success",
	"each iteration i0 > each sink i0 p1 success",
	"each iteration i1 > each attempt i1 p1 a1 success",
	"each iteration i1 > each sink i1 p1 success",
	"each iteration i2 > each attempt i2 p1 a1 error",
	"each iteration i3 > each attempt i3 p1 a1 error",
	"each iteration i3 > each attempt i3 p1 a2 error",
	"each sink i0 p1 > each attempt i0 p1 a1 success",
	"each sink i1 p1 > each attempt i1 p1 a1 success",
	"flaky > flaky attempt p1 a1 error",
	"flaky > flaky attempt p1 a2 error",
	"flaky > flaky attempt p1 a3 success",
	"listed > listed attempt p1 a1 success",
	"listed > listed attempt p2 a2 error",
	"listed > listed attempt p2 a3 success",
	"listed > listed sink p1 success",
	"listed > listed sink p2 success",
	"listed sink p1 > listed attempt p1 a1 success",
	"listed sink p2 > listed attempt p2 a1 success",
	"run test > each partial_success",
	"run test > flaky completed",
	"run test > listed completed",
	"run test partial_success",
}
