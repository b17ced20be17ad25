package secretstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
	"reprise/internal/base/secretstore"
	"reprise/internal/test/testenv"
)

const canary = "canary-5ecret"

// fakeVault is a Vault on loopback, and a program that reads it, with a clock for both.
type fakeVault struct {
	*connection.Sources

	t         *testing.T
	url       string
	variables map[string]string
	log       bytes.Buffer
	renewals  chan string

	mu      sync.Mutex
	now     time.Time
	kv      map[string]any // by path
	status  int            // of all answers; 0 for none
	lasts   int            // seconds of a new lease
	extends int            // seconds of a renewed one
	logins  int
	tokens  map[string]bool
	leases  map[string]string // those that count, by ID, with their token
	seen    []string          // methods and paths
}

func newFakeVault(t *testing.T) *fakeVault {
	t.Helper()
	v := &fakeVault{
		t: t, now: time.Now(), kv: map[string]any{}, tokens: map[string]bool{"given": true}, leases: map[string]string{}, lasts: 600, extends: 600, renewals: make(chan string, 100),
	}
	server := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(server.Close)
	v.url, v.variables = server.URL, map[string]string{"VAULT_ADDR": server.URL, "VAULT_TOKEN": "given"}
	lookup := func(name string) (string, bool) { value, ok := v.variables[name]; return value, ok }
	v.Sources = &connection.Sources{
		Lookup: lookup, Now: v.clock, Logger: slog.New(slog.NewTextHandler(&v.log, nil)),
		Stores: map[string]connection.SecretStore{"vault": secretstore.NewVault(lookup, v.clock)},
	}
	return v
}

func (v *fakeVault) clock() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

func (v *fakeVault) change(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

// serve answers as Vault does.
func (v *fakeVault) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	path, body := strings.TrimPrefix(r.URL.Path, "/v1/"), map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&body)
	v.seen = append(v.seen, r.Method+" "+path)
	answer := func(status int, value any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	token := r.Header.Get("X-Vault-Token")
	login := strings.HasPrefix(path, "auth/") && strings.HasSuffix(path, "/login")
	switch {
	case v.status != 0:
		answer(v.status, map[string]any{"errors": []string{canary}})
	case login && (body["role_id"] == "role" && body["secret_id"] == "secret" || body["role"] == "role" && body["jwt"] == "pod"):
		v.logins++
		v.tokens[fmt.Sprint("login-", v.logins)] = true
		answer(http.StatusOK, map[string]any{"auth": map[string]any{"client_token": fmt.Sprint("login-", v.logins), "lease_duration": 3600, "renewable": true}})
	case login:
		answer(http.StatusBadRequest, map[string]any{"errors": []string{canary}})
	case !v.tokens[token]:
		answer(http.StatusForbidden, map[string]any{"errors": []string{"permission denied"}})
	case path == "auth/token/revoke-self":
		delete(v.tokens, token)
		for id, of := range v.leases {
			if of == token {
				delete(v.leases, id)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	case path == "sys/leases/renew":
		if v.leases[body["lease_id"].(string)] == "" {
			answer(http.StatusBadRequest, map[string]any{"errors": []string{"lease not found"}})
			return
		}
		answer(http.StatusOK, map[string]any{"lease_id": body["lease_id"], "lease_duration": v.extends, "renewable": true})
		v.renewals <- body["lease_id"].(string)
	case path == "sys/leases/revoke":
		delete(v.leases, body["lease_id"].(string))
		w.WriteHeader(http.StatusNoContent)
	case path == "database/creds/shop":
		id := fmt.Sprint("database/creds/shop/", len(v.seen))
		v.leases[id] = token
		answer(http.StatusOK, map[string]any{"lease_id": id, "lease_duration": v.lasts, "renewable": true, "data": map[string]any{"username": "user-" + id, "password": canary + id}})
	case v.kv[path] != nil:
		answer(http.StatusOK, map[string]any{"data": v.kv[path], "lease_id": ""})
	case strings.HasPrefix(path, "kv/") && !strings.HasPrefix(path, "kv/data/"):
		answer(http.StatusNotFound, map[string]any{"warnings": []string{"Invalid path for a versioned K/V secrets engine. See the API docs."}})
	default:
		answer(http.StatusNotFound, map[string]any{"errors": []string{}})
	}
}

// versioned is a secret of version 2 of the KV engine.
func versioned(fields map[string]any) map[string]any {
	return map[string]any{"data": fields, "metadata": map[string]any{"version": 1}}
}

// requests counts the requests for a path, and forgets them.
func (v *fakeVault) requests(path string) (n int) {
	v.change(func() {
		for i, one := range v.seen {
			if strings.HasSuffix(one, " "+path) {
				n, v.seen[i] = n+1, ""
			}
		}
	})
	return n
}

func source(path, field string) connection.SecretSource {
	return connection.SecretSource{From: "vault", Path: path, Field: field, Refresh: 5 * time.Minute}
}

func (v *fakeVault) value(of connection.SecretSource, anew bool) string {
	v.t.Helper()
	value, err := v.Read(of, anew)
	require.NoError(v.t, err)
	return value
}

// TestValuesOfVault: fields of a path are read together, again after refresh or when they were refused, and the last ones count
// for an hour while Vault is away.
func TestValuesOfVault(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	var changes []string
	v.OnChange(func(what string, err error) { changes = append(changes, fmt.Sprint(what, " ", err != nil)) })
	v.kv["kv/data/shop"] = versioned(map[string]any{"user": "ana", "password": "first"})
	v.kv["v1/shop"] = map[string]any{"password": "first", "data": "x", "metadata": "y"}
	require.Equal(t, "first", v.value(source("kv/data/shop", "password"), false))
	require.Equal(t, "ana", v.value(source("kv/data/shop", "user"), false))
	require.JSONEq(t, `{"user": "ana", "password": "first"}`, v.value(source("kv/data/shop", ""), false))
	require.Equal(t, "first", v.value(source("v1/shop", "password"), false))
	require.Equal(t, 1, v.requests("kv/data/shop"))
	v.change(func() { v.kv["kv/data/shop"] = versioned(map[string]any{"user": "ana", "password": "second"}) })
	require.Equal(t, "first", v.value(source("kv/data/shop", "password"), false))
	require.Equal(t, "second", v.value(source("kv/data/shop", "password"), true))
	v.change(func() {
		v.kv["kv/data/shop"], v.now = versioned(map[string]any{"password": "third"}), v.now.Add(5*time.Minute)
	})
	require.Equal(t, "third", v.value(source("kv/data/shop", "password"), false))
	require.Equal(t, 2, v.requests("kv/data/shop"))
	v.change(func() { v.status = http.StatusServiceUnavailable })
	require.Equal(t, "third", v.value(source("kv/data/shop", "password"), true))
	require.Equal(t, "third", v.value(source("kv/data/shop", "password"), true))
	require.Equal(t, 1, v.requests("kv/data/shop"), "it is asked again after storePause")
	require.Equal(t, 1, strings.Count(v.log.String(), "its last value stays in use"))
	require.Equal(t, []string{"secret from Vault path kv/data/shop false", "secret from Vault path kv/data/shop false", "secret from Vault path kv/data/shop true"}, changes)
	v.change(func() { v.now = v.now.Add(time.Hour) })
	_, err := v.Read(source("kv/data/shop", "password"), false)
	require.EqualError(t, err, "Vault path kv/data/shop, field password: the secret cannot be read: Vault is sealed (status 503)")
	require.ErrorIs(t, err, connection.ErrUnreadable)
	v.change(func() { v.status, v.now = 0, v.now.Add(10*time.Second) })
	require.Equal(t, "third", v.value(source("kv/data/shop", "password"), false))
	require.NotContains(t, v.log.String(), canary)
	require.NoError(t, v.Close())
}

// TestManyReadOnce: attempts whose secret was refused at the same time share a request, or come just after it.
func TestManyReadOnce(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	v.kv["kv/data/shop"] = versioned(map[string]any{"password": "first"})
	v.value(source("kv/data/shop", "password"), false)
	v.requests("kv/data/shop")
	var group sync.WaitGroup
	v.mu.Lock() // the first request waits until all others do
	asked := make(chan struct{}, 50)
	for range 50 {
		group.Go(func() {
			asked <- struct{}{}
			_, _ = v.Read(source("kv/data/shop", "password"), true)
		})
	}
	for range 50 {
		testenv.Receive(t, asked, "a reader")
	}
	v.mu.Unlock()
	testenv.Wait(t, group.Wait, "the readers")
	require.Less(t, v.requests("kv/data/shop"), 50)
}

// TestVaultHasNoSuchSecret: what is missing or wrong is named, and no answer of Vault is repeated.
func TestVaultHasNoSuchSecret(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	v.kv["kv/data/shop"] = versioned(map[string]any{"password": canary})
	v.kv["kv/data/deleted"] = versioned(nil)
	folder := t.TempDir()
	for name, row := range map[string]struct {
		path      string
		variables map[string]string
		says      string
		missing   bool
	}{
		"no path":           {"kv/data/none", nil, "no such secret", true},
		"no field":          {"kv/data/shop", nil, "field x: no such secret", true},
		"deleted":           {"kv/data/deleted", nil, "no such secret", true},
		"no data in it":     {"kv/shop", nil, "write MOUNT/data/PATH", true},
		"another token":     {"kv/data/shop", map[string]string{"VAULT_TOKEN": canary}, "does not allow it (status 403)", false},
		"no token":          {"kv/data/shop", map[string]string{"VAULT_TOKEN": ""}, "there is no login to Vault", false},
		"two tokens":        {"kv/data/shop", map[string]string{"REPRISE_VAULT_LOGIN_FILE": "x"}, "are both set", false},
		"no such file":      {"kv/data/shop", map[string]string{"VAULT_TOKEN": "", "REPRISE_VAULT_LOGIN_FILE": filepath.Join(folder, "x")}, "no such file", false},
		"no address":        {"kv/data/shop", map[string]string{"VAULT_ADDR": ""}, "VAULT_ADDR must be the URL of Vault", false},
		"nobody there":      {"kv/data/shop", map[string]string{"VAULT_ADDR": "http://127.0.0.1:1"}, "connection refused", false},
		"another login":     {"kv/data/shop", map[string]string{"REPRISE_VAULT_LOGIN": "ldap"}, "must be token, approle or kubernetes", false},
		"no role":           {"kv/data/shop", map[string]string{"REPRISE_VAULT_LOGIN": "approle"}, "needs REPRISE_VAULT_ROLE", false},
		"another role":      {"kv/data/shop", map[string]string{"REPRISE_VAULT_LOGIN": "approle", "REPRISE_VAULT_ROLE": canary}, "refuses the login by approle at auth/approle (status 400)", false},
		"no authority":      {"kv/data/shop", map[string]string{"VAULT_CACERT": filepath.Join(folder, "x")}, "VAULT_CACERT", false},
		"not in kubernetes": {"kv/data/shop", map[string]string{"REPRISE_VAULT_LOGIN": "kubernetes", "REPRISE_VAULT_ROLE": "role"}, "/var/run/secrets/kubernetes.io", false},
	} {
		t.Run(name, func(t *testing.T) {
			variables := map[string]string{"VAULT_ADDR": v.url, "VAULT_TOKEN": "given"}
			for name, value := range row.variables {
				variables[name] = value
			}
			lookup := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
			sources := &connection.Sources{Now: time.Now, Stores: map[string]connection.SecretStore{"vault": secretstore.NewVault(lookup, time.Now)}}
			_, err := sources.Read(source(row.path, "x"), false)
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, "Vault path "+row.path+", field x")
			require.NotContains(t, err.Error(), canary)
			want := connection.ErrUnreadable
			if row.missing {
				want = connection.ErrMissing
			}
			require.ErrorIs(t, err, want)
		})
	}
	_, err := (&connection.Sources{Now: time.Now}).Read(source("kv/data/shop", ""), false)
	require.ErrorContains(t, err, "this program reads no secrets from vault")
}

// TestLoginsToVault: by approle and kubernetes, anew before a login ends, or when Vault has forgotten it; a file with a token is
// read each time.
func TestLoginsToVault(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for way, secret := range map[string]string{"approle": "secret", "kubernetes": "pod"} {
		v := newFakeVault(t)
		path := filepath.Join(folder, way)
		require.NoError(t, os.WriteFile(path, []byte(secret+"\n"), 0o600))
		v.variables["REPRISE_VAULT_LOGIN"], v.variables["REPRISE_VAULT_ROLE"], v.variables["REPRISE_VAULT_LOGIN_FILE"] = way, "role", path
		v.variables["VAULT_TOKEN"], v.variables["REPRISE_VAULT_MOUNT"] = "", "teams/a/"
		v.kv["kv/data/a b?"] = versioned(map[string]any{"password": "first"})
		read := func() { require.Equal(t, "first", v.value(source("kv/data/a b?", "password"), true)) }
		read()
		read()
		require.Equal(t, 1, v.requests("auth/teams/a/login"))
		v.change(func() { v.now = v.now.Add(40 * time.Minute) })
		read()
		require.Equal(t, 1, v.requests("auth/teams/a/login"))
		v.change(func() { v.now, v.tokens = v.now.Add(time.Minute), map[string]bool{} })
		read()
		require.Equal(t, 1, v.requests("auth/teams/a/login"))
		require.NoError(t, v.Close())
		require.Empty(t, v.tokens, "own logins are revoked")
	}
	v := newFakeVault(t)
	path := filepath.Join(folder, "token")
	v.variables["VAULT_TOKEN"], v.variables["REPRISE_VAULT_LOGIN_FILE"] = "", path
	v.kv["kv/data/shop"] = versioned(map[string]any{"password": "first"})
	for _, token := range []string{"given", "other"} {
		require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
		v.change(func() { v.tokens = map[string]bool{token: true} })
		require.Equal(t, "first", v.value(source("kv/data/shop", "password"), true))
	}
	v.value(source("database/creds/shop", "username"), false)
	require.NoError(t, v.Close())
	require.True(t, v.tokens["other"], "what others have given stays")
	require.Empty(t, v.leases)
}

// TestLeasesOfVault: an account that Vault makes is renewed at two thirds, replaced when it cannot be renewed for long or before its
// login ends, and revoked at the end. Its user and password belong together.
func TestLeasesOfVault(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	user, password := source("database/creds/shop", "username"), source("database/creds/shop", "password")
	first := v.value(user, false)
	require.Equal(t, canary+strings.TrimPrefix(first, "user-"), v.value(password, false))
	require.Equal(t, first, v.value(user, true), "one that is new is not replaced")
	v.change(func() { v.now = v.now.Add(399 * time.Second) })
	v.RenewLeases(t.Context())
	require.Equal(t, 0, v.requests("sys/leases/renew"))
	v.change(func() { v.now = v.now.Add(time.Second) })
	v.RenewLeases(t.Context())
	require.Equal(t, 1, v.requests("sys/leases/renew"))
	require.Equal(t, first, v.value(user, false))
	v.change(func() { v.now, v.extends = v.now.Add(400*time.Second), 299 })
	v.RenewLeases(t.Context())
	require.Equal(t, 1, v.requests("database/creds/shop"), "nobody needs another one yet")
	second := v.value(user, false)
	require.NotEqual(t, first, second)
	require.Len(t, v.leases, 2, "attempts may still use the first one")
	v.change(func() { v.now = v.now.Add(10 * time.Second) })
	third := v.value(user, true)
	require.NotEqual(t, second, third, "one that is refused is replaced")
	v.change(func() { v.status, v.now = http.StatusServiceUnavailable, v.now.Add(599*time.Second) })
	require.Equal(t, third, v.value(user, false))
	v.change(func() { v.now = v.now.Add(time.Second) })
	_, err := v.Read(user, false)
	require.ErrorIs(t, err, connection.ErrUnreadable, "a lease that has ended does not count for another hour")
	v.change(func() { v.status, v.now = 0, v.now.Add(10*time.Second) })
	last := v.value(user, false)
	v.change(func() { v.status = http.StatusInternalServerError })
	require.ErrorContains(t, v.Close(), "Vault path database/creds/shop: the lease counts until ")
	require.Contains(t, v.log.String(), "could not be revoked")
	require.Contains(t, v.leases, strings.TrimPrefix(last, "user-"))
	require.NotContains(t, v.log.String(), canary)
}

// TestLeasesEndWithTheirLogin and are replaced before that.
func TestLeasesEndWithTheirLogin(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	v.variables["REPRISE_VAULT_LOGIN"], v.variables["REPRISE_VAULT_ROLE"], v.variables["REPRISE_VAULT_LOGIN_FILE"] = "approle", "role", path
	v.lasts, v.extends = 36000, 36000
	user := source("database/creds/shop", "username")
	first := v.value(user, false)
	v.change(func() { v.now = v.now.Add(40 * time.Minute) })
	require.NotEqual(t, first, v.value(user, false))
	require.Equal(t, 2, v.logins)
	require.NoError(t, v.Close())
	require.Empty(t, v.leases)
}

// TestLeasesAreRenewedMeanwhile: while an attempt runs, nobody reads its secret.
func TestLeasesAreRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	v.Now = time.Now
	v.Stores["vault"] = secretstore.NewVault(v.Lookup, time.Now)
	v.lasts = 1
	first := v.value(source("database/creds/shop", "username"), false)
	require.Equal(t, strings.TrimPrefix(first, "user-"), testenv.Receive(t, v.renewals, "a renewal"))
	require.NoError(t, v.Close())
	require.Empty(t, v.leases)
}

// TestALargeAnswerIsNoSecret passes mostAnswer.
func TestALargeAnswerIsNoSecret(t *testing.T) {
	t.Parallel()
	v := newFakeVault(t)
	v.kv["kv/data/log"] = versioned(map[string]any{"text": strings.Repeat("x", 1<<20)})
	_, err := v.Read(source("kv/data/log", "text"), false)
	require.ErrorContains(t, err, "the answer has more than 1048576 bytes")
}
