package e2e_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/test/testenv/testworker"
)

// hostile is an answer that means harm.
type hostile struct {
	name   string
	answer http.HandlerFunc
	// want are the kinds of error that it may become, "ok" for a success.
	want []string
}

// said is an answer with a content type and a body.
func said(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// jsonOf is an answer in JSON.
func jsonOf(body string) http.HandlerFunc { return said("application/json", body) }

// headed is an answer with headers and little else.
func headed(set func(http.Header)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		set(w.Header())
		_, _ = io.WriteString(w, "x")
	}
}

// raw is what a server writes that does not keep to HTTP.
func raw(write func(w *bufio.Writer, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		write(buffered.Writer, r)
		_ = buffered.Flush()
	}
}

// endless is an answer whose parts come for as long as somebody reads them.
func endless(contentType, part string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
			if pause > 0 {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
				}
			}
		}
	}
}

// zipped is a text as gzip.
func zipped(text string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// list is JSON of so many bytes, all of one element.
func list(element string, size int) string {
	return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
}

// hostileAnswers are the kinds there are.
func hostileAnswers() []hostile {
	return slices.Concat(hostileHeads(), hostileBodies(), hostileJSON(), hostileStreams())
}

func hostileHeads() []hostile {
	relations := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "r%d ", i)
		}
		return b.String()
	}
	long := strings.Repeat("p", 200_000)
	return []hostile{
		{"a Link with many relations", headed(func(h http.Header) {
			h.Set("Link", "</"+long[:120_000]+`>; rel="`+relations(18_000)+`"`)
		}), []string{"ok"}},
		{"a short Link with many relations", headed(func(h http.Header) {
			h.Set("Link", "</"+long[:8000]+`>; rel="`+relations(30_000)+`"`)
		}), []string{"ok"}},
		{"many Links", headed(func(h http.Header) { h.Set("Link", strings.Repeat("<x>;rel=a,", 24_000)) }), []string{"ok"}},
		{"a next page that is too far", headed(func(h http.Header) { h.Set("Link", "</"+long+">; rel=next") }), []string{"http"}},
		{"many headers", headed(func(h http.Header) {
			for i := range 6000 {
				h.Set(fmt.Sprintf("X-%d", i), "some value")
			}
		}), []string{"ok"}},
		{"one header many times", headed(func(h http.Header) { h["X-A"] = slices.Repeat([]string{"v"}, 25_000) }), []string{"ok"}},
		{"a long header", headed(func(h http.Header) { h.Set("X-Long", long) }), []string{"ok"}},
		{"headers over the bound", headed(func(h http.Header) { h.Set("X-Long", long+long) }), []string{"connection"}},
		{"headers without end", raw(func(w *bufio.Writer, _ *http.Request) {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			for i := 0; err == nil && i < 200_000; i++ {
				_, err = fmt.Fprintf(w, "X-%d: %s\r\n", i, long[:100])
			}
		}), []string{"connection"}},
		{"a flood of 103", raw(func(w *bufio.Writer, _ *http.Request) {
			var err error
			for i := 0; err == nil && i < 20_000; i++ {
				_, err = io.WriteString(w, "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
			}
		}), []string{"connection"}},
		{"redirects without end", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?n="+strconv.Itoa(time.Now().Nanosecond()), http.StatusFound)
		}, []string{"http"}},
		{"a redirect to somewhere long", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, r.URL.Path+"?"+long, http.StatusFound)
			}
		}, []string{"ok"}},
		{"no HTTP", raw(func(w *bufio.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("\x00\xffgarbage\n", 1000))
		}), []string{"connection"}},
	}
}

func hostileBodies() []hostile {
	bomb := zipped(strings.Repeat("a", 200<<20))
	return []hostile{
		{"a gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, bomb)
		}, []string{"payload_too_large"}},
		{"a gzip bomb that does not say so", said("text/plain", bomb), []string{"payload_too_large"}},
		{"a bomb in a bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, zipped(bomb))
		}, []string{"payload_too_large"}},
		{"torn gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, bomb[:1000])
		}, []string{"connection"}},
		{"a long text", said("text/plain", strings.Repeat("a", 1_800_000)), []string{"ok"}},
		{"a text that is too long", said("text/plain", strings.Repeat("a", 9<<20)), []string{"payload_too_large"}},
		{"text that is no UTF-8", said("text/plain", strings.Repeat("\xe9", 500_000)), []string{"http"}},
		{"text that grows", said("text/plain; charset=windows-1252", strings.Repeat("\x80", 9<<20)), []string{"payload_too_large"}},
		{"UTF-16 that grows", said("text/plain; charset=utf-16", "\xff\xfe"+strings.Repeat("\x2d\x4e", 4<<20)), []string{"payload_too_large"}},
		{"no text", said("text/plain", strings.Repeat("\x00\xff", 2<<20)), []string{"http"}},
		{"a charset that is not known", said("application/json; charset=klingon", "{\"a\": \"\xe9\"}"), []string{"http"}},
		{"a failure with a long body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("a", 9<<20))
		}, []string{"http"}},
		{"a failure with much JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, list(`{"a":1}`, 9<<20))
		}, []string{"http"}},
	}
}

func hostileJSON() []hostile {
	var keys strings.Builder
	for i := range 120_000 {
		fmt.Fprintf(&keys, `"key%d":1,`, i)
	}
	return []hostile{
		{"deep JSON", jsonOf(strings.Repeat("[", 1_500_000)), []string{"http"}},
		{"deeper JSON", jsonOf(strings.Repeat("[", 5_000_000)), []string{"payload_too_large"}},
		{"deep maps", jsonOf(strings.Repeat(`{"a":`, 300_000)), []string{"http"}},
		{"many keys", jsonOf("{" + keys.String() + `"last":1}`), []string{"ok"}},
		{"one key many times", jsonOf("{" + strings.Repeat(`"a":1,`, 1_500_000) + `"a":1}`), []string{"payload_too_large"}},
		{"small maps", jsonOf(list(`{"a":1}`, 1_800_000)), []string{"ok"}},
		{"too many small maps", jsonOf(list(`{"a":1}`, 10_000_000)), []string{"payload_too_large"}},
		{"empty lists", jsonOf(list("[]", 1_800_000)), []string{"ok"}},
		{"too many empty lists", jsonOf(list("[]", 10_000_000)), []string{"payload_too_large"}},
		{"many numbers", jsonOf(list("123", 1_800_000)), []string{"ok"}},
		{"a long number", jsonOf(strings.Repeat("1", 1_000_000)), []string{"ok", "http"}},
		{"escapes", jsonOf(`"` + strings.Repeat(`\u0041`, 1_500_000) + `"`), []string{"ok"}},
		{"spaces", jsonOf(strings.Repeat(" ", 9<<20) + "1"), []string{"ok"}},
		{"no JSON", jsonOf(strings.Repeat("{]", 4<<20)), []string{"http", "payload_too_large"}},
		{"a byte order mark", jsonOf("\xef\xbb\xbf" + list("1", 1_000_000)), []string{"ok"}},
	}
}

func hostileStreams() []hostile {
	return []hostile{
		{"a body without end", endless("text/plain", strings.Repeat("a", 64<<10), 0), []string{"payload_too_large", "timeout"}},
		{"JSON without end", endless("application/json", strings.Repeat("[", 64<<10), 0), []string{"payload_too_large", "timeout"}},
		{"a slow body", endless("text/plain", "a", 100*time.Millisecond), []string{"timeout"}},
		{"a large body that stalls", endless("text/plain", strings.Repeat("a", 2<<20), time.Minute), []string{"timeout"}},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"timeout"}},
		{"less than it says", raw(func(w *bufio.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000\r\n\r\nabc")
		}), []string{"connection"}},
		{"more than it says", raw(func(w *bufio.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"+strings.Repeat("a", 5<<20))
		}), []string{"ok"}},
		{"chunks that are none", raw(func(w *bufio.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"+strings.Repeat("z", 5<<20))
		}), []string{"connection"}},
		{"trailers", raw(func(w *bufio.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"+strings.Repeat("X-T: v\r\n", 500_000)+"\r\n")
		}), []string{"connection"}},
	}
}

// attack asks for each of the hostile answers, many at a time.
const attack = `
  - step: attack
    tool: http
    url: "{{ hostile }}/{{ n }}"
    timeout: 15s
    retry:
      - when: "{{ error is defined }}"
        then: {ignore: true, result: "{{ error.kind }}"}
      - when: "{{ error is not defined }}"
        then: {result: ok}
    loop: {collection: "{{ 0..%d }}", element: n, mode: parallel, max_concurrency: 48, batch: %d}
output:
  results: "{{ attack.results }}"
  errors: "{{ map(attack.errors, [.element, .error.kind]) }}"
`

// peakMemory is the most memory that a process has had at once, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("memory of processes is not to be seen here")
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(text)
	require.NotEmpty(t, fields)
	kilobytes, err := strconv.Atoi(fields[0])
	require.NoError(t, err)
	return kilobytes << 10
}

// TestHostileAnswers: whoever answers harms neither the worker nor its other
// runs. Each answer becomes what it is, and a worker never takes more memory for
// all of them together than it says: the 256 MiB that it lends, and as much again,
// since Go's collector lets a heap double before it has collected it.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const mostMemory = 2 * 256 << 20
	answers := hostileAnswers()
	rounds := 1
	if *soak {
		rounds = 11 // of two loops: about 1,000 answers
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		answers[n%len(answers)].answer(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.patience, w.replays = 20*time.Minute, 1
	worker := w.spawn()
	count := rounds * len(answers)
	for _, batch := range []int{1, 10} {
		run := w.start(book(fmt.Sprintf(attack, count-1, batch)), map[string]any{"hostile": server.URL})
		neighbour := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ n }}"}
    timeout: 1m
    loop: {collection: "{{ 1..30 }}", element: n}
output: "{{ fetch.stats.success }}"
`), nil)
		beside, err := w.outcome(neighbour)
		require.NoError(t, err)
		require.Equal(t, 30, beside.Result.Data, "another run is not in its way")
		result, err := w.outcome(run)
		require.NoError(t, err)
		requireAlive(t, worker)
		data, isMap := result.Result.Data.(map[string]any)
		require.True(t, isMap, "%+v", result.Error)
		came := data["results"].([]any)
		require.Len(t, came, count)
		for _, failed := range data["errors"].([]any) {
			came[failed.([]any)[0].(int)] = failed.([]any)[1]
		}
		var wrong []string
		right := 0
		for n, kind := range came {
			switch answer := answers[n%len(answers)]; {
			case slices.Contains(answer.want, fmt.Sprint(kind)):
				right++
			case kind != "timeout": // which a machine that has much else to do makes of any
				wrong = append(wrong, fmt.Sprintf("%s became %v", answer.name, kind))
			}
		}
		require.Empty(t, wrong)
		require.GreaterOrEqual(t, right, count/2)
		t.Logf("%d answers of %d kinds, batches of %d: the worker has had %d MB at most",
			count, len(answers), batch, peakMemory(t, worker.PID())>>20)
	}
	require.Less(t, peakMemory(t, worker.PID()), mostMemory)
}

func requireAlive(t *testing.T, worker *testworker.Process) {
	t.Helper()
	select {
	case <-worker.Done():
		require.NoError(t, worker.Err(), "the worker has died")
	default:
	}
}

// TestRequestThatEndsWorkers: a request whose answer has ended two workers is
// not made again, whatever the policies say.
func TestRequestThatEndsWorkers(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"alone": "", "in a batch": "loop: {collection: [1], element: n, mode: parallel, batch: 2}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(endless("text/plain", strings.Repeat("a", 2<<20), time.Hour))
			t.Cleanup(server.CloseClientConnections)
			w := newWorld(t)
			worker := w.spawn()
			run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ hostile }}"
    timeout: 10m
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 5, delay: 0}
    %s
`, loop)), map[string]any{"hostile": server.URL})
			for range 2 {
				w.awaitHeartbeatText(run.GetID(), worker.PID(), `"receiving"`)
				worker.Kill()
				worker = w.spawn()
			}
			result, err := w.outcome(run)
			require.NoError(t, err)
			requireAlive(t, worker)
			failure := step(t, result, "fetch").Error
			require.Contains(t, failure.Message, "lost two workers, the last one while it read the response")
			if loop == "" {
				require.EqualValues(t, "worker_lost", failure.Kind)
				require.EqualValues(t, "final", failure.Class)
				require.Equal(t, 1, step(t, result, "fetch").Attempts)
			}
		})
	}
}

// awaitHeartbeatText waits until an activity of a run or of its children, on the
// worker of a process, has a heartbeat with a text.
func (w *world) awaitHeartbeatText(runID string, pid int, text string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		children, err := w.env.Client().ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: w.env.Namespace, Query: "ExecutionStatus = 'Running'",
		})
		if err != nil {
			return false
		}
		for _, execution := range children.Executions {
			if !strings.HasPrefix(execution.Execution.WorkflowId, runID) {
				continue
			}
			described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), execution.Execution.WorkflowId, "")
			if err != nil {
				continue
			}
			for _, activity := range described.PendingActivities {
				told, now := false, fmt.Sprintf(`"delivery":%d`, activity.GetAttempt()) // and not one before
				for _, payload := range activity.GetHeartbeatDetails().GetPayloads() {
					told = told || strings.Contains(string(payload.GetData()), text) && strings.Contains(string(payload.GetData()), now)
				}
				if told && strings.HasPrefix(activity.GetLastWorkerIdentity(), strconv.Itoa(pid)+"@") {
					return true
				}
			}
		}
		return false
	}, patience, tick, "no heartbeat told %s", text)
}
