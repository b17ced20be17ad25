package http_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// desk is an API with a login of its own: POST /login gives canary-5ecret-session-1, -2, …, of which the last one is good
// until it is revoked or logged out.
type desk struct {
	*tooltest.RecordingServer

	mu      sync.Mutex
	issued  int
	good    bool
	given   func(*http.Request) string                        // what a request has of its token
	answers func(w http.ResponseWriter, token string)         // the answer of a login, nil for JSON
	refuses func(w http.ResponseWriter, r *http.Request)      // the answer of a refusal, nil for 401
	path    func(w http.ResponseWriter, r *http.Request) bool // answers by itself
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{given: func(r *http.Request) string { return r.Header.Get("X-Session") }}
	d.RecordingServer = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.path != nil && d.path(w, r):
		case r.URL.Path == "/login":
			d.issued, d.good = d.issued+1, true
			if d.answers != nil {
				d.answers(w, d.token())
				return
			}
			fmt.Fprintf(w, `{"session": {"token": %q, "refresh": "canary-5ecret-refresh", "expires_in": 3600}}`, d.token())
		case !d.good || d.given(r) != d.token():
			if d.refuses != nil {
				d.refuses(w, r)
				return
			}
			w.Header().Set("X-Got", d.given(r))
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "you sent ", d.given(r))
		case r.URL.Path == "/logout":
			d.good = false
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"you": %q, "ok": true}`, d.given(r))
		}
	})
	return d
}

func (d *desk) token() string { return fmt.Sprintf("%s-session-%d", canary, d.issued) }

func (d *desk) revoke() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.good = false
}

// lines are the first lines of the requests that have come, without the version of HTTP.
func (d *desk) lines() []string {
	lines := []string{}
	for _, dump := range d.ReceivedRequests() {
		line, _, _ := strings.Cut(dump, " HTTP/1.1\r\n")
		lines = append(lines, line)
	}
	return lines
}

func (d *desk) count(line string) (n int) {
	for _, seen := range d.lines() {
		if seen == line {
			n++
		}
	}
	return n
}

// connection is one of a session, with settings over the usual ones; nil removes one.
func (d *desk) connection(settings map[string]any) string {
	session := map[string]any{
		"login": map[string]any{"url": d.URL + "/login", "body": map[string]any{"user": "ana", "password": canary + "-password"}},
		"token": "{{ response.session.token }}", "send": map[string]any{"header": "X-Session"},
	}
	for key, value := range settings {
		session[key] = value
	}
	text, err := json.Marshal(map[string]any{"session": session})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func getInput(t *testing.T, url string) interpreter.ToolInput {
	t.Helper()
	return queryInput(t, map[string]any{"url": url})
}

func TestSessionLogsInOnceForAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := withTokens(t, d.connection(map[string]any{"expires": "{{ response.session.expires_in }}"}))
	send := func() {
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				result, err := tooltest.CallHTTP(t, c, tokenInput(t, "/orders"))
				require.NoError(t, err)
				requireNoCanary(t, result)
			})
		}
		testenv.Wait(t, group.Wait, "the answers to all requests")
	}
	send()
	require.Equal(t, 1, d.count("POST /login"))
	require.Equal(t, 20, d.count("POST /orders"))
	login := d.ReceivedRequests()[0]
	require.Contains(t, login, "Content-Type: application/json")
	require.Contains(t, login, "\r\n\r\n"+`{"password":"canary-5ecret-password","user":"ana"}`)
	d.revoke()
	send()
	require.Equal(t, 2, d.count("POST /login"), "one new login for all that were refused")
	last := d.ReceivedRequests()[len(d.ReceivedRequests())-1]
	require.Contains(t, last, "X-Session: canary-5ecret-session-2\r\n")
	require.Contains(t, last, "Idempotency-Key: op-1\r\n")
	require.True(t, strings.HasSuffix(last, "\r\n\r\ntext"))
}

// TestSessionSendsItsToken has the token where the connection says, and nowhere that people read.
func TestSessionSendsItsToken(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		settings map[string]any
		given    func(*http.Request) string
		answers  func(http.ResponseWriter, string)
	}{
		"a header with a scheme": {
			map[string]any{"send": map[string]any{"header": "authorization", "value": "Token {{ token }}"}},
			func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Token ") }, nil,
		},
		"a parameter": {
			map[string]any{"send": map[string]any{"query": "sid"}}, func(r *http.Request) string { return r.URL.Query().Get("sid") }, nil,
		},
		"a cookie": {
			map[string]any{"send": map[string]any{"cookie": "SID"}, "token": "{{ cookies.SID }}"},
			func(r *http.Request) string {
				if cookie, err := r.Cookie("SID"); err == nil && len(r.Cookies()) == 1 {
					return cookie.Value
				}
				return ""
			},
			func(w http.ResponseWriter, token string) {
				http.SetCookie(w, &http.Cookie{Name: "SID", Value: token})
				w.Header().Set("Location", "/home")
				w.WriteHeader(http.StatusFound)
			},
		},
		"a header of the answer, by a form": {
			map[string]any{
				"token": "{{ headers['x-subject-token'] }}",
				"login": map[string]any{"url": "HOST/login", "form": map[string]any{"user": "ana", "password": canary + "-password"}, "headers": map[string]any{"X-App": canary + "-app"}},
			},
			func(r *http.Request) string { return r.Header.Get("X-Session") },
			func(w http.ResponseWriter, token string) { w.Header().Set("X-Subject-Token", token) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.given, d.answers = of.given, of.answers
			c := withTokens(t, strings.ReplaceAll(d.connection(of.settings), "HOST", d.URL))
			for range 2 {
				result, err := tooltest.CallHTTP(t, c, getInput(t, "/rows?page=1"))
				require.NoError(t, err)
				require.Equal(t, map[string]any{"you": "***", "ok": true}, result.Data.Data)
				require.Equal(t, d.URL+"/rows?page=1", result.Meta.URL)
				requireNoCanary(t, result)
				d.revoke()
			}
			require.Equal(t, 2, d.count("POST /login"))
			require.Len(t, d.ReceivedRequests(), 5, "of the second attempt one was refused")
		})
	}
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	for expires, logins := range map[string]int{
		"1h": 1, "{{ response.in }}": 1, "{{ '2h' if response.in else 1 }}": 1, "{{ response.at }}": 1, "{{ '3600' if response.in else 1 }}": 1,
		"1ns": 3, "{{ response.in / 1000000000000 }}": 3,
		"{{ response.gone }}": 0, "{{ response.past }}": 0, "{{ response.unix }}": 0, "{{ 'soon' if response.in else 1 }}": 0, "{{ response.in * -1 }}": 0,
	} {
		t.Run(expires, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.answers = func(w http.ResponseWriter, token string) {
				// The server's clock is a day ahead; what counts is the difference.
				now := time.Now().Add(24 * time.Hour)
				w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
				_ = json.NewEncoder(w).Encode(map[string]any{
					"session": map[string]any{"token": token}, "in": 3600, "at": now.Add(time.Hour).Format(time.RFC3339),
					"past": now.Add(-time.Hour).Format(time.RFC3339), "unix": now.Add(time.Hour).Unix(),
				})
			}
			c := withTokens(t, d.connection(map[string]any{"expires": expires}))
			for range 3 {
				_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
				if logins > 0 {
					require.NoError(t, err)
					continue
				}
				object := tooltest.ErrorObject(t, err)
				require.Equal(t, []any{"login", interpreter.ClassFinal}, []any{object.Type, object.Class}, object.Message)
				require.Contains(t, object.Message, "expires")
				requireNoCanary(t, object)
			}
			require.Equal(t, max(logins, 1), d.count("POST /login"))
			require.Equal(t, 3*min(logins, 1), d.count("GET /"))
		})
	}
}

// TestSessionFailuresOfTheLogin: each repeats all that it was sent and a token besides.
func TestSessionFailuresOfTheLogin(t *testing.T) {
	t.Parallel()
	echo := func(status int, header ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Token", canary+"-token")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"session": {"token": null, "other": "canary-5ecret-session-9"}, "you": "%s-password"}`, canary)
		}
	}
	text := func(body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	for name, of := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		kind   interpreter.Kind
		class  interpreter.Class
		status int
		says   string
		logins int // of three attempts
	}{
		"a wrong password": {echo(401), "http", "final", 401, "failed: it returned HTTP 401; the same login is not sent again for 5m0s", 1},
		"a locked account": {echo(403), "http", "final", 403, "HTTP 403", 1},
		"a wrong request":  {echo(422), "http", "final", 422, "HTTP 422", 1},
		"no such page":     {echo(404), "http", "final", 404, "HTTP 404", 1},
		"too many":         {echo(429, "Retry-After", "7"), "http", "rate_limited", 429, "HTTP 429", 3},
		"away":             {echo(503), "http", "retryable", 503, "HTTP 503", 3},
		"broken":           {echo(500), "http", "retryable", 500, "HTTP 500", 3},
		"no token":         {echo(200), "http", "final", 200, "session.token gives no text for its response", 1},
		"text":             {text(canary + "-session"), "http", "final", 200, "it returned HTTP 200, but session.token", 1},
		"a list":           {text(`{"session": {"token": ["canary-5ecret-session"]}}`), "http", "final", 200, "gives no text", 1},
		"a line break":     {text(`{"session": {"token": "canary-5ecret\r\nX: y"}}`), "http", "final", 200, "its token cannot be sent", 1},
		// maxToken and maxLoginAnswer
		"long":        {text(`{"session": {"token": "` + strings.Repeat(canary, 4000) + `"}}`), "http", "final", 200, "its token cannot be sent", 1},
		"without end": {text(`{"session": {"token": "` + strings.Repeat(canary, 100_000) + `"}}`), "http", "final", 200, "has more than 1048576 bytes", 1},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, "connection", "retryable", 0, "the login at http://127.0.0.1", 3},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"session": {"token": "canary-5ecret-session`)
		}, "connection", "retryable", 0, "its response was cut short", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.path = func(w http.ResponseWriter, r *http.Request) bool { of.answer(w, r); return true }
			var log bytes.Buffer
			c := activities.NewCatalogue(activities.Resources{
				Connections: activities.Connections{"api": d.connection(nil)}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			for range 3 {
				_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
				object := tooltest.ErrorObject(t, err)
				require.Equal(t, []any{of.kind, of.class, of.status}, []any{object.Kind, object.Class, object.Status}, object.Message)
				require.Contains(t, object.Message, of.says)
				require.Contains(t, object.Message, `connection "api": the login at `+d.URL)
				requireNoCanary(t, object)
				require.NotContains(t, fmt.Sprintf("%+v", object), canary)
				if of.kind == "http" {
					require.Equal(t, "login", object.Type)
				}
				require.Equal(t, of.status == 429, object.RetryAfter != nil)
			}
			require.NoError(t, c.Close())
			require.Equal(t, of.logins, d.count("POST /login"))
			require.Len(t, d.ReceivedRequests(), of.logins, "nothing is sent without a token")
			require.NotContains(t, log.String(), canary)
		})
	}
}

// TestSessionOfAnotherPassword: a password that was changed logs in at once, however the last one was refused.
func TestSessionOfAnotherPassword(t *testing.T) {
	const variable = "TEST_SESSION_PASSWORD"
	t.Setenv(variable, canary+"-old")
	d := newDesk(t)
	d.path = func(w http.ResponseWriter, r *http.Request) bool {
		var login struct{ Password string }
		if r.URL.Path != "/login" {
			return false
		}
		if _ = json.NewDecoder(r.Body).Decode(&login); login.Password == canary+"-new" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	body := map[string]any{"user": "ana", "password": map[string]any{"from": "env", "name": variable, "refresh": "1ns"}}
	c := withTokens(t, d.connection(map[string]any{"login": map[string]any{"url": d.URL + "/login", "body": body}}))
	for range 2 {
		_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
		require.Equal(t, 403, tooltest.ErrorObject(t, err).Status)
	}
	require.Equal(t, 1, d.count("POST /login"))
	t.Setenv(variable, canary+"-new")
	result, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
	require.NoError(t, err)
	requireNoCanary(t, result)
	require.Equal(t, 2, d.count("POST /login"))
}

// TestSessionRefusedWhen: some servers say with HTTP 200 that a session is over.
func TestSessionRefusedWhen(t *testing.T) {
	t.Parallel()
	for when, refusal := range map[string]func(http.ResponseWriter){
		"response.error == 'session_expired'": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"error": "session_expired", "sent": "canary-5ecret-session-1"}`)
		},
		"{{ headers['x-error'] == 'session' }}":        func(w http.ResponseWriter) { w.Header().Set("X-Error", "session"); fmt.Fprint(w, "{}") },
		"status == 419":                                func(w http.ResponseWriter) { w.WriteHeader(419) },
		"'log in' in response if status == 200 else 0": func(w http.ResponseWriter) { fmt.Fprint(w, "<html>please log in canary-5ecret-session-1</html>") },
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.refuses = func(w http.ResponseWriter, _ *http.Request) { refusal(w) }
			c := withTokens(t, d.connection(map[string]any{"refused_when": when}))
			for range 2 {
				result, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
				require.NoError(t, err)
				require.Equal(t, true, result.Data.Data.(map[string]any)["ok"])
				requireNoCanary(t, result)
				d.revoke()
			}
			require.Equal(t, 2, d.count("POST /login"))
			require.Equal(t, 3, d.count("GET /"))
			d.path = func(w http.ResponseWriter, r *http.Request) bool {
				d.good = d.good && r.URL.Path == "/login"
				return false
			}
			_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
			object := tooltest.ErrorObject(t, err)
			requireNoCanary(t, object)
			require.NotEqual(t, interpreter.ClassRetryable, object.Class)
			if object.Status == 200 {
				require.Equal(t, "login", object.Type)
				require.Contains(t, object.Message, `connection "api": the response of GET `+d.URL+`/ refuses the session (refused_when), even after a new login`)
			}
		})
	}
	// What refused_when does not mean passes as it is, also beyond maxRefusal.
	d := newDesk(t)
	long := strings.Repeat("x", 1<<20)
	d.path = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/long" {
			fmt.Fprint(w, long)
		}
		return r.URL.Path == "/long"
	}
	c := withTokens(t, d.connection(map[string]any{"refused_when": "response == 'x'"}))
	result, err := tooltest.CallHTTP(t, c, getInput(t, "/long"))
	require.NoError(t, err)
	require.Equal(t, long, result.Data.Data)
}

// TestSessionThatIsAlwaysRefused: an API that takes no token does not have one login after the other.
func TestSessionThatIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.given = func(*http.Request) string { return "" }
	c := withTokens(t, d.connection(nil))
	for range 10 {
		_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
		require.Equal(t, 401, tooltest.ErrorObject(t, err).Status)
	}
	require.Equal(t, 4, d.count("POST /login"), "the first, and three in the place of refused ones")
	require.Equal(t, 13, d.count("GET /"))
}

func TestSessionEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		logout map[string]any
		status int
		sent   []string
		log    string
	}{
		"sent": {map[string]any{"url": "/logout"}, 200, []string{"POST /logout HTTP/1.1", "X-Session: canary-5ecret-session-1"}, ""},
		"with the token in it": {
			map[string]any{"url": "/logout/{{ token }}?a={{ token }}", "method": "delete", "body": map[string]any{"end": []any{"the {{ token }}"}}},
			204,
			[]string{"DELETE /logout/canary-5ecret-session-1?a=canary-5ecret-session-1 HTTP/1.1", `{"end":["the canary-5ecret-session-1"]}`},
			"",
		},
		"refused": {map[string]any{"url": "/logout"}, 500, []string{"POST /logout HTTP/1.1"}, "returned HTTP 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.path = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/logout") {
					w.WriteHeader(of.status)
					return true
				}
				return false
			}
			var log bytes.Buffer
			c := activities.NewCatalogue(activities.Resources{
				Connections: activities.Connections{"api": d.connection(map[string]any{"logout": of.logout})}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
			require.NoError(t, err)
			require.NoError(t, c.Close())
			require.Len(t, d.ReceivedRequests(), 3)
			for _, text := range of.sent {
				require.Contains(t, d.ReceivedRequests()[2], text)
			}
			require.NoError(t, c.Close())
			require.Len(t, d.ReceivedRequests(), 3, "once")
			require.Contains(t, log.String(), of.log)
			require.Equal(t, of.log == "", log.Len() == 0, log.String())
			require.NotContains(t, log.String(), canary)
		})
	}
	d := newDesk(t)
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": d.connection(map[string]any{"logout": map[string]any{"url": "/logout"}})}})
	require.NoError(t, c.Close())
	require.Empty(t, d.ReceivedRequests(), "who has not logged in does not log out")
}

// TestSessionStaysAtItsHost: neither the login nor its token goes where somebody else says.
func TestSessionStaysAtItsHost(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	d := newDesk(t)
	c := withTokens(t, d.connection(nil))
	_, err := tooltest.CallHTTP(t, c, getInput(t, other.URL))
	require.Contains(t, tooltest.ErrorObject(t, err).Message, "is for "+d.URL)
	require.Empty(t, d.ReceivedRequests(), "no login for what is not sent")
	d.answers = func(w http.ResponseWriter, _ string) {
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	_, err = tooltest.CallHTTP(t, c, getInput(t, "/"))
	require.Contains(t, tooltest.ErrorObject(t, err).Message, "it returned HTTP 307, but session.token gives no text")
}

// TestSessionWithCookies: the cookies of a login are sent where a connection keeps them.
func TestSessionWithCookies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.answers = func(w http.ResponseWriter, token string) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: canary + "-cookie", Path: "/"})
		fmt.Fprintf(w, `{"session": {"token": %q}}`, token)
	}
	d.given = func(r *http.Request) string {
		if cookie, err := r.Cookie("sid"); err != nil || cookie.Value != canary+"-cookie" {
			return ""
		}
		return r.Header.Get("X-Session")
	}
	c := withTokens(t, strings.Replace(d.connection(nil), "{", `{"cookies": "keep", `, 1))
	result, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
	require.NoError(t, err)
	requireNoCanary(t, result)
	require.Equal(t, 1, d.count("POST /login"))
}
