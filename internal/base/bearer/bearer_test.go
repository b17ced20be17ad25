package bearer_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/bearer"
	"reprise/internal/test/testenv"
)

// provider is an identity provider on loopback, with a clock that the test moves.
type provider struct {
	*httptest.Server

	t        *testing.T
	verifier *bearer.Verifier

	mu     sync.Mutex
	now    time.Time
	keys   []map[string]any
	status int    // of its answers; 0 is 200
	text   string // instead of the keys
	asked  int
}

func newProvider(t *testing.T, keys ...map[string]any) *provider {
	t.Helper()
	p := &provider{t: t, keys: keys, now: time.Now()}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		if p.status != 0 {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(p.status)
			return
		}
		if p.text != "" {
			_, _ = w.Write([]byte(p.text))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": p.keys})
	}))
	t.Cleanup(p.Close)
	p.verifier = bearer.New(bearer.Settings{Issuer: "https://login.example.com", Audience: []string{"reprise", "other"}, KeysURL: p.URL, RolesClaim: "realm.roles"}, p.clock)
	return p
}

func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *provider) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// claims are those of a good token, with changes; nil removes one.
func (p *provider) claims(changes map[string]any) jwt.MapClaims {
	now := p.clock()
	claims := jwt.MapClaims{
		"iss": "https://login.example.com", "aud": []string{"account", "reprise"}, "sub": "grace", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"realm": map[string]any{"roles": []any{"read", 1, "offline_access"}},
	}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// sign signs a token.
func (p *provider) sign(algorithm string, key any, id string, changes map[string]any) string {
	p.t.Helper()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(algorithm), p.claims(changes))
	if id != "" {
		token.Header["kid"] = id
	}
	text, err := token.SignedString(key)
	require.NoError(p.t, err)
	return text
}

// refused requires that a token does not count, because of a reason that says nothing of it.
func (p *provider) refused(token, reason string) {
	p.t.Helper()
	_, err := p.verifier.Verify(p.t.Context(), token)
	require.ErrorContains(p.t, err, reason)
	require.ErrorAs(p.t, err, new(*bearer.InvalidTokenError))
}

func encode(number []byte) string { return base64.RawURLEncoding.EncodeToString(number) }

// publish gives a public key as providers do.
func publish(t *testing.T, id string, key crypto.Signer, more ...string) map[string]any {
	t.Helper()
	published := map[string]any{"kid": id, "use": "sig"}
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		published["kty"], published["n"], published["e"] = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		require.NoError(t, err)
		half := (len(point) - 1) / 2
		published["kty"], published["crv"], published["x"], published["y"] = "EC", public.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case ed25519.PublicKey:
		published["kty"], published["crv"], published["x"] = "OKP", "Ed25519", encode(public)
	}
	for i := 0; i < len(more); i += 2 {
		published[more[i]] = more[i+1]
	}
	return published
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	return key
}

func ellipticKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

// TestTokensOfAProvider: each kind of key signs by its algorithms and no others, and what a token says of its holder is read.
func TestTokensOfAProvider(t *testing.T) {
	t.Parallel()
	keys := map[string]crypto.Signer{
		"rsa": rsaKey(t, 2048), "p256": ellipticKey(t, elliptic.P256()), "p384": ellipticKey(t, elliptic.P384()), "p521": ellipticKey(t, elliptic.P521()),
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	keys["ed"] = edwards
	p := newProvider(t, map[string]any{"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, map[string]any{"kty": 1})
	for id, key := range keys {
		p.keys = append(p.keys, publish(t, id, key))
	}
	for algorithm, id := range map[string]string{
		"RS256": "rsa", "RS384": "rsa", "RS512": "rsa", "PS256": "rsa", "PS384": "rsa", "PS512": "rsa", "ES256": "p256", "ES384": "p384", "ES512": "p521", "EdDSA": "ed",
	} {
		holder, err := p.verifier.Verify(t.Context(), p.sign(algorithm, keys[id], id, nil))
		require.NoError(t, err, algorithm)
		require.Equal(t, bearer.TokenHolder{Subject: "grace", Roles: []string{"read", "offline_access"}}, holder)
	}
	require.Equal(t, 1, p.requests())
	for _, row := range []struct {
		claims map[string]any
		roles  []string
	}{
		{map[string]any{"realm": nil}, nil},
		{map[string]any{"realm": "roles"}, nil},
		{map[string]any{"realm": map[string]any{"roles": "read steer"}}, []string{"read", "steer"}},
		{map[string]any{"realm": map[string]any{"roles": map[string]any{"steer": 1, "read": map[string]any{}}}}, []string{"read", "steer"}},
		{map[string]any{"realm.roles": []any{"admin"}}, []string{"admin"}},
		{map[string]any{"aud": "other"}, []string{"read", "offline_access"}},
	} {
		holder, err := p.verifier.Verify(t.Context(), p.sign("RS256", keys["rsa"], "rsa", row.claims))
		require.NoError(t, err)
		require.Equal(t, row.roles, holder.Roles)
	}
	many := make([]any, 201) // maxRoles
	for i := range many {
		many[i] = "read"
	}
	holder, err := p.verifier.Verify(t.Context(), p.sign("RS256", keys["rsa"], "rsa", map[string]any{"realm.roles": many}))
	require.NoError(t, err)
	require.Len(t, holder.Roles, 200)
}

// TestTokensThatDoNotCount: by algorithm, key, claims, time and form.
func TestTokensThatDoNotCount(t *testing.T) {
	t.Parallel()
	key, other, encryption, elliptic256 := rsaKey(t, 2048), rsaKey(t, 2048), rsaKey(t, 2048), ellipticKey(t, elliptic.P256())
	p := newProvider(t,
		publish(t, "rsa", key, "alg", "RS256"), publish(t, "p256", elliptic256), publish(t, "encryption", encryption, "use", "enc"), publish(t, "short", rsaKey(t, 1024)),
	)
	public := key.Public().(*rsa.PublicKey)
	header := func(text string) string { // with that of another token before claims of a good one
		good := strings.Split(p.sign("RS256", key, "rsa", nil), ".")
		return encode([]byte(text)) + "." + good[1] + "."
	}
	now := p.clock()
	at := func(d time.Duration) map[string]any { return map[string]any{"exp": now.Add(d).Unix()} }
	good := p.sign("RS256", key, "rsa", nil)
	cut := strings.LastIndexByte(good, '.')
	for name, row := range map[string][2]string{
		"no signature":             {p.sign("none", jwt.UnsafeAllowNoneSignatureType, "rsa", nil), "its signature does not count"},
		"none in capitals":         {header(`{"alg": "NONE", "kid": "rsa"}`), "its signature does not count"},
		"no algorithm":             {header(`{"kid": "rsa"}`), "its signature does not count"},
		"the public key as secret": {p.sign("HS256", public.N.Bytes(), "rsa", nil), "its signature does not count"},
		"another key":              {p.sign("RS256", other, "rsa", nil), "its signature does not count"},
		"the key of another kid":   {p.sign("RS256", key, "p256", nil), "no such key"},
		"another kind of key":      {p.sign("ES256", elliptic256, "rsa", nil), "no such key"},
		"not the key's algorithm":  {p.sign("PS256", key, "rsa", nil), "no such key"},
		"a key for encryption":     {p.sign("RS256", encryption, "encryption", nil), "no such key"},
		"an unknown kid":           {p.sign("RS256", key, "rotated", nil), "no such key"},
		"a key in the token":       {header(`{"alg": "RS256", "jwk": {}, "jku": "https://evil.example.com", "kid": "evil"}`) + "AAAA", "no such key"},
		"a kid that is no text":    {header(`{"alg": "RS256", "kid": ["rsa"]}`) + "AAAA", "the kid is no text"},
		"extensions":               {header(`{"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false}`) + "AAAA", "extensions"},
		"expired":                  {p.sign("RS256", key, "rsa", at(-31*time.Second)), "expired"},
		"no end":                   {p.sign("RS256", key, "rsa", map[string]any{"exp": nil}), "lacks one of the claims"},
		"an end that is no time":   {p.sign("RS256", key, "rsa", map[string]any{"exp": "never"}), "no JSON Web Token"},
		"not yet":                  {p.sign("RS256", key, "rsa", map[string]any{"nbf": now.Add(time.Minute).Unix()}), "not valid yet"},
		"of the future":            {p.sign("RS256", key, "rsa", map[string]any{"iat": now.Add(time.Minute).Unix()}), "not valid yet"},
		"another issuer":           {p.sign("RS256", key, "rsa", map[string]any{"iss": "https://login.example.com/"}), "another issuer"},
		"no issuer":                {p.sign("RS256", key, "rsa", map[string]any{"iss": nil}), "lacks one of the claims"},
		"another audience":         {p.sign("RS256", key, "rsa", map[string]any{"aud": "reprise2"}), "another audience"},
		"no audience":              {p.sign("RS256", key, "rsa", map[string]any{"aud": nil}), "lacks one of the claims"},
		"nobody":                   {p.sign("RS256", key, "rsa", map[string]any{"sub": nil}), "the claim sub"},
		"a number":                 {p.sign("RS256", key, "rsa", map[string]any{"sub": 1}), "the claim sub"},
		"a long name":              {p.sign("RS256", key, "rsa", map[string]any{"sub": strings.Repeat("x", 201)}), "the claim sub"}, // maxSubject
		"a name with a line break": {p.sign("RS256", key, "rsa", map[string]any{"sub": "a\nb"}), "the claim sub"},
		"changed":                  {good[:cut-1] + "A" + good[cut:], ""},
		"no token":                 {"a.b.c", "no JSON Web Token"},
		"empty":                    {"..", "no JSON Web Token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.verifier.Verify(t.Context(), row[0])
			require.ErrorContains(t, err, row[1])
			require.ErrorAs(t, err, new(*bearer.InvalidTokenError))
			require.NotContains(t, err.Error(), "grace")
		})
	}
	for _, within := range []map[string]any{at(-29 * time.Second), {"nbf": now.Add(29 * time.Second).Unix()}, {"iat": now.Add(29 * time.Second).Unix()}} {
		_, err := p.verifier.Verify(t.Context(), p.sign("RS256", key, "rsa", within))
		require.NoError(t, err, "clocks differ a little")
	}
	require.Equal(t, 1, p.requests(), "unknown keys are looked for once")
	p.refused(p.sign("ES256", elliptic256, "", nil)+"A", "its signature does not count")
	_, err := p.verifier.Verify(t.Context(), p.sign("ES256", elliptic256, "", nil))
	require.NoError(t, err, "without kid, if only one key fits")
	p.change(func() {
		p.keys, p.now = append(p.keys, publish(t, "p256b", ellipticKey(t, elliptic.P256()))), p.now.Add(10*time.Minute)
	})
	p.refused(p.sign("ES256", elliptic256, "", nil), "no kid, and the provider has several keys")
}

// TestKeysRotate: a new key counts with its first token, one that is gone after keysFresh at most, and unknown keys do not make
// the provider busy.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	first, second := ellipticKey(t, elliptic.P256()), ellipticKey(t, elliptic.P256())
	p := newProvider(t, publish(t, "a", first))
	require.NoError(t, p.verifier.ReadKeys(t.Context()))
	p.change(func() { p.keys = []map[string]any{publish(t, "a", first), publish(t, "b", second)} })
	p.refused(p.sign("ES256", second, "b", nil), "no such key") // within keysPause
	p.change(func() { p.now = p.now.Add(10 * time.Second) })
	_, err := p.verifier.Verify(t.Context(), p.sign("ES256", second, "b", nil))
	require.NoError(t, err)
	require.Equal(t, 2, p.requests())

	var group sync.WaitGroup
	p.change(func() { p.now = p.now.Add(10 * time.Second) })
	for range 20 {
		token := p.sign("ES256", second, rand.Text(), nil)
		group.Go(func() { _, _ = p.verifier.Verify(t.Context(), token) })
	}
	testenv.Wait(t, group.Wait, "the tokens")
	require.Equal(t, 3, p.requests())

	p.change(func() { p.keys = []map[string]any{publish(t, "b", second)} })
	_, err = p.verifier.Verify(t.Context(), p.sign("ES256", first, "a", nil))
	require.NoError(t, err)
	p.change(func() { p.now = p.now.Add(10 * time.Minute) })
	p.refused(p.sign("ES256", first, "a", nil), "no such key")
	p.change(func() { p.keys, p.now = []map[string]any{publish(t, "b", first)}, p.now.Add(10*time.Minute) })
	p.refused(p.sign("ES256", second, "b", nil), "its signature does not count") // the kid was given again
}

// TestProviderIsAway: the last keys count for keysStale, tokens with others are not decided, and nobody is admitted unchecked.
func TestProviderIsAway(t *testing.T) {
	t.Parallel()
	key := ellipticKey(t, elliptic.P256())
	p := newProvider(t, publish(t, "a", key))
	p.change(func() { p.status = http.StatusInternalServerError })
	undecided := func(id, says string) {
		t.Helper()
		_, err := p.verifier.Verify(t.Context(), p.sign("ES256", key, id, nil))
		require.ErrorContains(t, err, says)
		unread, ok := errors.AsType[*bearer.KeysError](err)
		require.True(t, ok)
		require.ErrorContains(t, unread, p.URL)
	}
	undecided("a", "status 500")
	undecided("a", "status 500")
	require.Equal(t, 1, p.requests(), "it is asked again after keysPause")
	for answer, says := range map[string]string{
		"{": "no JSON Web Key Set", "{}": "no JSON Web Key Set", `{"keys": []}`: "no key for signatures",
		`{"keys": [` + strings.Repeat("{},", 100) + `{}]}`: "more than 100 keys", strings.Repeat(" ", 1<<20+1): "more than 1048576 bytes", // maxKeys, maxKeySet
	} {
		p.change(func() { p.status, p.text, p.now = 0, answer, p.now.Add(10*time.Second) })
		undecided("a", says)
	}
	p.change(func() { p.status, p.text, p.now = http.StatusFound, "", p.now.Add(10*time.Second) })
	undecided("a", "status 302")
	p.change(func() { p.status, p.now = 0, p.now.Add(10*time.Second) })
	_, err := p.verifier.Verify(t.Context(), p.sign("ES256", key, "a", nil))
	require.NoError(t, err)

	p.Close()
	p.change(func() { p.now = p.now.Add(59 * time.Minute) })
	_, err = p.verifier.Verify(t.Context(), p.sign("ES256", key, "a", nil))
	require.NoError(t, err)
	undecided("b", "connection refused")
	p.change(func() { p.now = p.now.Add(time.Minute) })
	undecided("a", "connection refused")
}

// TestKeysThatDoNotCount: keys of the wrong size, or that are no point of their curve, sign nothing.
func TestKeysThatDoNotCount(t *testing.T) {
	t.Parallel()
	key, long := ellipticKey(t, elliptic.P256()), strings.Repeat("_w", 1000)
	good := publish(t, "a", key)
	for _, change := range []map[string]any{
		{"x": good["y"]},
		{"x": "AA"},
		{"y": ""},
		{"crv": "P-384"},
		{"crv": "secp256k1"},
		{"x": "é"},
		{"key_ops": []string{"sign"}},
		{"alg": "ES384"},
		{"kty": "RSA", "n": long, "e": "AQAB"},
		/* maxRSA */ {"kty": "RSA", "n": long[:400], "e": "AQ"},
		{"kty": "RSA", "n": long[:400], "e": "AQAA"},
		{"kty": "RSA", "n": long[:300], "e": "AQAB"},
		{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
		{"kty": "OKP", "crv": "X25519"},
	} {
		changed := map[string]any{}
		for _, from := range []map[string]any{good, change} {
			for name, value := range from {
				changed[name] = value
			}
		}
		p := newProvider(t, changed)
		require.ErrorContains(t, p.verifier.ReadKeys(t.Context()), "no key for signatures", change)
	}
	for url, good := range map[string]bool{
		"https://login.example.com/keys": true, "http://127.0.0.1:1/keys": true, "http://localhost/keys": true, "http://[::1]/": true,
		"http://login.example.com/keys": false, "file:///keys": false, "keys": false, "": false, "https://user:password@x/": false, "http://127.0.0.1.example.com/": false,
	} {
		require.Equal(t, good, bearer.CheckKeysURL(url) == nil, url)
	}
	require.True(t, bearer.IsToken("a.b.c"))
	require.False(t, bearer.IsToken("rpr_token"))
}
