package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/activities"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/seal"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/login"
	"reprise/starter/cli"
)

// identity is a server at which people log in.
type identity struct {
	*httptest.Server

	mu         sync.Mutex
	challenges map[string]url.Values // of authorization requests, by code
	polled     int
	refresh    string
	secrets    []string // that nobody is to see
	withhold   bool     // the refresh token
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	p := &identity{challenges: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/device", p.device)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// secret is a new text that nobody is to see.
func (p *identity) secret() string {
	text := "Cn4ryS3cret-" + rand.Text()
	p.secrets = append(p.secrets, text)
	return text
}

// authorize is a person who agrees at once.
func (p *identity) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query, code := r.URL.Query(), p.secret()
	p.challenges[code] = query
	back, _ := url.Parse(query.Get("redirect_uri"))
	back.RawQuery = url.Values{"code": {code}, "state": {query.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *identity) device(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer(w, http.StatusOK, map[string]any{
		"device_code": p.secret(), "user_code": "WDJB-MJHT", "verification_uri": p.URL + "/enter", "expires_in": 300, "interval": 1,
	})
}

func (p *identity) answer(w http.ResponseWriter, status int, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// token is the token endpoint: it checks what RFC 6749, 7636 and 8628 have it check.
func (p *identity) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = r.ParseForm()
	refuse := func(code string) { p.answer(w, http.StatusBadRequest, map[string]any{"error": code}) }
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		asked, known := p.challenges[r.Form.Get("code")]
		delete(p.challenges, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !known || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			asked.Get("redirect_uri") != r.Form.Get("redirect_uri") {
			refuse("invalid_grant")
			return
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		if p.polled++; p.polled < 2 {
			refuse("authorization_pending")
			return
		}
	case "refresh_token":
		if r.Form.Get("refresh_token") != p.refresh {
			refuse("invalid_grant")
			return
		}
	}
	p.refresh = p.secret()
	answer := map[string]any{"access_token": p.secret(), "token_type": "Bearer", "expires_in": 3600, "scope": "orders"}
	if !p.withhold {
		answer["refresh_token"] = p.refresh
	}
	p.answer(w, http.StatusOK, answer)
}

// opener is a person who opens the page that a command prints.
type opener struct {
	bytes.Buffer

	opened sync.Once
	status chan int
}

var page = regexp.MustCompile(`http://\S+/authorize\S+`)

func (o *opener) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if link := page.FindString(o.String()); link != "" && strings.HasSuffix(o.String(), "\n") {
		o.opened.Do(func() {
			go func() {
				response, err := http.Get(link)
				if err != nil {
					o.status <- 0
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				o.status <- response.StatusCode
			}()
		})
	}
	return n, err
}

// loginDesk is a desk whose worker has a connection with a login.
func loginDesk(t *testing.T, p *identity) (*desk, string) {
	t.Helper()
	d := &desk{t: t, env: testenv.Temporal(t)}
	d.queue = d.env.NewTaskQueue()
	name := "shop_" + d.queue[len("test-"):]
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	connection, err := json.Marshal(map[string]any{"host": p.URL, "oauth2": map[string]any{
		"grant": "authorization_code", "authorize_url": p.URL + "/authorize", "device_url": p.URL + "/device", "token_url": p.URL + "/token",
		"client_id": "reprise", "client_secret": p.secret(), "scopes": []string{"orders"},
	}})
	require.NoError(t, err)
	catalogue := activities.NewCatalogue(activities.Resources{
		Directory: t.TempDir(), SecretKeys: keys, Connections: activities.Connections{name: string(connection), "plain": "bearer:" + p.secret()},
	})
	working := host.NewWorker(d.env.Client(), catalogue, host.Options{TaskQueue: d.queue, StopTimeout: time.Second})
	require.NoError(t, working.Start())
	t.Cleanup(func() {
		working.Stop()
		require.NoError(t, catalogue.Close())
	})
	return d, name
}

// logIn is starter auth login by a person who opens the page.
func (d *desk) logIn(args ...string) (said, int) {
	d.t.Helper()
	var out bytes.Buffer
	errs := &opener{status: make(chan int, 1)}
	args = append(append([]string{"auth", "login"}, args...), "--address", d.env.Address, "--namespace", d.env.Namespace, "--task-queue", d.queue)
	status := Main(d.t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: errs})
	return said{status, out.String(), errs.String()}, testenv.Receive(d.t, errs.status, "the page")
}

func (d *desk) loginStatus(name string) (status login.TokenStatus) {
	d.t.Helper()
	require.NoError(d.t, json.Unmarshal([]byte(d.does("auth", "status", name, "--output", "json")), &status))
	return status
}

// TestPeopleLogIn: by a page and by a device; the tokens and codes are seen by the worker alone. Then come starter auth refresh and
// starter auth logout.
func TestPeopleLogIn(t *testing.T) {
	t.Parallel()
	p := newIdentity(t)
	d, name := loginDesk(t, p)
	require.Contains(t, d.refuses(exitcode.Usage, "auth", "status", name), `connection "`+name+`" has no login yet: starter auth login `+name)
	got, opened := d.logIn(name)
	require.Equal(t, exitcode.OK, got.status, got.err)
	require.Equal(t, http.StatusOK, opened)
	require.Regexp(t, `(?m)^state +logged in$`, got.out)
	first := d.loginStatus(name)
	require.True(t, first.LoggedIn)
	require.Equal(t, cli.Whoami(), first.By)
	require.Equal(t, []string{"orders"}, first.Scopes)
	require.WithinDuration(t, time.Now().Add(59*time.Minute), first.NextRefresh, time.Minute)

	require.Contains(t, d.does("auth", "refresh", name), "logged in")
	require.Greater(t, d.loginStatus(name).Generation, first.Generation)
	require.Contains(t, d.does("auth", "list"), name)

	require.Contains(t, d.does("auth", "logout", name), "logged out")
	require.Contains(t, d.does("auth", "status", name), "login_required")
	require.Contains(t, d.refuses(exitcode.Failed, "auth", "refresh", name), "has logged out; run: starter auth login "+name)

	require.Contains(t, d.does("auth", "login", name, "--device", "--task-queue", d.queue), "logged in")
	require.True(t, d.loginStatus(name).LoggedIn)
	d.requireUnseen(p, name)
}

// requireUnseen: no history has what only the worker and the server know.
func (d *desk) requireUnseen(p *identity, name string) {
	d.t.Helper()
	history := d.env.Client().GetWorkflowHistory(d.t.Context(), login.WorkflowID(name), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(d.t, err)
		text, err := protojson.Marshal(event)
		require.NoError(d.t, err)
		for _, secret := range p.secrets {
			require.NotContains(d.t, string(text), secret)
			for cut := range 3 { // in base64 it is one of three texts
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", cut) + secret))
				require.NotContains(d.t, string(text), encoded[4:len(encoded)-4])
			}
		}
	}
}

// TestLoginsThatFail say why, and what to do.
func TestLoginsThatFail(t *testing.T) {
	t.Parallel()
	p := newIdentity(t)
	d, name := loginDesk(t, p)
	require.Contains(t, d.refuses(exitcode.Usage, "auth", "login", "bearer:"+p.secret()), "expected the name of a connection that the worker knows")
	require.Contains(t, d.refuses(exitcode.Usage, "auth", "login", name, "--device", "--port", "1"), "give either --device or --port")
	require.Contains(t, d.refuses(exitcode.Failed, "auth", "login", "plain", "--task-queue", d.queue), `connection "plain" has no login: that needs oauth2 with grant: authorization_code`)
	require.Contains(t, d.refuses(exitcode.Failed, "auth", "login", "nobody", "--task-queue", d.queue), `connection "nobody" is not configured`)
	p.withhold = true
	got, _ := d.logIn(name)
	require.Equal(t, exitcode.Failed, got.status)
	require.Contains(t, got.err, "the token endpoint has given no refresh token; many give one for a scope such as offline_access")
	require.False(t, d.loginStatus(name).LoggedIn)
	for _, secret := range p.secrets {
		require.NotContains(t, fmt.Sprint(got), secret)
	}
}
