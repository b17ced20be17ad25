package http_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	httptool "reprise/activities/http"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// clientSecret has to be escaped in a form, and so has two forms.
const clientSecret = canary + "/+secret"

// issuer gives out the tokens canary-5ecret-token-1, -2, … and knows which are
// good: the last one, unless it was revoked.
type issuer struct {
	*tooltest.RecordingServer
	lifetime int // expires_in, 0 says none

	mu      sync.Mutex
	issued  int
	revoked bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()

	i := &issuer{}
	i.RecordingServer = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()

		i.issued, i.revoked = i.issued+1, false
		answer := map[string]any{"access_token": i.token(), "token_type": "bearer", "refresh_token": canary + "-refresh"}

		if i.lifetime != 0 {
			answer["expires_in"] = i.lifetime
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	return i
}

func (i *issuer) token() string { return fmt.Sprintf("%s-token-%d", canary, i.issued) }

func (i *issuer) revoke() {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.revoked = true
}

// accepts answers 401 to whoever has no good token, and repeats what it got.
func (i *issuer) accepts(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()

	if !i.revoked && r.Header.Get("Authorization") == "Bearer "+i.token() {
		return true
	}

	w.Header().Set("X-Got", r.Header.Get("Authorization"))
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, "you sent ", r.Header.Get("Authorization"))
	return false
}

func (i *issuer) connection(settings map[string]any) string {
	all := map[string]any{"token_url": i.URL + "/" + canary + "/token?tenant=" + canary, "client_id": "ana", "client_secret": clientSecret}
	for key, v := range settings {
		all[key] = v
	}

	text, err := json.Marshal(map[string]any{"oauth2": all})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withTokens is a worker with the connection api.
func withTokens(t *testing.T, connection string) *activities.Catalogue {
	t.Helper()

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": connection}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func tokenInput(t *testing.T, url string) interpreter.ToolInput {
	t.Helper()

	in := tooltest.Input(map[string]any{"url": url, "method": "POST", "body": "text"})(t)
	in.Auth, in.IdempotencyKey = "api", "op-1"
	return in
}

func TestOAuth2TokensAreFetchedOnce(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	i.lifetime = 3600
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { i.accepts(w, r) })
	c := withTokens(t, i.connection(map[string]any{"scopes": []any{"read", "write"}, "audience": "orders"}))

	var group sync.WaitGroup

	for range 20 {
		group.Go(func() {
			_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
			require.NoError(t, err)
		})
	}

	testenv.Wait(t, group.Wait, "the answers to all requests")
	require.Len(t, api.ReceivedRequests(), 20)
	require.Len(t, i.ReceivedRequests(), 1)

	asked := i.ReceivedRequests()[0]
	require.Contains(t, asked, "POST /"+canary+"/token?tenant="+canary)

	_, form, _ := strings.Cut(asked, "\r\n\r\n")
	values, err := url.ParseQuery(form)
	require.NoError(t, err)
	require.Equal(t, url.Values{"grant_type": {"client_credentials"}, "scope": {"read write"}, "audience": {"orders"}}, values)
	require.Contains(t, asked, "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("ana:"+url.QueryEscape(clientSecret))))
}

func TestOAuth2TokensAreFetchedAgainBeforeTheyEnd(t *testing.T) {
	t.Parallel()

	asked := time.Unix(1_000_000, 0)
	for life, used := range map[time.Duration]time.Duration{
		time.Hour: 59 * time.Minute, 10 * time.Minute: 9 * time.Minute, time.Minute: 48 * time.Second,
		5 * time.Second: 4 * time.Second, -time.Second: -time.Second,
	} {
		require.Equal(t, asked.Add(used), httptool.UsableUntil(asked, asked.Add(life)))
	}

	require.True(t, httptool.UsableUntil(asked, time.Time{}).IsZero())

	i := newIssuer(t)
	i.lifetime = -1 // each is over when it comes
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { i.accepts(w, r) })
	c := withTokens(t, i.connection(nil))

	for range 3 {
		_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
		require.NoError(t, err)
	}

	require.Len(t, i.ReceivedRequests(), 3)
	require.Len(t, api.ReceivedRequests(), 3, "no token was sent that was over")
}

func TestOAuth2RefusedTokensAreReplacedOncePerAttempt(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { i.accepts(w, r) })
	c := withTokens(t, i.connection(nil))

	_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
	require.NoError(t, err)

	i.revoke()

	var group sync.WaitGroup

	for range 20 {
		group.Go(func() {
			_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
			require.NoError(t, err)
		})
	}

	testenv.Wait(t, group.Wait, "the answers to all requests")
	require.Len(t, i.ReceivedRequests(), 2, "one new token for all")

	last := api.ReceivedRequests()[len(api.ReceivedRequests())-1]
	require.Contains(t, last, "Authorization: Bearer "+canary+"-token-2\r\n")
	require.Contains(t, last, "Idempotency-Key: op-1\r\n")
	require.True(t, strings.HasSuffix(last, "\r\n\r\ntext"), "the body is sent again: %s", last)
}

func TestOAuth2TokensThatStayRefusedAreAnError(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		i.revoke()
		i.accepts(w, r)
	})
	c := withTokens(t, i.connection(nil))
	_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
	object := tooltest.ErrorObject(t, err)

	require.Equal(t, 401, object.Status)
	require.Equal(t, "you sent Bearer ***", object.Body.Data)
	require.Equal(t, "Bearer ***", object.Headers["x-got"])
	require.Empty(t, object.Type, "it is the API's")
	require.Len(t, api.ReceivedRequests(), 2)
	require.Len(t, i.ReceivedRequests(), 2)
}

// What is sent again is the request that was refused, not one before it, which
// may have acted.
func TestOAuth2OnlyTheRefusedRequestIsSentAgain(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/order":
			i.revoke()
			http.Redirect(w, r, "/order/1", http.StatusSeeOther)
		default:
			i.accepts(w, r)
		}
	})
	c := withTokens(t, i.connection(nil))
	_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL+"/order"))
	require.NoError(t, err)

	lines := []string{}

	for _, dump := range api.ReceivedRequests() {
		line, _, _ := strings.Cut(dump, "\r\n")
		lines = append(lines, line)
	}

	require.Equal(t, []string{"POST /order HTTP/1.1", "GET /order/1 HTTP/1.1", "GET /order/1 HTTP/1.1"}, lines)
}

func TestOAuth2TokensGoToOneHost(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	other := tooltest.NewRecordingServer(t, "127.0.0.2", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	api := tooltest.NewRecordingServer(t, "127.0.0.1", tooltest.RedirectTo(http.StatusSeeOther, func() string { return other.URL }))

	c := withTokens(t, i.connection(nil))
	_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
	require.Equal(t, 401, tooltest.ErrorObject(t, err).Status)
	require.Len(t, other.ReceivedRequests(), 1)
	require.NotContains(t, other.ReceivedRequests()[0], canary)
	require.Len(t, i.ReceivedRequests(), 1, "the 401 of another host says nothing of the token")

	in := tokenInput(t, other.URL)
	in.Origin = api.URL
	_, err = tooltest.CallHTTP(t, c, in)
	require.Contains(t, tooltest.ErrorObject(t, err).Message, "are not sent to "+other.URL)

	c = withTokens(t, i.connection(map[string]any{"host": api.URL + "/v2/"}))
	_, err = tooltest.CallHTTP(t, c, tokenInput(t, other.URL))
	require.Contains(t, tooltest.ErrorObject(t, err).Message, "is for "+api.URL)
	require.Len(t, i.ReceivedRequests(), 1, "no token is fetched for what is not sent")

	_, err = tooltest.CallHTTP(t, c, tokenInput(t, "orders"))
	require.Error(t, err)
	require.Contains(t, api.ReceivedRequests()[1], "POST /v2/orders")
}

func TestOAuth2AHeaderOfTheAuthorWins(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { i.accepts(w, r) })
	in := tooltest.Input(map[string]any{"url": api.URL, "headers": map[string]any{"Authorization": "Bearer own-token"}})(t)
	in.Auth = "api"
	_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), in)

	require.Equal(t, 401, tooltest.ErrorObject(t, err).Status)
	require.Len(t, api.ReceivedRequests(), 1)
	require.Empty(t, i.ReceivedRequests())
}

// Each failure of the token endpoint repeats as much as it can of what it was
// sent.
func TestOAuth2FailuresOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()

	other, api := tooltest.NewRecordingServer(t, "127.0.0.2", nil), tooltest.NewRecordingServer(t, "127.0.0.1", nil)
	echo := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			id, secret, _ := r.BasicAuth()
			sent := strings.Join([]string{r.Header.Get("Authorization"), id, secret, r.Form.Get("client_secret"), clientSecret}, " ")
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Sent", sent)
			w.WriteHeader(status)
			fmt.Fprint(w, strings.ReplaceAll(body, "SENT", sent))
		}
	}

	t.Run("each", func(t *testing.T) {
		for name, c := range map[string]struct {
			answer http.HandlerFunc
			kind   interpreter.Kind
			class  interpreter.Class
			says   string
			status int
		}{
			"invalid client": {echo(401, `{"error": "invalid_client", "error_description": "SENT"}`), "http", "final", "returned HTTP 401 (invalid_client)", 401},
			"odd code":       {echo(400, `{"error": "SENT"}`), "http", "final", "returned HTTP 400", 400},
			"no JSON":        {echo(500, `SENT`), "http", "retryable", "returned HTTP 500", 500},
			"told to wait": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				echo(429, `{}`)(w, r)
			}, "http", "rate_limited", "returned HTTP 429", 429},
			"redirect":        {tooltest.RedirectTo(307, func() string { return other.URL }), "http", "final", "returned HTTP 307", 307},
			"an error as 200": {echo(200, `{"error": "SENT", "access_token": "canary-5ecret"}`), "http", "final", "returned HTTP 200", 200},
			"garbage":         {echo(200, `{"access_token": canary-5ecret`), "http", "retryable", "returned no token", 0},
			"no token":        {echo(200, `{"accessToken": "canary-5ecret"}`), "http", "retryable", "returned no token", 0},
			"a line break":    {echo(200, `{"access_token": "canary-5ecret\r\nX: y"}`), "http", "retryable", "returned no token", 0},
			"long":            {echo(200, `{"access_token": "`+strings.Repeat("canary-5ecret", 4000)+`"}`), "http", "retryable", "returned no token", 0},
			"long error": {
				echo(400, `{"error": "invalid_scope", "error_description": "`+strings.Repeat("words ", 100_000)+`"}`), "http", "final", "(invalid_scope)", 400,
			},
			"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_ = conn.Close()
				}
			}, "connection", "retryable", "the token endpoint at http://127.0.0.1", 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				i := newIssuer(t)
				i.Answer = c.answer
				_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), tokenInput(t, api.URL))
				object := tooltest.ErrorObject(t, err)
				text, err := json.Marshal(object)
				require.NoError(t, err)

				require.Equal(t, []any{c.kind, c.class, c.status}, []any{object.Kind, object.Class, object.Status}, object.Message)
				require.Contains(t, object.Message, c.says)
				require.Contains(t, object.Message, `connection "api": the token endpoint at `+i.URL)
				require.NotContains(t, string(text), canary)
				require.NotContains(t, string(text), base64.StdEncoding.EncodeToString([]byte("ana:"+url.QueryEscape(clientSecret))))
				require.Less(t, len(text), 8<<10)

				if c.kind == "http" {
					require.Equal(t, "token", object.Type)
				}

				if c.status == 429 {
					require.NotNil(t, object.RetryAfter)
				}
			})
		}
	})

	require.Zero(t, len(other.ReceivedRequests())+len(api.ReceivedRequests()), "requests with no token, or with the secret")
}

// lying answers as a token endpoint.
func lying(status int, header http.Header, body func(w http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		body(w)
	}
}

// TestOAuth2EndpointsAreAskedOnce: the secret is sent in another form to those who may
// not have found it. Who is overloaded or away is not asked twice by one attempt.
func TestOAuth2EndpointsAreAskedOnce(t *testing.T) {
	t.Parallel()
	for status, asked := range map[int]int{429: 1, 500: 1, 503: 1, 307: 1, 400: 2, 401: 2, 403: 2} {
		i, api := newIssuer(t), tooltest.NewRecordingServer(t, "127.0.0.1", nil)
		i.Answer = lying(status, nil, func(http.ResponseWriter) {})
		_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), tokenInput(t, api.URL))
		require.Equal(t, status, tooltest.ErrorObject(t, err).Status)
		require.Len(t, i.ReceivedRequests(), asked, status)
		require.Empty(t, api.ReceivedRequests())
	}
}

// TestOAuth2SecretsInTheBody: a server that knows the secret in the body alone is found
// out once.
func TestOAuth2SecretsInTheBody(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	give := i.Answer
	i.Answer = func(w http.ResponseWriter, r *http.Request) {
		if _, _, basic := r.BasicAuth(); basic {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		give(w, r)
	}
	i.lifetime = -1
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { i.accepts(w, r) })
	c := withTokens(t, i.connection(nil))
	for range 3 {
		_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
		require.NoError(t, err)
	}
	require.Len(t, i.ReceivedRequests(), 4)
}

// TestOAuth2TokensOfOtherTypes are for another use than ours, and would not be known
// for what they are where they come back.
func TestOAuth2TokensOfOtherTypes(t *testing.T) {
	t.Parallel()
	for kind, good := range map[string]bool{"": true, "bearer": true, "BEARER": true, "mac": false, "DPoP": false, "x y": false, "Basic": false} {
		i := newIssuer(t)
		i.Answer = lying(200, nil, func(w http.ResponseWriter) {
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": canary + "-token", "token_type": kind})
		})
		api := tooltest.NewRecordingServer(t, "127.0.0.1", nil)
		_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), tokenInput(t, api.URL))
		if good {
			require.NoError(t, err, kind)
			require.Contains(t, api.ReceivedRequests()[0], "Authorization: Bearer "+canary+"-token\r\n")
			continue
		}
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, []string{"final", "token"}, []string{string(object.Class), object.Type}, kind)
		require.Contains(t, object.Message, "its type is not bearer")
		require.Empty(t, api.ReceivedRequests(), kind)
	}
}

// TestOAuth2LivesThatCannotBe: what an endpoint says of a token's life is believed as
// far as it makes sense, and a token is fetched no more often than it has to be.
// It passes mostLife.
func TestOAuth2LivesThatCannotBe(t *testing.T) {
	t.Parallel()
	for life, fetched := range map[string]int{
		`0`: 3, `"0"`: 3, `-1`: 3, `-1e300`: 3, `1e300`: 1, `99999999999999999999`: 1, `2147483648`: 1, `"3600"`: 1, `null`: 1, `"soon"`: 1, `{}`: 1,
		`3599.5`: 1, `"3599.5"`: 1, `3.6e3`: 1, `0.5`: 3, `""`: 1, `" 3600 "`: 1, `true`: 1, `"NaN"`: 1,
	} {
		i := newIssuer(t)
		i.Answer = lying(200, nil, func(w http.ResponseWriter) { fmt.Fprintf(w, `{"access_token": "t", "expires_in": %s}`, life) })
		api := tooltest.NewRecordingServer(t, "127.0.0.1", nil)
		c := withTokens(t, i.connection(nil))
		for range 3 {
			_, err := tooltest.CallHTTP(t, c, tokenInput(t, api.URL))
			require.NoError(t, err, life)
		}
		require.Len(t, i.ReceivedRequests(), fetched, life)
		require.Len(t, api.ReceivedRequests(), 3, life)
	}
}

// TestOAuth2AnswersWithoutEnd: neither a body that is far too large, packed or not, nor
// one that comes drop by drop takes memory, or longer than the attempt has. It passes mostTokenAnswer.
func TestOAuth2AnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	flood := func(w io.Writer) {
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range 1 << 10 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a GB": lying(200, nil, func(w http.ResponseWriter) { flood(w) }),
		"a bomb": lying(200, http.Header{"Content-Encoding": {"gzip"}}, func(w http.ResponseWriter) {
			packed := gzip.NewWriter(w)
			flood(packed)
			_ = packed.Close()
		}),
	} {
		i, api := newIssuer(t), tooltest.NewRecordingServer(t, "127.0.0.1", nil)
		i.Answer = answer
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), tokenInput(t, api.URL))
		object := tooltest.ErrorObject(t, err)
		runtime.ReadMemStats(&after)
		require.Equal(t, []string{"retryable", "token"}, []string{string(object.Class), object.Type}, name)
		require.Less(t, after.HeapSys, before.HeapSys+(512<<20), name)
		require.Empty(t, api.ReceivedRequests(), name)
	}
	i := newIssuer(t)
	i.Answer = lying(200, nil, func(w http.ResponseWriter) {
		for n := 0; n < 2000; n++ {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond) // the sender takes its time
		}
	})
	in := tokenInput(t, i.URL)
	in.TimeoutSeconds = 0.3
	_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), in)
	require.Equal(t, interpreter.KindTimeout, tooltest.ErrorObject(t, err).Kind)
}

func TestOAuth2TokenEndpointsThatAreAway(t *testing.T) {
	t.Parallel()

	closed := tooltest.RefusingURL(t)
	away := &tooltest.RecordingServer{Server: &httptest.Server{URL: closed}}

	c := withTokens(t, (&issuer{RecordingServer: away}).connection(nil))
	_, err := tooltest.CallHTTP(t, c, tokenInput(t, closed))
	object := tooltest.ErrorObject(t, err)

	require.Equal(t, []string{"connection", "retryable", "econnrefused"}, []string{string(object.Kind), string(object.Class), object.Type})
	require.NotContains(t, object.Message, canary)
}

// An attempt does not wait longer for a token than it has time.
func TestOAuth2TokenEndpointsThatHang(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	over := make(chan struct{})
	i.Answer = func(http.ResponseWriter, *http.Request) { <-over }
	in := tokenInput(t, i.URL)
	in.TimeoutSeconds = 0.2
	_, err := tooltest.CallHTTP(t, withTokens(t, i.connection(nil)), in)
	close(over)

	object := tooltest.ErrorObject(t, err)
	require.Equal(t, interpreter.KindTimeout, object.Kind)
	require.Contains(t, object.Message, `the attempt took longer than its timeout of 200ms; it waited for a token of connection "api"`)
}

func TestOAuth2IsForHTTPAlone(t *testing.T) {
	t.Parallel()

	i := newIssuer(t)
	c := withTokens(t, i.connection(nil))

	for tool, says := range map[string]string{
		"postgres": `connection "api" is a map for http, which postgres cannot use: it needs a URL`,
		"sqlite":   `connection "api" is a map for http, which sqlite cannot use: it needs a URL`,
	} {
		in := interpreter.ToolInput{Auth: "api", Fields: tooltest.Fields(map[string]any{"statement": "SELECT 1"})}
		_, err := tooltest.Call(t, c, tool, tool, in)
		object := tooltest.ErrorObject(t, err)

		require.True(t, object.Final)
		require.Equal(t, says, object.Message)
	}
}

// What the environment has is read when it is needed.
func TestOAuth2ClientsThatCannotBeReadAreFinal(t *testing.T) {
	t.Parallel()

	for raw, says := range map[string]string{
		`{"oauth2": ` + canary:                               `connection "api" must be text such as bearer:TOKEN or a URL, or a map with one or more of bearer, basic, header, headers, query, oauth2, session, jwt, aws, tls`,
		`{"basic": {"password": "` + canary + `"}}`:          `connection "api" must have basic.user, as text`,
		` {"oauth2": {"client_secret": "` + canary + `"}}`:   `connection "api" must have oauth2.client_id, as text`,
		`{"oauth2": {"client_id": "` + canary + `"}, "a":1}`: `connection "api" has an unknown key, expected one of bearer, basic, header, headers, query, oauth2, session, jwt, aws, tls, host, cookies, url, user, password, uses`,
	} {
		_, err := tooltest.CallHTTP(t, withTokens(t, raw), tokenInput(t, "http://127.0.0.1:1"))
		object := tooltest.ErrorObject(t, err)

		require.True(t, object.Final)
		require.Equal(t, says, object.Message)
	}
}
