package demoapi_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/demoapi"
)

// clock is a time that tests move by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestJobsBecomeDoneAtTheNthRequest(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	created := send(t, "POST", base+"/api/v1/jobs", "")
	require.Equal(t, 202, created.status)
	require.Equal(t, "job-1", created.at("id"))
	require.Equal(t, "/api/v1/jobs/job-1", created.header.Get("Location"))
	require.Equal(t, "job-2", send(t, "POST", base+"/api/v1/jobs", "").at("id"))

	job := base + "/api/v1/jobs/job-1?ready_after=3"
	require.Equal(t, map[string]any{"id": "job-1", "status": "pending", "polls": 1.0}, get(t, job).json)
	require.Equal(t, "pending", get(t, job).at("status"))
	done := map[string]any{"id": "job-1", "status": "done", "polls": 3.0, "result": map[string]any{"rows": 35.0}}
	require.Equal(t, done, get(t, job).json)
	require.Equal(t, "pending", get(t, job, "X-Scenario: other").at("status"))

	failed := get(t, base+"/api/v1/jobs/x?outcome=failed")
	require.Equal(t, "failed", failed.at("status"))
	require.Equal(t, "the job failed as asked", failed.at("error"))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	clock := newClock()
	base := start(t, demoapi.Options{Now: clock.now}).URL()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		require.Equal(t, 418, send(t, method, base+"/status/418", "").status, method)
	}
	require.Equal(t, map[string]any{"status": 201.0}, get(t, base+"/status/201").json)
	require.Equal(t, "not_found", get(t, base+"/status/404").at("error", "code"))
	require.Equal(t, "status_599", get(t, base+"/status/599").at("error", "code"))
	require.Empty(t, get(t, base+"/status/204").text)
	require.Equal(t, "soon", get(t, base+"/status/429?retry_after=soon").header.Get("Retry-After"))
	require.Equal(t, "Fri, 02 Jan 2026 03:04:07 GMT", get(t, base+"/status/503?retry_after_date=2").header.Get("Retry-After"))
}

func TestFlaky(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	flaky := base + "/flaky?times=2&status=502&retry_after=4"
	first := get(t, flaky)
	require.Equal(t, 502, first.status)
	require.Equal(t, "4", first.header.Get("Retry-After"))
	require.Equal(t, 502, get(t, flaky).status)
	require.Equal(t, 502, get(t, flaky+"&key=another").status)
	require.Equal(t, map[string]any{"ok": true, "attempts": 3.0}, get(t, flaky).json)
}

func TestSlow(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	begin := time.Now()
	require.Equal(t, 30.0, get(t, base+"/slow?ms=30").at("slept_ms"))
	require.GreaterOrEqual(t, time.Since(begin), 30*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", base+"/slow?ms=60000", nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(request)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestEcho(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	a := send(t, "PUT", base+"/echo?a=1&a=2&b=", `{"x":[1]}`, "Content-Type: application/json", "X-Token: t")
	require.Equal(t, "PUT", a.at("method"))
	require.Equal(t, "/echo", a.at("path"))
	require.Equal(t, map[string]any{"a": []any{"1", "2"}, "b": []any{""}}, a.at("query"))
	require.Equal(t, "t", a.at("headers", "X-Token"))
	require.Equal(t, `{"x":[1]}`, a.at("body"))
	require.Equal(t, map[string]any{"x": []any{1.0}}, a.at("json"))
	require.Nil(t, a.at("form"))

	form := send(t, "POST", base+"/echo", "k=v+w&k=x", "Content-Type: application/x-www-form-urlencoded; charset=utf-8")
	require.Equal(t, map[string]any{"k": []any{"v w", "x"}}, form.at("form"))
	require.Nil(t, send(t, "POST", base+"/echo", "plain").at("json"))
	require.Equal(t, 413, send(t, "POST", base+"/echo", strings.Repeat("x", 1<<20+1)).status)
}

func TestBodySizes(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	for path, size := range map[string]int{
		"/body?bytes=2": 2, "/body": 1024, "/body?bytes=200001": 200_001, "/body?bytes=5000000&gzip=1": 5_000_000,
	} {
		body := get(t, base+path).text // the client decompresses
		require.Len(t, body, size, path)
		require.Equal(t, `"`+strings.Repeat("x", size-2)+`"`, body, path)
	}

	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(base + "/body?bytes=5000000&gzip=1")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, len(raw), 50_000)
	_, err = gzip.NewReader(strings.NewReader(string(raw)))
	require.NoError(t, err)
}

func TestBrokenTransport(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	client := &http.Client{}

	response, err := client.Get(base + "/truncated?times=1")
	require.NoError(t, err)
	raw, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, `{"data":[1,2`, string(raw))
	_ = response.Body.Close()
	require.Equal(t, true, get(t, base+"/truncated?times=1").at("ok"), "the second request is whole")

	// A POST is not repeated by the client when a reused connection breaks.
	_, err = client.Post(base+"/drop?times=1", "text/plain", strings.NewReader("x"))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, true, get(t, base+"/drop?times=1").at("ok"))
	_, err = client.Post(base+"/drop", "text/plain", strings.NewReader("x"))
	require.ErrorIs(t, err, io.EOF)

	html := get(t, base+"/not-json")
	require.Equal(t, "application/json", html.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(html.text, "<html>"))
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	a := get(t, base+"/redirect?to=/echo%3Fa=1&status=307")
	require.Equal(t, 307, a.status)
	require.Equal(t, "/echo?a=1", a.header.Get("Location"))
	require.Equal(t, 302, get(t, base+"/redirect").status)
	response, err := http.Get(base + "/redirect?to=/redirect%3Fto=/echo")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, "/echo", response.Request.URL.Path)
}

func TestAuth(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	base := api.URL()
	require.Equal(t, 200, get(t, base+"/auth/bearer?token=t1", "Authorization: Bearer t1").status)
	wrong := get(t, base+"/auth/bearer?token=t1", "Authorization: Bearer t2")
	require.Equal(t, 401, wrong.status)
	require.Equal(t, `Bearer realm="demo"`, wrong.header.Get("WWW-Authenticate"))
	require.Equal(t, 401, get(t, base+"/auth/bearer", "Authorization: Bearer ").status)

	basic := base + "/auth/basic?user=u&password=p"
	require.Equal(t, "u", get(t, basic, "Authorization: Basic dTpw").at("user"))
	require.Equal(t, 401, get(t, basic).status)
	require.Equal(t, 401, get(t, basic, "Authorization: Basic dTpx").status)
	for _, request := range api.Requests("") {
		require.NotContains(t, request.Headers["Authorization"], " ", "the log keeps the scheme alone")
	}
}

func TestWritesHappenOncePerKey(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	writes := api.URL() + "/api/v1/writes"
	post := func(url, body, key string) answer { return send(t, "POST", url, body, "Idempotency-Key: "+key) }

	require.Equal(t, 400, send(t, "POST", writes, "{}").status)
	require.Equal(t, 201, post(writes, `{"a":1}`, "k1").status)
	again := post(writes, `{"a":1}`, "k1")
	require.Equal(t, 200, again.status)
	require.Equal(t, map[string]any{"id": 1.0, "key": "k1", "stored": false}, again.json)
	require.Equal(t, 422, post(writes, `{"a":2}`, "k1").status)

	require.Equal(t, 503, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 503, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 200, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 201, post(writes+"?scenario=other", "{}", "k1").status)

	listed := get(t, writes)
	require.Equal(t, 2.0, listed.at("total"))
	require.Equal(t, []any{
		map[string]any{"id": 1.0, "key": "k1", "body": map[string]any{"a": 1.0}, "attempts": 3.0},
		map[string]any{"id": 2.0, "key": "k2", "body": "text", "attempts": 3.0},
	}, listed.at("data"))
	require.Len(t, api.Writes(""), 2)
	require.Len(t, api.Writes("other"), 1)
	api.Reset("default")
	require.Empty(t, api.Writes(""))
}

func TestWritesHappenOncePerKeyUnderConcurrency(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	var group sync.WaitGroup
	statuses := make(chan int, 20)
	for range 20 {
		group.Go(func() {
			request, _ := http.NewRequest("POST", api.URL()+"/api/v1/writes", strings.NewReader("1"))
			request.Header.Set("Idempotency-Key", "k")
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				statuses <- response.StatusCode
			}
		})
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	require.Equal(t, map[int]int{201: 1, 200: 19}, count)
	require.Equal(t, 20, api.Writes("")[0].Attempts)
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	clock := newClock()
	api := start(t, demoapi.Options{Now: clock.now, LogSize: 3})
	clock.advance(time.Second)
	get(t, api.URL()+"/echo?a=1", "X-Scenario: s1", "User-Agent: test", "X-Secret: no")
	clock.advance(time.Second)
	_, err := http.Post(api.URL()+"/drop", "text/plain", nil)
	require.ErrorIs(t, err, io.EOF)
	get(t, api.URL()+"/healthz")

	log := get(t, api.URL()+"/requests")
	require.Equal(t, 2.0, log.at("total"))
	require.Equal(t, map[string]any{
		"n": 1.0, "method": "GET", "path": "/echo", "query": "a=1", "scenario": "s1", "status": 200.0,
		"at_ms": 1000.0, "done_ms": 1000.0, "headers": map[string]any{"User-Agent": "test", "X-Scenario": "s1"},
	}, log.at("requests").([]any)[0])
	require.Equal(t, 0, api.Requests("default")[0].Status, "dropped without an answer")
	require.Equal(t, 1.0, get(t, api.URL()+"/requests?scenario=s1").at("total"))
	require.Equal(t, 1.0, get(t, api.URL()+"/requests?path=/dr").at("total"))

	for range 3 {
		get(t, api.URL()+"/status/200", "X-Scenario: s2")
	}
	require.Equal(t, 3, api.CountRequests("", ""), "bounded, the oldest go first")
	require.Equal(t, []int{3, 4, 5}, []int{api.Requests("")[0].N, api.Requests("")[1].N, api.Requests("")[2].N})
	require.Equal(t, 204, send(t, "DELETE", api.URL()+"/requests?scenario=s1", "").status)
	require.Equal(t, 3, api.CountRequests("s2", "/status/"))
	require.Equal(t, 204, send(t, "DELETE", api.URL()+"/requests", "").status)
	require.Empty(t, api.Requests(""))
}

func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	for range 5 {
		get(t, api.URL()+"/echo", "X-Scenario: one by one")
	}
	require.Equal(t, 1, api.MaxConcurrent("one by one"))

	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			request, _ := http.NewRequestWithContext(ctx, "GET", api.URL()+"/slow?ms=60000&scenario=together", nil)
			_, _ = http.DefaultClient.Do(request)
		})
	}
	require.Eventually(t, func() bool { return api.MaxConcurrent("together") == 4 }, 10*time.Second, 5*time.Millisecond)
	cancel()
	group.Wait()
	require.Equal(t, 0, api.MaxConcurrent("nobody"))
}

func TestLatency(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{Latency: 40 * time.Millisecond}).URL()
	begin := time.Now()
	get(t, base+"/api/v1/patients")
	require.GreaterOrEqual(t, time.Since(begin), 40*time.Millisecond)
}

func TestStartAndClose(t *testing.T) {
	t.Parallel()
	api := demoapi.New(demoapi.Options{})
	require.NoError(t, api.Close(), "never started")
	require.Empty(t, api.URL())
	ctx, cancel := context.WithCancel(t.Context())
	url, err := api.Start(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	require.Equal(t, url, api.URL())
	require.Contains(t, get(t, url+"/").text, "GET /api/v1/patients/{id}/medications")
	require.Equal(t, map[string]any{"status": "ok"}, get(t, url+"/healthz").json)
	_, err = api.Start(ctx, "127.0.0.1:0")
	require.ErrorContains(t, err, "it has been started before, on "+url)

	taken := demoapi.New(demoapi.Options{})
	_, err = taken.Start(ctx, strings.TrimPrefix(url, "http://"))
	require.ErrorContains(t, err, "address already in use")

	cancel()
	require.Eventually(t, func() bool {
		response, err := http.Get(url + "/healthz")
		if err == nil {
			_ = response.Body.Close()
		}
		return err != nil
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, api.Close())
	require.NoError(t, api.Close())
}
