package demoapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

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
	require.ErrorContains(t, err, "it is already running on "+url)

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
	}, testenv.Within(10*time.Second), 5*time.Millisecond)
	require.NoError(t, api.Close())
	require.NoError(t, api.Close())
}
