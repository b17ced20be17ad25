package serve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
)

// withProvider adds an identity provider to the file of callers of a world. The function signs tokens with roles.
func (w *world) withProvider() func(subject string, roles ...string) string {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(w.t, err)
	point, err := key.PublicKey.Bytes()
	require.NoError(w.t, err)
	half := 1 + (len(point)-1)/2
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		_, _ = fmt.Fprintf(w, `{"keys": [{"kid": "a", "kty": "EC", "crv": "P-256", "x": %q, "y": %q}]}`, encode(point[1:half]), encode(point[half:]))
	}))
	w.t.Cleanup(keys.Close)
	text, err := os.ReadFile(w.callers)
	require.NoError(w.t, err)
	w.rewriteCallers(fmt.Sprintf("%sjwt: {issuer: https://login.example.com, audience: reprise, jwks_url: %q, roles_claim: roles}\n", text, keys.URL))
	return func(subject string, roles ...string) string {
		w.t.Helper()
		token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": "https://login.example.com", "aud": "reprise", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "roles": roles,
		})
		token.Header["kid"] = "a"
		signed, err := token.SignedString(key)
		require.NoError(w.t, err)
		return signed
	}
}

// TestTokensOfAProvider: a person with a token of the identity provider has the roles that the token says, is its subject in the
// history and in the audit log, and nobody else's runs are its own: not those of a caller with the same name.
func TestTokensOfAProvider(t *testing.T) {
	t.Parallel()
	var path string
	s := newStaff(t, map[string][]string{"grace": {"hello=start"}}, withAudit(t, &path))
	sign := s.withProvider()
	s.tokens["person"] = sign("grace", "billing-*=read,answer", "hello=start", "offline_access", "x=y")
	s.tokens["address"] = sign("ada@example.com", "admin")
	s.tokens["nothing"] = sign("nobody", "offline_access")
	run := s.named("provider", "billing-eu", waiting)
	id := run.GetID()
	status := func(who, id string) int {
		return s.world.ask(http.MethodGet, "/v1/runs/"+url.PathEscape(id), s.tokens[who], nil).status
	}
	require.Equal(t, http.StatusOK, status("person", id))
	require.Equal(t, http.StatusNotFound, s.command("person", id, "pause", `{}`).status)
	require.Equal(t, http.StatusNotFound, status("nothing", id))
	require.Equal(t, http.StatusOK, s.command("address", id, "pause", `{}`).status)
	s.command("address", id, "resume", `{}`)

	own := s.start("hello/runs?wait=60s", s.tokens["person"], `{"name": "Ada"}`, "Idempotency-Key", s.queue)
	require.Equal(t, "hello Ada", own.values["result"])
	require.Equal(t, "hello:jwt.grace:"+s.queue, own.values["workflow_id"])
	require.Equal(t, http.StatusOK, status("person", "hello:jwt.grace:"+s.queue))
	require.Equal(t, http.StatusNotFound, status("grace", "hello:jwt.grace:"+s.queue))
	require.Equal(t, http.StatusAccepted, s.start("hello/runs", s.tokens["grace"], `{"name": "Ada"}`, "Idempotency-Key", s.queue).status)
	require.Equal(t, http.StatusNotFound, status("person", "hello:grace:"+s.queue))
	require.Regexp(t, `^hello:jwt\.~[0-9a-f]{64}:k$`, s.start("hello/runs", s.tokens["address"], `{"name": "Ada"}`, "Idempotency-Key", "k").values["workflow_id"])

	require.Equal(t, http.StatusAccepted, s.command("person", id, "answer", `{"option": "approve"}`).status)
	require.Equal(t, "approve by grace", s.ends(run).Result.Data)
	seen := map[string]int{}
	for _, line := range auditedLines(t, path) {
		if line["proof"] == "jwt" {
			seen[fmt.Sprint(line["actor"], " ", line["action"], " ", line["outcome"])]++
		}
	}
	require.Equal(t, map[string]int{
		"grace pause denied": 1, "nobody read denied": 1, "ada@example.com pause begun": 1, "ada@example.com pause done": 1, "ada@example.com resume begun": 1,
		"ada@example.com resume done": 1, "grace start begun": 1, "grace start done": 1, "grace read denied": 1, "grace answer begun": 1, "grace answer done": 1,
		"ada@example.com start begun": 1, "ada@example.com start done": 1,
	}, seen)
	for _, token := range s.tokens {
		require.NotContains(t, s.log.String(), token)
	}
	require.Contains(t, s.log.String(), `"roles_ignored":2`)
}

// TestTokensOfAProviderAreRefused: without a reason for the client, with one in the log; and while the keys or the file cannot be
// read, nothing is decided.
func TestTokensOfAProviderAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sign := w.withProvider()
	good := sign("grace", "start")
	status := func(token string) reply { return w.start("hello/runs", token, `{"name": "Ada"}`) }
	require.Equal(t, http.StatusAccepted, status(good).status)
	refused := status(good[:len(good)-4] + "AAAA")
	require.Equal(t, http.StatusUnauthorized, refused.status)
	require.Equal(t, status("rpr_nobody").body, refused.body)
	require.Contains(t, w.log.String(), `"refused":"its signature does not count`)
	text, err := os.ReadFile(w.callers)
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "jwt:")
	w.rewriteCallers(before)
	require.Equal(t, http.StatusUnauthorized, status(good).status, "the provider is gone from the file")
	w.rewriteCallers(before + "jwt: {issuer: https://login.example.com, audience: reprise, jwks_url: \"http://127.0.0.1:1\", roles_claim: roles}\n")
	away := status(good)
	require.Equal(t, http.StatusServiceUnavailable, away.status)
	require.Equal(t, "urn:reprise:problem:jwt-keys", away.values["type"])
	require.Equal(t, "10", away.header.Get("Retry-After"))
	require.NotContains(t, string(away.body), "127.0.0.1")
	require.Equal(t, http.StatusAccepted, status(w.ci).status, "callers of the file need no keys")
	require.NotContains(t, w.log.String(), good)
}

// TestProvidersThatAreNone: mistakes have their place in the file.
func TestProvidersThatAreNone(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"1":            ":1:1: jwt: expected a map",
		"{sha256: x}":  `:1:7: jwt: the key "sha256" is unknown`,
		"{issuers: x}": `the key "issuers" is unknown; did you mean "issuer"?`,
		"{issuer: 1}":  ":1:7: jwt: needs issuer, as text",
		"{issuer: x}":  ":1:1: jwt: needs jwks_url, as text",
		"{issuer: x, jwks_url: y, roles_claim: ''}":                                      "jwt: needs roles_claim, as text",
		"{issuer: x, jwks_url: y, roles_claim: z}":                                       ":1:1: jwt: needs audience",
		"{issuer: x, jwks_url: y, roles_claim: z, audience: []}":                         "jwt: needs audience",
		"{issuer: x, jwks_url: y, roles_claim: z, audience: [a, '']}":                    "jwt: needs audience",
		"{issuer: x, jwks_url: 'http://login.example.com', roles_claim: z, audience: a}": ":1:18: jwt: jwks_url: the URL must begin with https://",
	} {
		path := filepath.Join(t.TempDir(), "callers.yaml")
		require.NoError(t, os.WriteFile(path, []byte("jwt: "+text), 0o600))
		_, err := serve.OpenCallers(path)
		require.ErrorContains(t, err, says, text)
	}
	_, _, err := serve.NewToken("jwt", nil, serve.RoleNone)
	require.ErrorContains(t, err, "use another name")
}
