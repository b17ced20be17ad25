package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/program/serve"
)

const tick = 20 * time.Millisecond

// quickStart starts nothing and says that it did.
func quickStart(options *serve.Options) {
	options.Start = func(context.Context, serve.Order) (serve.Begun, error) { return serve.Begun{RunID: "run"}, nil }
}

func newToken(name string) (token, line string, err error) {
	return serve.NewToken(name, nil, serve.RoleNone)
}

// rewriteCallers writes the file of callers so that its time or size differs.
func (w *world) rewriteCallers(text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.callers, []byte(text), 0o600))
	later := time.Now().Add(time.Hour)
	require.NoError(w.t, os.Chtimes(w.callers, later, later))
}

// raw sends bytes as they are and reads one answer.
func (w *world) raw(text string) *http.Response {
	w.t.Helper()
	connection := w.dial(text)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	const asJSON = "application/json"
	for name, row := range map[string]struct {
		kind, body string
		status     int
		says       string
	}{
		"no JSON":         {asJSON, `{"a": }`, 400, "the body: not JSON"},
		"two values":      {asJSON, `{} {}`, 400, "more text after the value"},
		"no object":       {asJSON, `[1]`, 400, "must be a JSON object, not a list"},
		"null":            {asJSON, `null`, 400, "must be a JSON object"},
		"a key twice":     {asJSON, `{"a": 1, "a": 2}`, 400, "occurs twice"},
		"a key below":     {asJSON, `{"a": [{"b": 1, "b": 2}]}`, 400, "occurs twice"},
		"invalid UTF-8":   {asJSON, "{\"a\": \"\xff\"}", 400, "not valid UTF-8"},
		"too deep":        {asJSON, `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, 400, "1000"},
		"long number":     {asJSON, `{"a":` + strings.Repeat("9", 2000) + `}`, 400, "1000"},
		"half":            {asJSON, `{"a": "b`, 400, "not JSON"},
		"spaces":          {asJSON, `   `, 400, "empty"},
		"form":            {"application/x-www-form-urlencoded", `a=1`, 415, "application/json"},
		"no type":         {"", `{}`, 415, "application/json"},
		"another charset": {"application/json; charset=latin1", `{}`, 415, "application/json"},
		"bad type":        {"application/json; charset", `{}`, 415, "application/json"},
		"just fits":       {asJSON, `{"a":"` + strings.Repeat("x", serve.MaxBody-8) + `"}`, 202, ""},
		"one byte more":   {asJSON, `{"a":"` + strings.Repeat("x", serve.MaxBody-7) + `"}`, 413, "1048576"},
		"with charset":    {"application/json; charset=UTF-8", `{}`, 202, ""},
	} {
		given := w.ask(http.MethodPost, "/v1/playbooks/hello/runs", w.ci, strings.NewReader(row.body), "Content-Type", row.kind)
		require.Equal(t, row.status, given.status, "%s: %s", name, given.body)
		if row.says != "" {
			require.Contains(t, given.values["detail"], row.says, name)
		}
	}
	encoded := w.start("hello/runs", w.ci, `{}`, "Content-Encoding", "gzip")
	require.Equal(t, http.StatusUnsupportedMediaType, encoded.status)
	for _, wait := range []string{"61s", "-1s", "x", "", "NaN", "1e9", "2m"} {
		require.Equal(t, http.StatusBadRequest, w.start("hello/runs?wait="+wait, w.ci, `{}`).status, wait)
	}
	for _, key := range []string{"", "ünder", strings.Repeat("k", 256), "tab\there"} {
		require.Equal(t, http.StatusBadRequest, w.start("hello/runs", w.ci, `{}`, "Idempotency-Key", key).status, key)
	}
	require.Equal(t, http.StatusBadRequest, w.start("hello/runs", w.ci, `{}`, "Idempotency-Key", "a", "Idempotency-Key", "b").status)
}

// TestQueryParametersThatAreNone are refused on every path, with those that it has;
// pages take any, as what sends their links adds some.
func TestQueryParametersThatAreNone(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("query", approval)
	fill := strings.NewReplacer("{name}", "hello", "{id}", "x", "{token}", token)
	for route, takes := range serve.New(a.options).QueryOf() {
		method, path, _ := strings.Cut(route, " ")
		says := "this path accepts: none"
		if len(takes) > 0 {
			says = "this path accepts: " + strings.Join(takes, ", ")
		}
		for query, why := range map[string]string{"wiat=30s": `unknown query parameter "wiat"`, "=1": `unknown query parameter ""`, "%zz": "not valid", "a;b": "not valid"} {
			given := a.world.ask(method, fill.Replace(path)+"?"+query, a.ci, strings.NewReader(`{}`), "Content-Type", "application/json")
			require.Equal(t, http.StatusBadRequest, given.status, "%s?%s: %s", route, query, given.body)
			require.Contains(t, given.values["detail"], why, route)
			require.Contains(t, given.values["detail"], says, route)
		}
	}
	twice := a.start("hello/runs?wait=1s&wait=30s", a.ci, `{}`)
	require.Equal(t, http.StatusBadRequest, twice.status)
	require.Contains(t, twice.values["detail"], "twice")
	shown := a.open(token + "?utm_source=mail")
	require.Equal(t, http.StatusOK, shown.status)
	require.NoError(t, a.env.Client().CancelWorkflow(t.Context(), run.GetID(), ""))
	require.EqualValues(t, "cancelled", a.ends(run).Status)
}

// endless is a body of any size that takes no memory.
type endless struct {
	size int64
	read atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := min(int64(len(p)), e.size-e.read.Load())
	if n == 0 {
		return 0, io.EOF
	}
	copy(p[:n], bytes.Repeat([]byte("x"), int(n)))
	e.read.Add(n)
	return int(n), nil
}

// TestLargeBodies: of 100 MB that nobody said before little is read.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	const size = 100 << 20
	for _, token := range []string{w.ci, ""} { // of a caller, and of somebody who may have signed it
		for _, said := range []int64{-1, size} {
			body := &endless{size: size}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/playbooks/signed/runs", io.NopCloser(body))
			require.NoError(t, err)
			request.ContentLength = said
			request.Header.Set("Content-Type", "application/json")
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(request)
			if err != nil { // the server has closed the connection while we went on sending
				require.Regexp(t, "connection|broken pipe", err.Error())
				continue
			}
			require.Equal(t, http.StatusRequestEntityTooLarge, w.read(request, response).status)
			require.Less(t, body.read.Load(), int64(size/2))
		}
	}
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{}`).status)
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart, func(o *serve.Options) {
		o.Limits = serve.Limits{Header: 500 * time.Millisecond, Body: 500 * time.Millisecond, Requests: 1, Deliveries: 1}
	})
	head := "POST /v1/playbooks/hello/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n"
	require.Equal(t, http.StatusRequestTimeout, w.raw(head+"Authorization: Bearer "+w.ci+"\r\n\r\n"+`{"a`).StatusCode)
	require.Equal(t, http.StatusRequestTimeout, w.raw(head+"\r\n"+`{"a`).StatusCode)
	rest, err := io.ReadAll(w.dial(head)) // until the server has enough
	require.NoError(t, err)
	require.NotContains(t, string(rest), "202")
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{}`).status, "every place was given back")
}

// TestWaitIsLongerThanABody: the time for the body does not end a wait.
func TestWaitIsLongerThanABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *serve.Options) { o.Limits.Body = 300 * time.Millisecond })
	began := time.Now()
	given := w.start("hello/runs?wait=2s", w.ci, `{}`)
	require.Equal(t, http.StatusAccepted, given.status)
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	began = time.Now()
	status := w.ask(http.MethodGet, given.header.Get("Location")+"?wait=1s", w.ci, nil)
	require.Equal(t, "running", status.values["status"])
	require.GreaterOrEqual(t, time.Since(began), time.Second)
}

// TestOddRequests passes maxHeader.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	token := "Authorization: Bearer " + w.ci + "\r\n"
	old := w.raw("POST /v1/playbooks/hello/runs HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n" + token + "\r\n{}")
	require.Equal(t, http.StatusAccepted, old.StatusCode)
	require.Equal(t, http.StatusOK, w.raw("GET /healthz HTTP/1.0\r\n\r\n").StatusCode)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge,
		w.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 64<<10)+"\r\n\r\n").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Bad: a\x01b\r\n\r\n").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.raw("GET /v1/runs/%zz HTTP/1.1\r\nHost: x\r\n\r\n").StatusCode)
	require.Equal(t, http.StatusUnauthorized, w.raw("GET /v1/runs/x HTTP/1.1\r\nHost: x\r\n"+token+token+"\r\n").StatusCode, "two tokens are none")

	for path, allowed := range map[string]string{
		"/healthz": "GET, HEAD", "/v1/openapi.json": "GET, HEAD", "/v1/playbooks/hello/runs": "POST", "/v1/runs/x": "GET, HEAD",
	} {
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "ODD"} {
			given := w.ask(method, path, w.ci, nil)
			require.Equal(t, http.StatusMethodNotAllowed, given.status, "%s %s", method, path)
			require.Equal(t, allowed, given.header.Get("Allow"))
			require.Equal(t, "urn:reprise:problem:method-not-allowed", given.values["type"])
		}
	}
	for _, path := range []string{"/", "/v1", "/healthz/", "/v1/playbooks/hello/runs/", "//healthz", "/v1/../healthz", "/v1/./healthz", "/v1/runs/"} {
		require.Equal(t, http.StatusNotFound, w.ask(http.MethodGet, path, w.ci, nil).status, path)
	}
	require.Equal(t, http.StatusNotFound, w.start("../playbooks/hello/runs", w.ci, `{}`).status)
}

var errAway = serviceerror.NewUnavailable("away")

func TestServerIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *serve.Options) {
		o.Client = failingClient{o.Client, errAway}
		o.Start = func(context.Context, serve.Order) (serve.Begun, error) {
			return serve.Begun{}, fmt.Errorf("start the run: %w", errAway)
		}
	})
	for _, given := range []reply{w.ask(http.MethodGet, "/healthz", "", nil), w.start("hello/runs", w.ci, `{}`)} {
		require.Equal(t, http.StatusServiceUnavailable, given.status)
		require.Equal(t, "5", given.header.Get("Retry-After"))
		require.Contains(t, given.values["detail"], "does not respond")
	}
}

// TestMistakesOfOurs: what the log says is not told to callers.
func TestMistakesOfOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *serve.Options) {
		o.Start = func(_ context.Context, order serve.Order) (serve.Begun, error) {
			if order.Workload["panic"] != nil {
				panic("a mistake")
			}
			return serve.Begun{}, errors.New("the disk is full")
		}
	})
	for _, body := range []string{`{}`, `{"panic": true}`} {
		given := w.start("hello/runs", w.ci, body)
		require.Equal(t, http.StatusInternalServerError, given.status)
		require.NotContains(t, string(given.body), "mistake")
		require.NotContains(t, string(given.body), "disk")
	}
	require.Contains(t, w.log.String(), "the disk is full")
	require.Contains(t, w.log.String(), "a mistake")
}

// failingClient is one whose questions all fail.
type failingClient struct {
	client.Client
	err error
}

func (f failingClient) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return nil, f.err
}

func (f failingClient) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, f.err
}

func (f failingClient) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, f.err
}

func (f failingClient) SignalWorkflow(context.Context, string, string, string, any) error {
	return f.err
}
