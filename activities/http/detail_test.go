package http_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// mirror answers with what it was sent.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s\n", r.Method, r.Host, r.URL.RequestURI())

		for _, name := range []string{"Content-Type", "Accept", "Authorization", "Idempotency-Key", "User-Agent", "X-Many", "X-Api-Key", "Cookie"} {
			for _, v := range r.Header.Values(name) {
				fmt.Fprintf(w, "%s: %s\n", name, v)
			}
		}

		fmt.Fprintf(w, "[%s]", body)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestHTTPRequests(t *testing.T) {
	t.Parallel()

	server := mirror(t)
	host := strings.TrimPrefix(server.URL, "http://")

	const usual = "Accept: application/json, */*;q=0.5\n"

	for name, c := range map[string]struct {
		fields map[string]any
		key    string
		want   string
	}{
		"plain": {
			map[string]any{"url": server.URL + "/x?a=%2F&sig=b+c"},
			"",
			"GET " + host + " /x?a=%2F&sig=b+c\n" + usual + "User-Agent: reprise\n[]",
		},
		"params replace and repeat": {
			map[string]any{
				"url":    server.URL + "/x?page=1&sig=b+c%2f",
				"params": map[string]any{"page": 2, "q": "ä &", "ids": []any{1, 2}, "none": nil, "on": true},
			},
			"", "GET " + host + " /x?sig=b+c%2f&ids=1&ids=2&on=true&page=2&q=%C3%A4+%26\n" + usual + "User-Agent: reprise\n[]",
		},
		"JSON body with exact numbers": {
			map[string]any{"url": server.URL, "method": "post", "body": map[string]any{"b": 9007199254740993, "a": "<&>"}},
			"op-1",
			"POST " + host + " /\nContent-Type: application/json\n" + usual +
				"Idempotency-Key: op-1\nUser-Agent: reprise\n[{\"a\":\"<&>\",\"b\":9007199254740993}]",
		},
		"text body": {
			map[string]any{"url": server.URL, "method": "PUT", "body": "héllo"},
			"",
			"PUT " + host + " /\nContent-Type: text/plain; charset=utf-8\n" + usual + "User-Agent: reprise\n[héllo]",
		},
		"form": {
			map[string]any{"url": server.URL, "method": "POST", "form": map[string]any{"b": "x y", "a": 1}},
			"",
			"POST " + host + " /\nContent-Type: application/x-www-form-urlencoded\n" + usual + "User-Agent: reprise\n[a=1&b=x+y]",
		},
		"headers of the author win": {
			map[string]any{"url": server.URL, "method": "POST", "body": "<a/>", "headers": map[string]any{
				"content-type": "text/xml", "accept": "text/xml", "idempotency-key": "mine", "x-many": []any{1, "b"}, "X-None": nil, "Host": "other.test",
			}},
			"op-1", "POST other.test /\nContent-Type: text/xml\nAccept: text/xml\nIdempotency-Key: mine\nUser-Agent: reprise\nX-Many: 1\nX-Many: b\n[<a/>]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := tooltest.Input(c.fields)(t)
			in.IdempotencyKey = c.key
			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), in)
			require.NoError(t, err)

			text, _ := result.Data.Data.(string)
			require.Equal(t, sortedHeaders(c.want), sortedHeaders(text))
		})
	}
}

// sortedHeaders leaves the order of headers out of a comparison.
func sortedHeaders(text string) map[string]int {
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		lines[line]++
	}
	return lines
}

func TestHTTPResponses(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		contentType string
		body        string
		want        any
	}{
		"exact numbers": {"application/json", `{"n": 9007199254740993, "x": 1.5}`, map[string]any{"n": 9007199254740993, "x": 1.5}},
		"vendor JSON":   {"application/vnd.api+json; charset=utf-8", `[1]`, []any{1}},
		"no body":       {"application/json", "", nil},
		"text":          {"text/plain", "12", "12"},
		"latin1":        {"text/plain; charset=iso-8859-1", "caf\xe9", "café"},
		"any type":      {"application/octet-stream", "a,b\n1,ü", "a,b\n1,ü"},
		"packed text":   {"application/gzip", tooltest.Gzip("a,b\n1,2\n"), "a,b\n1,2\n"},
		"packed JSON":   {"application/json", tooltest.Gzip(`{"a": 1}`), map[string]any{"a": 1}},
		"not packed":    {"application/x-gzip", "as it is", "as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(server.Close)

			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL})(t))
			require.NoError(t, err)
			require.Equal(t, c.want, result.Data.Data)
			require.Equal(t, 200, result.Meta.Status)
		})
	}
}

// TestHTTPBodiesThatAreNoText: bytes that no text can hold are an error that says
// what came, and never a text that looks like an answer.
func TestHTTPBodiesThatAreNoText(t *testing.T) {
	t.Parallel()

	const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

	for name, test := range map[string]struct{ contentType, body, says string }{
		"image":           {"image/png", png, "is not text: image/png, 16 bytes"},
		"zip":             {"application/zip", "PK\x03\x04\x14\x00\xff", "the body was cut short: the archive cannot be read"},
		"no type":         {"", "a\xff\xfe\x01", "is not text: "},
		"octets":          {"application/octet-stream", "a\xff", "is not text: application/octet-stream, 2 bytes"},
		"nul":             {"text/plain", "a\x00b", "is not text: text/plain, 3 bytes"},
		"packed tar":      {"application/gzip", tooltest.Gzip("x\x00\x00y"), "is not text: application/gzip, 4 bytes"},
		"a bomb":          {"application/gzip", tooltest.Gzip(strings.Repeat("a", 2000)), "larger than the limit of 1000 bytes"},
		"packed and torn": {"application/gzip", tooltest.Gzip(strings.Repeat("abc", 100))[:20], "the body was cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = nil
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}

				if r.URL.Path == "/missing" {
					w.WriteHeader(http.StatusNotFound)
				}

				_, _ = io.WriteString(w, test.body)
			}))
			t.Cleanup(server.Close)

			c := activities.NewCatalogue(activities.Resources{MaxResponseBytes: 1000})
			t.Cleanup(func() { require.NoError(t, c.Close()) })

			_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": server.URL})(t))
			object := tooltest.ErrorObject(t, err)
			require.Contains(t, object.Message, test.says)

			if strings.Contains(test.says, "no text") {
				require.Equal(t, [2]string{"final", "not_text"}, [2]string{string(object.Class), object.Type})
				require.Nil(t, object.Body.Data)
			}

			_, err = tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": server.URL + "/missing"})(t))
			object = tooltest.ErrorObject(t, err)
			require.Equal(t, 404, object.Status)
			body, _ := object.Body.Data.(string)
			require.NotContains(t, body, "\uFFFD")
		})
	}
}

func TestHTTPMeta(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/v1/new?page=2", http.StatusFound)
			return
		}

		w.Header().Add("Link", `<?page=3>; title="a, b; c"; rel="next", </v1/new?page=1>; rel=prev`)
		w.Header().Add("Link", `<https://else.test/x>; rel="last alternate", <ignored; rel="broken"`)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
	}))
	t.Cleanup(server.Close)

	result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL + "/old"})(t))
	require.NoError(t, err)
	require.Equal(t, server.URL+"/v1/new?page=2", result.Meta.URL)
	require.Equal(t, "1, 2", result.Meta.Headers["x-two"])
	require.Equal(t, map[string]string{
		"next": server.URL + "/v1/new?page=3", "prev": server.URL + "/v1/new?page=1",
		"last": "https://else.test/x", "alternate": "https://else.test/x",
	}, result.Meta.Links)

	result, err = tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL + "/old", "follow_redirects": false})(t))
	require.NoError(t, err)
	require.Equal(t, 302, result.Meta.Status)
	require.Equal(t, "/v1/new?page=2", result.Meta.Headers["location"])
}

// TestHTTPStopsCircularRedirects passes maxRedirects.
func TestHTTPStopsCircularRedirects(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusFound)
	}))
	t.Cleanup(server.Close)

	_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL})(t))
	object := tooltest.ErrorObject(t, err)

	require.EqualValues(t, "final", object.Class)
	require.Contains(t, object.Message, "stopped after 10 redirects from GET "+server.URL)
}

func TestHTTPConnections(t *testing.T) {
	t.Parallel()

	var sent http.Header // what the answer says of credentials is masked

	answers := mirror(t).Config.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{
		"basic":  strings.Replace(server.URL, "http://", "http://ana:p%40ss@", 1) + "/v1/",
		"bearer": "bearer:tok-123456",
		"header": "header:X-Api-Key: key-123456",
		"broken": "header:no value-123456",
		"ftp":    "ftp://ana:s3cret@host",
	}})

	says := func(auth, url string) string {
		in := tooltest.Input(map[string]any{"url": url})(t)
		in.Auth = auth
		result, err := tooltest.CallHTTP(t, c, in)
		require.NoError(t, err)

		text, _ := result.Data.Data.(string)
		return text
	}

	require.Contains(t, says("basic", server.URL+"/x"), "Authorization: Basic ***\n")
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("ana:p@ss")), sent.Get("Authorization"))
	require.Contains(t, says("basic", "patients?page=2"), " /v1/patients?page=2\n")
	require.Contains(t, says("bearer", server.URL), "Authorization: Bearer ***\n")
	require.Equal(t, "Bearer tok-123456", sent.Get("Authorization"))
	require.Contains(t, says("header", server.URL), "X-Api-Key: ***\n")
	require.Equal(t, "key-123456", sent.Get("X-Api-Key"))

	for _, name := range []string{"broken", "ftp"} {
		in := tooltest.Input(map[string]any{"url": server.URL})(t)
		in.Auth = name
		_, err := tooltest.CallHTTP(t, c, in)
		object := tooltest.ErrorObject(t, err)

		require.Contains(t, object.Message, fmt.Sprintf("connection %q cannot be used by http: it must be https://user:password@host", name))
		require.NotContains(t, object.Message, "123456")
		require.NotContains(t, object.Message, "s3cret")
		require.True(t, object.Final)
	}
}

// A server that repeats what it was sent must not bring a token into the
// history.
func TestHTTPSecretsThatTheServerRepeatsAreMasked(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error": "bad token", "sent": [%q]}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:tok-123456"}})
	in := tooltest.Input(map[string]any{"url": server.URL})(t)
	in.Auth = "api"
	_, err := tooltest.CallHTTP(t, c, in)

	require.Equal(t, map[string]any{"error": "bad token", "sent": []any{"Bearer ***"}}, tooltest.ErrorObject(t, err).Body.Data)
}

// The author asked for gzip by hand, so the transport leaves the body alone.
func TestHTTPUnpacksWhatTheAuthorAskedFor(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")

		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, `{"ok": true}`)
		_ = packed.Close()
	}))
	t.Cleanup(server.Close)

	result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{
		"url": server.URL, "headers": map[string]any{"Accept-Encoding": "gzip"},
	})(t))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"ok": true}, result.Data.Data)
}

func TestHTTPSinkBodies(t *testing.T) {
	t.Parallel()

	server := mirror(t)

	for name, c := range map[string]struct {
		fields map[string]any
		args   any
		want   string
	}{
		"result":         {nil, nil, `[[{"id":1}]]`},
		"args":           {nil, map[string]any{"a": 1}, `[{"a":1}]`},
		"its own body":   {map[string]any{"body": "text"}, nil, "[text]"},
		"another method": {map[string]any{"method": "PUT"}, nil, `[[{"id":1}]]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			fields := map[string]any{"url": server.URL}
			for key, v := range c.fields {
				fields[key] = v
			}

			in := interpreter.ToolInput{Fields: tooltest.Fields(fields), Result: tooltest.Value([]any{map[string]any{"id": 1}})}
			if c.args != nil {
				in.Args = tooltest.Value(c.args)
			}

			result, err := tooltest.Call(t, activities.DefaultCatalogue(), "http.write", "http", in)
			require.NoError(t, err)

			method := "POST"
			if fields["method"] != nil {
				method = "PUT"
			}

			require.True(t, strings.HasPrefix(result.Data.Data.(string), method+" "))
			require.Contains(t, result.Data.Data, c.want)
		})
	}
}

// The headers of a failed answer are there for conditions, bounded, and without
// what carries credentials.
func TestHTTPHeadersOfAFailedAnswer(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := w.Header()
		headers.Set("X-RateLimit-Remaining", "0")
		headers.Add("X-Several", "a")
		headers.Add("X-Several", "b")
		headers.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		headers.Set("X-RateLimit-Remaining-Tokens", "7")
		headers.Set("X-Sent", r.Header.Get("Authorization"))

		for _, name := range []string{"Set-Cookie", "Authentication-Info", "X-Auth-Token", "X-Api-Key", "Token", "X-Vault-Secret"} {
			headers.Set(name, "credential-of-the-server")
		}

		switch r.URL.Path {
		case "/long":
			headers.Set("X-Long", strings.Repeat("x", 10<<10))
		case "/many":
			for i := range 150 {
				headers.Set(fmt.Sprintf("X-%03d", i), "v")
			}
		case "/large":
			for i := range 10 {
				headers.Set(fmt.Sprintf("X-%03d", i), strings.Repeat("x", 8000))
			}
		case "/json":
			headers.Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			return
		}

		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:tok-123456"}})
	failed := func(path string) map[string]string {
		in := tooltest.Input(map[string]any{"url": server.URL + path})(t)
		in.Auth = "api"
		_, err := tooltest.CallHTTP(t, c, in)
		object := tooltest.ErrorObject(t, err)
		encoded, err := json.Marshal(object)
		require.NoError(t, err)
		require.NotContains(t, string(encoded), "credential-of-the-server")
		require.NotContains(t, string(encoded), "tok-123456")
		return object.Headers
	}

	headers := failed("/")
	delete(headers, "date")
	require.Equal(t, map[string]string{
		"x-ratelimit-remaining": "0", "x-several": "a, b", "www-authenticate": `Bearer error="invalid_token"`,
		"x-ratelimit-remaining-tokens": "7", "x-sent": "Bearer ***", "content-length": "0",
	}, headers)
	require.Equal(t, "0", failed("/json")["x-ratelimit-remaining"], "a body that is not the JSON it says it is")
	require.Len(t, failed("/long")["x-long"], 8<<10)
	require.Len(t, failed("/many"), 100)

	size := 0
	for name, value := range failed("/large") {
		size += len(name) + len(value)
	}

	require.LessOrEqual(t, size, 32<<10)
	require.Greater(t, size, 24<<10)
}

// What an answer says about limits, with the statuses that servers use.
func TestHTTPLimits(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.URL.Query() {
			w.Header().Set(name, values[0])
		}

		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			panic(err)
		}

		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)

	inAMinute := strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)

	for name, test := range map[string]struct {
		status  int
		headers map[string]any
		class   interpreter.Class
		wait    float64 // seconds, -1 for none
	}{
		"github":               {403, map[string]any{"X-RateLimit-Remaining": 0, "X-RateLimit-Reset": inAMinute}, interpreter.ClassRateLimited, 60},
		"forbidden":            {403, map[string]any{"X-RateLimit-Remaining": 4999, "X-RateLimit-Reset": inAMinute}, interpreter.ClassFinal, -1},
		"forbidden, not told":  {403, map[string]any{"X-RateLimit-Reset": inAMinute}, interpreter.ClassFinal, 60},
		"unavailable":          {503, map[string]any{"RateLimit": `"default";r=0;t=60`}, interpreter.ClassRateLimited, 60},
		"unavailable, a reset": {503, map[string]any{"RateLimit-Reset": 60}, interpreter.ClassRetryable, 60},
		"too many":             {429, map[string]any{"RateLimit": "limit=10, remaining=0, reset=60"}, interpreter.ClassRateLimited, 60},
		"too many, not told":   {429, nil, interpreter.ClassRateLimited, -1},
	} {
		in := tooltest.Input(map[string]any{"url": fmt.Sprint(server.URL, "/", test.status), "params": test.headers})(t)
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), in)
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, test.class, object.Class, name)

		if test.wait < 0 {
			require.Nil(t, object.RetryAfter, name)

			continue
		}

		require.NotNil(t, object.RetryAfter, name)
		require.LessOrEqual(t, *object.RetryAfter, test.wait, name)
		require.Greater(t, *object.RetryAfter, 0.0, name)
	}

	for name, test := range map[string]struct {
		headers map[string]any
		wait    float64
	}{
		"retry-after": {map[string]any{"Retry-After": "7"}, 7},
		"a limit that a success tells of is none": {map[string]any{"X-RateLimit-Remaining": 0, "X-RateLimit-Reset": 60}, -1},
		"nothing": {nil, -1},
	} {
		result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL + "/202", "params": test.headers})(t))
		require.NoError(t, err, name)

		if test.wait < 0 {
			require.Nil(t, result.Meta.RetryAfter, name)

			continue
		}

		require.NotNil(t, result.Meta.RetryAfter, name)
		require.InDelta(t, test.wait, *result.Meta.RetryAfter, 0, name)
	}
}

// A server's times are by its own clock, which its answer tells.
func TestHTTPToldTimesAreByTheAnswersClock(t *testing.T) {
	t.Parallel()

	for _, skew := range []time.Duration{-90 * time.Second, 90 * time.Second} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := time.Now().UTC().Truncate(time.Second).Add(skew)
			w.Header().Set("Date", now.Format(http.TimeFormat))

			switch until := now.Add(8 * time.Second); r.URL.Path {
			case "/date", "/poll", "/token":
				w.Header().Set("Retry-After", until.Format(http.TimeFormat))
			case "/epoch":
				w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(until.Unix(), 10))
			}

			if r.URL.Path == "/poll" {
				w.WriteHeader(http.StatusAccepted)
			} else {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		t.Cleanup(server.Close)

		for _, path := range []string{"/date", "/epoch"} {
			_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL + path})(t))
			object := tooltest.ErrorObject(t, err)
			require.NotNil(t, object.RetryAfter, path)
			require.InDelta(t, 8, *object.RetryAfter, 0.001, path)
		}

		result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL + "/poll"})(t))
		require.NoError(t, err)
		require.NotNil(t, result.Meta.RetryAfter)
		require.InDelta(t, 8, *result.Meta.RetryAfter, 0.001)

		connection := fmt.Sprintf(`{"oauth2": {"token_url": "%s/token", "client_id": "ana", "client_secret": "x"}}`, server.URL)
		_, err = tooltest.CallHTTP(t, withTokens(t, connection), tokenInput(t, server.URL))
		object := tooltest.ErrorObject(t, err)
		require.NotNil(t, object.RetryAfter, "the token endpoint")
		require.InDelta(t, 8, *object.RetryAfter, 0.001, "the token endpoint")
	}
}

// A number of a million digits is not what is left of a body that was cut short:
// the next answer will be the same.
func TestHTTPLongNumberIsFinal(t *testing.T) {
	t.Parallel()

	for status, says := range map[int]string{
		http.StatusOK:         "cannot be represented: at byte 10: the number 9999999999999999999999999999999999999999… has 1000000 digits: a number may have at most 1000",
		http.StatusBadRequest: "HTTP 400",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"total": %s}`, strings.Repeat("9", 1_000_000))
		}))
		t.Cleanup(server.Close)

		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), interpreter.ToolInput{
			Step: "s", Fields: tooltest.Fields(map[string]any{"url": server.URL}),
		})
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, interpreter.ClassFinal, object.Class)
		require.Contains(t, object.Message, says)

		if status == http.StatusOK {
			require.Equal(t, "long_number", object.Type)
		}
	}
}

// TestHTTPInexactJSONIsFinal: JSON of which a value would lose something is refused with its place, in rows too.
func TestHTTPInexactJSONIsFinal(t *testing.T) {
	t.Parallel()

	for name, of := range map[string]struct{ kind, body, says string }{
		"a name twice":         {"application/json", `[{"v": 1, "v": 2}]`, `cannot be represented: the key "v" occurs twice in the object that ends at byte 17`},
		"half a pair":          {"application/json", `{"v": "\ud83d"}`, `cannot be represented: the text at byte 6 has half of a surrogate pair`},
		"a name twice in line": {"application/x-ndjson", "{\"v\": 1}\n{\"v\": 1, \"v\": 2}\n", `line 2: the key "v" occurs twice in the object that ends at byte 16`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", of.kind)
			fmt.Fprint(w, of.body)
		}))
		t.Cleanup(server.Close)
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), interpreter.ToolInput{
			Step: "s", Fields: tooltest.Fields(map[string]any{"url": server.URL}),
		})
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, interpreter.ClassFinal, object.Class, name)
		require.Contains(t, object.Message, of.says, name)
	}
}

// TestHTTPMetaOfAFailedAnswer: what an answer tells beside its body goes along with the
// error, without credentials and without what the connection has lent.
func TestHTTPMetaOfAFailedAnswer(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `</items?page=2&key=tok-123456>; rel="next"`)
		w.Header().Set("Set-Cookie", "credential-of-the-server")

		if r.URL.Path == "/json" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			return
		}

		w.WriteHeader(http.StatusConflict)
	}))
	t.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:tok-123456"}})
	for path, status := range map[string]int{"/items": http.StatusConflict, "/json": http.StatusOK} {
		in := tooltest.Input(map[string]any{"url": server.URL + path})(t)
		in.Auth = "api"
		_, err := tooltest.CallHTTP(t, c, in)
		object := tooltest.ErrorObject(t, err)
		require.NotNil(t, object.Answer, path)
		require.Equal(t, status, object.Answer.Status)
		require.Equal(t, server.URL+path, object.Answer.URL)
		require.Contains(t, object.Answer.Links["next"], "/items?page=2")
		require.NotContains(t, fmt.Sprintf("%+v", object), "tok-123456")
		require.NotContains(t, fmt.Sprintf("%+v %+v", object, object.Answer), "credential-of-the-server")
		require.NotContains(t, fmt.Sprintf("%+v", object.Answer), "tok-123456")
		require.NotEmpty(t, object.Headers["date"]+object.Answer.Headers["date"])
	}
}
