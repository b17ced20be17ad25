package demoapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// start returns a server on a real listener, closed at the end of the test.
func start(t *testing.T, options demoapi.Options) *demoapi.Server {
	t.Helper()
	api := demoapi.New(options)
	_, err := api.Start(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return api
}

// answer is a response with its body read and, if it is JSON, decoded.
type answer struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

// send makes one request. Redirects are not followed. Each header is written
// "Name: value".
func send(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	a := answer{status: response.StatusCode, header: response.Header, text: string(raw)}
	if bytes.HasPrefix(raw, []byte("{")) {
		require.NoError(t, json.Unmarshal(raw, &a.json))
	}
	return a
}

func get(t *testing.T, url string, headers ...string) answer {
	t.Helper()
	return send(t, http.MethodGet, url, "", headers...)
}

// at walks the decoded body by keys.
func (a answer) at(keys ...string) any {
	var value any = a.json
	for _, key := range keys {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// ids returns the "id" of each row under the key.
func (a answer) ids(key string) []any {
	var ids []any
	rows, _ := a.at(key).([]any)
	for _, row := range rows {
		ids = append(ids, row.(map[string]any)["id"])
	}
	return ids
}

// numbers returns from..to as decoded JSON numbers.
func numbers(from, to int) []any {
	var all []any
	for n := from; n <= to; n++ {
		all = append(all, float64(n))
	}
	return all
}

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
