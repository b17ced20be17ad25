package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
)

// TestCrowd: who has to go where there is no room.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		room int
		join string // senders of one letter; in capitals they are kept
		gone string // their places among all
	}{
		"room for all":                     {8, "abcabcab", ""},
		"the oldest":                       {8, "abcdefgh" + "i", "0"},
		"the oldest again":                 {8, "abcdefgh" + "ijk", "012"},
		"of who has the most":              {16, "abbbbbbbbbbbbbbb" + "c", "1"},
		"of who has the most, not oneself": {16, "abbbbbbbbbbbbbbb" + "aa", "12"},
		"oneself, who has the most":        {16, "abbbbbbbbbbbbbbb" + "bb", "12"},
		"the share is an eighth":           {16, "abcdefgabcdefgih" + "j", "0"},
		"more than the share":              {16, "abcdefgcbadefgcc" + "j", "2"},
		"those that are kept stay":         {4, "ABcd" + "ef", "23"},
		"all of the others are kept":       {4, "ABCD" + "e", "4"},
	} {
		require.Equal(t, row.gone, serve.CrowdOut(row.room, row.join), name)
	}
}

// TestAStallingClientMakesRoom: of more bodies than there is room for, the oldest go, and
// their senders are told.
func TestAStallingClientMakesRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart, func(o *serve.Options) { o.Limits.Room = 10 * serve.ArrivalCost })
	head := "POST /v1/playbooks/hello/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\nAuthorization: Bearer " + w.ops + "\r\n\r\n{"
	first := w.dial(head)
	w.stalled(30, "/v1/playbooks/hello/runs", "Content-Type: application/json\r\nAuthorization: Bearer "+w.ops+"\r\n")
	response, err := http.ReadResponse(bufio.NewReader(first), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
	for _, token := range []string{w.ci, w.ops} {
		require.Equal(t, http.StatusAccepted, w.start("hello/runs", token, `{"name": "`+strings.Repeat("x", 1000)+`"}`).status)
	}
}

// dial opens a connection and sends a text. What is read from it comes in time.
func (w *world) dial(text string) net.Conn {
	w.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = connection.Close() })
	require.NoError(w.t, connection.SetDeadline(time.Now().Add(testenv.Within(time.Minute))))
	_, err = io.WriteString(connection, text)
	require.NoError(w.t, err)
	return connection
}

// TestSlowBodies: a body that comes byte by byte is not waited for as long as a whole
// one may take, and one that comes fast enough is.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart, func(o *serve.Options) {
		o.Limits.Stall, o.Limits.Rate, o.Limits.Body = 500*time.Millisecond, 2000, time.Hour
	})
	const size = 10_000
	head := fmt.Sprintf("POST /v1/playbooks/hello/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nAuthorization: Bearer %s\r\n\r\n", size, w.ci)
	body := `{"name":"` + strings.Repeat("x", size-11) + `"}`
	for chunk, status := range map[int]int{1: http.StatusRequestTimeout, 500: http.StatusAccepted} {
		connection := w.dial(head)
		answered := make(chan int, 1)
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
		tick, left, got := time.NewTicker(50*time.Millisecond), body, 0
		for got == 0 {
			select {
			case got = <-answered:
			case <-tick.C:
				_, _ = io.WriteString(connection, left[:min(chunk, len(left))])
				left = left[min(chunk, len(left)):]
			}
		}
		tick.Stop()
		require.Equal(t, status, got, "%d bytes at a time", chunk)
	}
}

// TestManyConnections: those without a request make room for others, and those with one
// stay.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	under, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(o *serve.Options) {
		o.Limits.Connections = 20
		o.Start = func(context.Context, serve.Order) (serve.Begun, error) {
			close(under)
			<-release
			return serve.Begun{RunID: "run"}, nil
		}
	})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	ended := make(chan reply, 1)
	go func() { ended <- w.start("hello/runs", w.ci, `{}`) }()
	testenv.Receive(t, under, "a start that is held")
	for range 100 {
		w.dial("GET /healthz HTTP/1.1\r\n") // never whole
	}
	for range 5 {
		require.Equal(t, http.StatusOK, w.raw("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").StatusCode)
	}
	free()
	require.Equal(t, http.StatusAccepted, testenv.Receive(t, ended, "the answer to the start").status)
}

// TestSlotsOfOneCaller: who has many requests under way leaves places to others.
func TestSlotsOfOneCaller(t *testing.T) {
	t.Parallel()
	hold, under := make(chan struct{}), make(chan struct{}, 100)
	w := newWorld(t, func(o *serve.Options) {
		o.Limits.Requests = 8
		o.Start = func(ctx context.Context, order serve.Order) (serve.Begun, error) {
			if strings.HasPrefix(order.WorkflowID, "hello:ops:") {
				under <- struct{}{}
				<-hold
			}
			return serve.Begun{RunID: "run"}, nil
		}
	})
	free := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(free)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/playbooks/hello/runs", nil)
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+w.ops)
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	testenv.Receive(t, under, "a start that is held")
	testenv.Receive(t, under, "a start that is held")
	began := time.Now()
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{}`).status)
	require.Less(t, time.Since(began), atOnce)
	free()
	testenv.Wait(t, group.Wait, "the answers to all requests")
}

// TestStrangeRequests: extremes of URLs, bodies and headers are refused, and none is a
// mistake of ours.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 20_000)
	for _, path := range []string{"/v1/runs/%ff", "/v1/runs/%00", "/v1/runs/" + long, "/v1/runs/%2e%2e%2fhello", "/v1/runs/a%0Ab", "/v1/approvals/" + long, "/v1/approvals/%ff"} {
		require.Equal(t, http.StatusNotFound, w.ask(http.MethodGet, path, w.ci, nil).status, path[:min(len(path), 40)])
	}
	for _, path := range []string{"%ff/runs", "hello%00/runs", "hello%0a/runs", "hello%2fx/runs", long + "/runs"} {
		require.Equal(t, http.StatusNotFound, w.start(path, w.ci, `{}`).status, path[:min(len(path), 40)])
		require.Equal(t, http.StatusUnauthorized, w.start(path, "", `{}`).status, path[:min(len(path), 40)])
	}
	token := "Authorization: Bearer " + w.ci + "\r\nContent-Type: application/json\r\n"
	head := "POST /v1/playbooks/hello/runs HTTP/1.1\r\nHost: x\r\n" + token
	for lines, status := range map[string]int{
		"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}":                                     http.StatusUnsupportedMediaType,
		"Content-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b": http.StatusUnsupportedMediaType,
		"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":                                         http.StatusNotImplemented,
		"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n":                          http.StatusAccepted,
		"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}":                                          http.StatusBadRequest,
		"Content-Length: -1\r\n\r\n{}":                                                              http.StatusBadRequest,
		"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n":                                   http.StatusBadRequest,
		"Idempotency-Key: " + long + "\r\nContent-Length: 2\r\n\r\n{}":                              http.StatusBadRequest,
		"Idempotency-Key: a\r\nidempotency-key: a\r\nContent-Length: 2\r\n\r\n{}":                   http.StatusBadRequest,
		strings.Repeat("X-A: b\r\n", 3000) + "Content-Length: 2\r\n\r\n{}":                          http.StatusAccepted,
		strings.Repeat("X-A: b\r\n", 9000) + "Content-Length: 2\r\n\r\n{}":                          http.StatusRequestHeaderFieldsTooLarge,
	} {
		require.Equal(t, status, w.raw(head+lines).StatusCode, "%.60q", lines)
	}
	require.NotContains(t, w.log.String(), "a request failed")
}

// TestPipelining: requests of one connection are done one after the other, each once.
func TestPipelining(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	const many = 500
	request := "POST /v1/playbooks/hello/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.ci + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	connection := w.dial("")
	go func() { _, _ = io.WriteString(connection, strings.Repeat(request, many)) }()
	reader := bufio.NewReader(connection)
	for range many {
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, response.StatusCode)
	}
}

// TestCallersHaveNoPartInTraces: what they say of traces goes nowhere.
func TestCallersHaveNoPartInTraces(t *testing.T) {
	t.Parallel()
	began := make(chan context.Context, 1)
	w := newWorld(t, func(o *serve.Options) {
		o.Start = func(ctx context.Context, order serve.Order) (serve.Begun, error) {
			began <- ctx
			if len(order.Memo) != 1 || len(order.Workload) != 0 {
				return serve.Begun{}, fmt.Errorf("more was handed on: %v %v", order.Memo, order.Workload)
			}
			return serve.Begun{RunID: "run"}, nil
		}
	})
	given := w.start("hello/runs", w.ci, `{}`, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"Tracestate", "a=b", "Baggage", "password=of-somebody")
	require.Equal(t, http.StatusAccepted, given.status, string(given.body))
	ctx := testenv.Receive(t, began, "the start of the run")
	require.False(t, trace.SpanContextFromContext(ctx).IsValid())
	require.Zero(t, baggage.FromContext(ctx).Len())
	for name := range given.header {
		require.NotContains(t, strings.ToLower(name), "trace")
	}
	require.NotContains(t, w.log.String(), "of-somebody")
}
