package http_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// withQuery is a worker whose connection api sends a key in the query and two headers.
func withQuery(t *testing.T, host string) *activities.Catalogue {
	t.Helper()

	text, err := json.Marshal(map[string]any{
		"query": map[string]any{"api_key": canary + "-key/1"}, "headers": map[string]any{"X-Key": canary + "-header", "X-Account": "acme"}, "host": host,
	})
	require.NoError(t, err)
	return withTokens(t, string(text))
}

func queryInput(t *testing.T, fields map[string]any) interpreter.ToolInput {
	t.Helper()

	in := tooltest.Input(fields)(t)
	in.Auth = "api"
	return in
}

// firstLines are those of the requests that a server has received.
func firstLines(s *tooltest.RecordingServer) (lines []string) {
	for _, received := range s.ReceivedRequests() {
		line, _, _ := strings.Cut(received, "\r\n")
		lines = append(lines, line)
	}
	return lines
}

func TestAKeyInTheQueryGoesToItsHostAlone(t *testing.T) {
	t.Parallel()

	other := tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/rows?"+r.URL.RawQuery, http.StatusFound) // as servers do, with the key
		case "/away":
			http.Redirect(w, r, other.URL+"/x?page=2&api_key="+canary+"-key%2F1", http.StatusFound)
		case "/leak":
			http.Redirect(w, r, other.URL+"/x?k="+canary+"-key%2F1", http.StatusFound)
		case "/rows":
			w.Header().Set("Link", fmt.Sprintf(`</rows?page=2&api_key=%s>; rel="next", <%s/z?api_key=%s&a=1>; rel="last"`, canary+"-key%2F1", other.URL, canary+"-key%2F1"))
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"next": "http://" + r.Host + r.RequestURI})
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.URL)
		}
	})
	c := withQuery(t, api.URL)

	result, err := tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/here", "params": map[string]any{"page": 1}}))
	require.NoError(t, err)
	require.Equal(t, api.URL+"/rows?page=1", result.Meta.URL)
	require.Equal(t, map[string]string{"next": api.URL + "/rows?page=2", "last": other.URL + "/z?a=1"}, result.Meta.Links)
	requireNoCanary(t, result)

	next := result.Data.Data.(map[string]any)["next"].(string)
	require.Equal(t, api.URL+"/rows?page=1&api_key=***", next)
	in := queryInput(t, map[string]any{"url": next})
	in.NextURL = true
	_, err = tooltest.CallHTTP(t, c, in)
	require.NoError(t, err)

	_, err = tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/away"}))
	require.NoError(t, err)

	_, err = tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/leak"}))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, "redirects", object.Type)
	require.Contains(t, object.Message, `would send a secret of connection "api" to `+other.URL)
	requireNoCanary(t, object)

	_, err = tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/fails", "params": map[string]any{"a": "b"}}))
	object = tooltest.ErrorObject(t, err)
	require.Contains(t, object.Message, "/fails?a=b")
	requireNoCanary(t, object)

	_, err = tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/x", "params": map[string]any{"api_key": "mine"}}))
	object = tooltest.ErrorObject(t, err)
	require.True(t, object.Final)
	require.Contains(t, object.Message, `params has "api_key", which connection "api" sends; remove it from params`)

	in = queryInput(t, map[string]any{"url": other.URL + "/x"})
	_, err = tooltest.CallHTTP(t, c, in)
	require.True(t, tooltest.ErrorObject(t, err).Final, "its credentials are for another host")

	const key = "api_key=" + canary + "-key%2F1"
	require.Equal(t, []string{
		"GET /here?page=1&" + key + " HTTP/1.1", "GET /rows?page=1&" + key + " HTTP/1.1", "GET /rows?page=1&" + key + " HTTP/1.1",
		"GET /away?" + key + " HTTP/1.1", "GET /leak?" + key + " HTTP/1.1", "GET /fails?a=b&" + key + " HTTP/1.1",
	}, firstLines(api))
	require.Equal(t, []string{"GET /x?page=2 HTTP/1.1"}, firstLines(other))
	require.NotContains(t, strings.Join(other.ReceivedRequests(), ""), canary)

	for _, received := range api.ReceivedRequests() {
		require.Contains(t, received, "X-Key: "+canary+"-header\r\n")
		require.Contains(t, received, "X-Account: acme\r\n")
	}
}

// A host that does not answer is an error without the key.
func TestAKeyInTheQueryIsInNoConnectionError(t *testing.T) {
	t.Parallel()

	c := withQuery(t, "http://127.0.0.1:1")
	_, err := tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/x", "params": map[string]any{"a": 1}}))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, interpreter.KindConnection, object.Kind)
	require.Contains(t, object.Message, "GET http://127.0.0.1:1/x?a=1: ")
	requireNoCanary(t, object)
}

func requireNoCanary(t *testing.T, v any) {
	t.Helper()

	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NotContains(t, string(text), canary)
	require.NotContains(t, string(text), "-key")
}
