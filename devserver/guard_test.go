package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// ask sends one request, such as a browser sends for a page.
func ask(t *testing.T, method, url, host, body string, headers map[string]string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Host = host
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Empty(t, response.Header.Get("Access-Control-Allow-Origin"))
	return response.StatusCode, string(answer)
}

// startOf is a request of the HTTP form that starts a workflow.
const startOf = `{"workflowType": {"name": "PlaybookWorkflow"}, "taskQueue": {"name": "reprise"}}`

// TestPagesOfOtherSitesAreRefused: by the web UI and by an HTTP API that was asked for.
func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	api := freePort(t)
	p := startProcess(t, "--port", "0", "--http-port", api)
	_, uiPort, err := net.SplitHostPort(strings.TrimPrefix(p.ui, "http://"))
	require.NoError(t, err)
	for _, port := range []string{uiPort, api} {
		own := "http://127.0.0.1:" + port
		for name, row := range map[string]struct {
			host    string
			headers map[string]string
			refused bool
		}{
			"a program":                {host: "127.0.0.1:" + port},
			"its own page":             {host: "localhost:" + port, headers: map[string]string{"Origin": "http://localhost:" + port, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}},
			"a page elsewhere":         {host: "127.0.0.1:" + port, refused: true, headers: map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}},
			"a form elsewhere":         {host: "127.0.0.1:" + port, refused: true, headers: map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}},
			"another port":             {host: "localhost:" + port, refused: true, headers: map[string]string{"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}},
			"an older browser":         {host: "127.0.0.1:" + port, refused: true, headers: map[string]string{"Origin": "http://evil.example"}},
			"a page without an origin": {host: "127.0.0.1:" + port, refused: true, headers: map[string]string{"Origin": "null"}},
			"a name that leads here":   {host: "evil.example:" + port, refused: true, headers: map[string]string{"Origin": "http://evil.example:" + port, "Sec-Fetch-Site": "same-origin"}},
			"a name without a port":    {host: "evil.example", refused: true},
			"a name like an address":   {host: "127.0.0.1.evil.example:" + port, refused: true},
		} {
			for _, kind := range []string{"text/plain", "application/json"} {
				headers := map[string]string{"Content-Type": kind}
				for header, value := range row.headers {
					headers[header] = value
				}
				status, answer := ask(t, http.MethodPost, own+"/api/v1/namespaces/default/workflows/"+strings.ReplaceAll(name, " ", "-")+port+kind[:4], row.host, startOf, headers)
				if row.refused {
					require.Equal(t, http.StatusForbidden, status, "%s: %s", name, answer)
				} else {
					require.Equal(t, http.StatusOK, status, "%s: %s", name, answer)
				}
			}
			status, answer := ask(t, http.MethodGet, own+"/api/v1/namespaces", row.host, "", row.headers)
			if strings.HasPrefix(name, "a name") || row.headers["Sec-Fetch-Site"] == "same-site" || name == "a page elsewhere" {
				require.Equal(t, http.StatusForbidden, status, "%s: %s", name, answer)
			}
		}
	}
	list, err := dial(t, p.server).ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
	require.NoError(t, err)
	for _, run := range list.GetExecutions() {
		require.Regexp(t, "^(a-program|its-own-page)", run.GetExecution().GetWorkflowId())
	}
}

// TestNoHTTPAPIUnlessAskedFor: no port of the process answers HTTP.
func TestNoHTTPAPIUnlessAskedFor(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--port", "0", "--headless")
	ports := listening(t, p.cmd.Process.Pid)
	require.NotEmpty(t, ports)
	for _, port := range ports {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://127.0.0.1:"+port+"/api/v1/namespaces/default/workflows/any", strings.NewReader(startOf))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		require.Error(t, err, "port %s speaks HTTP", port)
	}
}

func TestWithAKeyOnlyThoseWhoKnowItAreServed(t *testing.T) {
	t.Setenv(keyVariable, "k-123")
	p := startProcess(t, "--port", "0")
	start := client.StartWorkflowOptions{ID: "stranger", TaskQueue: "greetings"}
	_, err := dial(t, p.server).ExecuteWorkflow(t.Context(), start, greetWorkflow, "world")
	require.ErrorContains(t, err, "unauthorized")
	options := client.Options{
		HostPort: p.server, Credentials: client.NewAPIKeyStaticCredentials("k-123"),
		ConnectionOptions: client.ConnectionOptions{TLSDisabled: true},
	}
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "hello world", greetOn(t, c, "keyed"))
	options.Credentials = client.NewAPIKeyStaticCredentials("k-124")
	wrong, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	defer wrong.Close()
	_, err = wrong.ExecuteWorkflow(t.Context(), start, greetWorkflow, "world")
	require.ErrorContains(t, err, "unauthorized")

	require.Empty(t, p.ui, "whoever asks the web UI needs no key, so it has no port")
	p.stopWith(t, os.Interrupt)
}

func TestOwnHost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		header, ip string
		want       bool
	}{
		{"127.0.0.1:8233", "127.0.0.1", true},
		{"localhost:8233", "127.0.0.1", true},
		{"localhost", "::1", true},
		{"[::1]:8233", "127.0.0.1", true},
		{"[::1]", "::1", true},
		{"192.0.2.7:8233", "192.0.2.7", true},
		{"192.0.2.7:8233", "0.0.0.0", true},
		{"192.0.2.8:8233", "192.0.2.7", false},
		{"192.0.2.8:8233", "127.0.0.1", false},
		{"evil.example:8233", "127.0.0.1", false},
		{"evil.example:8233", "0.0.0.0", false},
		{"localhost.evil.example", "127.0.0.1", false},
		{"", "127.0.0.1", false},
		{"[]", "127.0.0.1", false},
		{"127.0.0.1@evil.example", "127.0.0.1", false},
	} {
		require.Equal(t, row.want, ownHost(row.header, row.ip), "%q on %s", row.header, row.ip)
	}
}

// TestALinkLeadsHere: the user may follow one from any page, to read.
func TestALinkLeadsHere(t *testing.T) {
	t.Parallel()
	answer := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), loopback)
	for method, want := range map[string]int{http.MethodGet: http.StatusTeapot, http.MethodPost: http.StatusForbidden} {
		request := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8233/", nil)
		request.Header.Set("Sec-Fetch-Site", "cross-site")
		request.Header.Set("Sec-Fetch-Mode", "navigate")
		recorder := httptest.NewRecorder()
		answer.ServeHTTP(recorder, request)
		require.Equal(t, want, recorder.Code, method)
	}
}
