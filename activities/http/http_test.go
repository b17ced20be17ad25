package http_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

func TestHTTPConforms(t *testing.T) {
	t.Parallel()

	api, url := tooltest.StartAPI(t)
	closed := tooltest.RefusingURL(t)

	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)

	c := activities.NewCatalogue(activities.Resources{
		MaxResponseBytes: 1 << 20,
		Connections:      activities.Connections{"elsewhere": "https://ana:s3cretpw@elsewhere.test"},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	fails := func(name, path string, kind interpreter.Kind, class interpreter.Class, typ string, status int, says string) tooltest.FailureCase {
		return tooltest.FailureCase{
			Name: name, Input: tooltest.Input(map[string]any{"url": url + path}),
			Kind: kind, Class: class, Type: typ, Status: status, Says: says,
		}
	}

	tooltest.Run(t, tooltest.Suite{
		Catalogue: c, Tool: "http", TakesAuth: true,
		Good:    tooltest.Input(map[string]any{"url": url + "/api/v1/orders", "params": map[string]any{"page": 2}}),
		Slow:    tooltest.Input(map[string]any{"url": url + "/slow?ms=60000"}),
		Large:   tooltest.Input(map[string]any{"url": url + "/body?bytes=400000"}),
		Secrets: []string{"s3cretpw", "s3crettoken", "s3cretquery"},
		Failures: []tooltest.FailureCase{
			fails("500", "/status/500?key=s3cretquery", "http", "retryable", "", 500, "HTTP 500 from GET http://127.0.0.1"),
			fails("429", "/status/429?retry_after=7", "http", "rate_limited", "", 429, "HTTP 429"),
			fails("404", "/status/404", "http", "final", "", 404, "HTTP 404"),
			fails("403 told to wait", "/status/403?retry_after=1", "http", "rate_limited", "", 403, "HTTP 403"),
			fails("cut short", "/truncated", "connection", "retryable", "eof", 0, "the body was cut short"),
			fails("dropped", "/drop?key=s3cretquery", "connection", "retryable", "eof", 0, "GET http://127.0.0.1"),
			fails("not JSON", "/not-json", "http", "retryable", "invalid_json", 200, "is declared as JSON but is not"),
			fails("too large", "/body?bytes=1100000", "payload_too_large", "final", "", 0, "larger than the limit of 1048576 bytes"),
			fails("too large unpacked", "/body?bytes=3000000&gzip=1", "payload_too_large", "final", "", 0, "larger than the limit of 1048576 bytes"),
			{
				Name: "refused", Input: tooltest.Input(map[string]any{"url": closed + "/x?token=s3crettoken"}),
				Kind: "connection", Class: "retryable", Type: "econnrefused", Says: "GET " + closed + "/x?token=***: dial tcp",
			},
			{
				Name: "dns", Input: tooltest.Input(map[string]any{"url": "http://ana:s3cretpw@does-not-exist.invalid/"}),
				Kind: "connection", Class: "retryable", Type: "dns", Says: "does-not-exist.invalid",
			},
			{
				Name: "untrusted certificate", Input: tooltest.Input(map[string]any{"url": untrusted.URL + "/?s3cretquery"}),
				Kind: "connection", Class: "retryable", Type: "tls", Says: "failed to verify certificate",
			},
			{
				Name: "no tls there", Input: tooltest.Input(map[string]any{"url": "https" + url[len("http"):] + "/"}),
				Kind: "connection", Class: "retryable", Type: "", Says: "server gave HTTP response to HTTPS client",
			},
			{
				Name: "no url", Input: tooltest.Input(map[string]any{"url": nil}),
				Kind: "tool", Class: "final", Says: `step "fetch": url is empty`,
			},
			{
				Name: "other scheme", Input: tooltest.Input(map[string]any{"url": "file:///etc/passwd"}),
				Kind: "tool", Class: "final", Says: "must start with http:// or https://",
			},
			{
				Name: "credentials for another host",
				Input: func(*testing.T) interpreter.ToolInput {
					return interpreter.ToolInput{Auth: "elsewhere", Fields: tooltest.Fields(map[string]any{"url": url + "/echo"})}
				},
				Kind: "tool", Class: "final", Says: `connection "elsewhere" is for https://elsewhere.test`,
			},
			{
				Name: "JSON announced as a form", Input: tooltest.Input(map[string]any{
					"url": url + "/echo", "method": "POST", "body": map[string]any{"a": 1}, "headers": map[string]any{"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
				}),
				Kind: "tool", Class: "final", Says: "headers announce application/x-www-form-urlencoded, but body is sent as JSON; use form instead of body",
			},
			{
				Name: "a form announced as JSON", Input: tooltest.Input(map[string]any{
					"url": url + "/echo", "method": "POST", "form": map[string]any{"a": 1}, "headers": map[string]any{"Content-Type": "application/json"},
				}),
				Kind: "tool", Class: "final", Says: "headers announce application/json, but form is sent as application/x-www-form-urlencoded",
			},
			{
				Name: "line break in a header", Input: tooltest.Input(map[string]any{
					"url": url + "/echo", "headers": map[string]any{"X-A": "a\r\nX-B: s3crettoken"},
				}),
				Kind: "tool", Class: "final", Says: "headers.X-A contains a line break",
			},
		},
		Write: &tooltest.WriteCase{
			Input: func(t *testing.T) interpreter.ToolInput {
				in := tooltest.Input(map[string]any{
					"url": url + "/api/v1/writes", "headers": map[string]any{"X-Scenario": t.Name()},
				})(t)
				in.Result = tooltest.Value([]any{map[string]any{"id": 1}})
				return in
			},
			Effect: func(t *testing.T, _ interpreter.ToolInput) any {
				t.Helper()
				return len(api.Writes(t.Name()))
			},
		},
	})
}

func TestHTTPRetryAfterReachesTheErrorObject(t *testing.T) {
	t.Parallel()

	_, url := tooltest.StartAPI(t)
	_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url + "/status/429?retry_after=7"})(t))
	object := tooltest.ErrorObject(t, err)

	require.NotNil(t, object.RetryAfter)
	require.InDelta(t, 7, *object.RetryAfter, 0)

	body, isMap := object.Body.Data.(map[string]any)
	require.True(t, isMap, "the body of an error is parsed: %v", object.Body.Data)
	require.Contains(t, body, "error")
}

// TestHTTPUnreadWaitIsInTheMessage: a wait that cannot be read is named, and is no wait.
func TestHTTPUnreadWaitIsInTheMessage(t *testing.T) {
	t.Parallel()

	_, url := tooltest.StartAPI(t)
	for said, named := range map[string]string{"soon": `; Retry-After is "soon", expected seconds`, "0": "", "-1": ""} {
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url + "/status/429?retry_after=" + said})(t))
		object := tooltest.ErrorObject(t, err)
		require.Nil(t, object.RetryAfter, said)
		require.Equal(t, interpreter.ClassRateLimited, object.Class)
		require.Contains(t, object.Message, "HTTP 429 from GET ")
		require.Equal(t, named != "", strings.Contains(object.Message, "Retry-After is"), object.Message)
		require.Contains(t, object.Message, named)
	}
}

func TestHTTPTimeoutOfABodyThatNeverEnds(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begin"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)

	in := tooltest.Input(map[string]any{"url": server.URL})(t)
	in.TimeoutSeconds = 0.2
	began := time.Now()
	_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), in)

	require.Equal(t, interpreter.KindTimeout, tooltest.ErrorObject(t, err).Kind)
	require.Less(t, time.Since(began), testenv.Within(10*time.Second))
}
