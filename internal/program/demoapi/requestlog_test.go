package demoapi_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

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
	require.Eventually(t, func() bool { return api.MaxConcurrent("together") == 4 }, testenv.Within(10*time.Second), 5*time.Millisecond)
	cancel()
	testenv.Wait(t, group.Wait, "the end of the requests")
	require.Equal(t, 0, api.MaxConcurrent("nobody"))
}
