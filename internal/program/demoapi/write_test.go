package demoapi_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

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
	require.Equal(t, 200, post(writes+"?other_body=keep", `{"a":3}`, "k1").status)

	require.Equal(t, 503, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 503, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 200, post(writes+"?fail_after=2", "text", "k2").status)
	require.Equal(t, 201, post(writes+"?scenario=other", "{}", "k1").status)

	listed := get(t, writes)
	require.Equal(t, 2.0, listed.at("total"))
	require.Equal(t, []any{
		map[string]any{
			"id": 1.0, "key": "k1", "body": map[string]any{"a": 1.0}, "attempts": 4.0,
			"others": []any{map[string]any{"a": 2.0}, map[string]any{"a": 3.0}},
		},
		map[string]any{"id": 2.0, "key": "k2", "body": "text", "attempts": 3.0},
	}, listed.at("data"))
	require.Len(t, api.Writes(""), 2)
	require.Len(t, api.Writes("other"), 1)
	api.Reset("default")
	require.Empty(t, api.Writes(""))
}

func TestWritesAreStoredWhenTheAnswerIsDropped(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	for _, key := range []string{"k1", "k2", "k3", "k4"} {
		request, err := http.NewRequest("POST", api.URL()+"/api/v1/writes?drop_every=2", http.NoBody)
		require.NoError(t, err)
		request.Header["Idempotency-Key"] = []string{key}
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if key == "k2" || key == "k4" {
			require.Error(t, err, key)
			continue
		}
		require.NoError(t, err, key)
		require.NoError(t, response.Body.Close())
	}
	require.Len(t, api.Writes(""), 4)
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
	testenv.Wait(t, group.Wait, "the answers to all writes")
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	require.Equal(t, map[int]int{201: 1, 200: 19}, count)
	require.Equal(t, 20, api.Writes("")[0].Attempts)
}
