package http_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// inPEM is a private key as PKCS #8.
func inPEM(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// verified reads a signed token the way RFC 7515, section 5.2, and RFC 7518 have it, without the library that signs.
func verified(token string, key any) (header, claims map[string]any, good bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, nil, false
	}
	decode := func(part string, into any) {
		text, _ := base64.RawURLEncoding.DecodeString(part)
		_ = json.Unmarshal(text, into)
	}
	decode(parts[0], &header)
	decode(parts[1], &claims)
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	signed := []byte(parts[0] + "." + parts[1])
	digest := sha256.Sum256(signed)
	switch key := key.(type) {
	case *rsa.PrivateKey:
		good = header["alg"] == "RS256" && rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) == nil
		if header["alg"] == "PS256" {
			good = rsa.VerifyPSS(&key.PublicKey, crypto.SHA256, digest[:], signature, nil) == nil
		}
	case *ecdsa.PrivateKey:
		good = header["alg"] == "ES256" && len(signature) == 64 &&
			ecdsa.Verify(&key.PublicKey, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	case ed25519.PrivateKey:
		good = header["alg"] == "EdDSA" && ed25519.Verify(key.Public().(ed25519.PublicKey), signed, signature)
	case []byte:
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		good = header["alg"] == "HS256" && hmac.Equal(mac.Sum(nil), signature)
	}
	return header, claims, good && err == nil && header["typ"] == "JWT"
}

// bank knows the key of a service account and accepts what it has signed, by its own clock.
type bank struct {
	*tooltest.RecordingServer

	key   any
	ahead time.Duration // its clock, of this machine's

	mu     sync.Mutex
	header map[string]any
	claims map[string]any
	seen   map[any]bool // jti
	given  int
}

func newBank(t *testing.T, key any) *bank {
	t.Helper()
	b := &bank{key: key, seen: map[any]bool{}}
	b.RecordingServer = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		now := time.Now().Add(b.ahead)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/token":
			_ = r.ParseForm()
			if assertion := r.PostForm.Get("assertion"); r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || !b.accepts(assertion, now, false) {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant", "error_description": "not accepted: " + assertion})
				return
			}
			b.given++
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("%s-token-%d", canary, b.given), "expires_in": 3600, "token_type": "Bearer"})
		default:
			token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			if strings.HasPrefix(r.URL.Path, "/signed") && !b.accepts(token, now, true) || strings.HasPrefix(r.URL.Path, "/given") && token != fmt.Sprintf("%s-token-%d", canary, b.given) {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"you": token})
		}
	})
	return b
}

// accepts checks a signed token as servers do: its signature, that it is valid now and no longer than 10 minutes, and used once
// where it is exchanged.
func (b *bank) accepts(token string, now time.Time, again bool) bool {
	header, claims, good := verified(token, b.key)
	issued, _ := claims["iat"].(float64)
	expires, _ := claims["exp"].(float64)
	id := claims["jti"]
	if !good || id == nil || int64(issued) > now.Unix() || int64(expires) <= now.Unix() || expires-issued > 600 || !again && b.seen[id] {
		return false
	}
	b.header, b.claims, b.seen[id] = header, claims, true
	return true
}

func account(t *testing.T, b *bank, settings map[string]any) string {
	t.Helper()
	all := map[string]any{"issuer": "robot@acme.test"}
	for name, value := range settings {
		all[name] = value
	}
	text, err := json.Marshal(map[string]any{"jwt": all, "host": b.URL})
	require.NoError(t, err)
	return string(text)
}

func TestServiceAccountsSign(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	elliptic256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	oldRSA := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}))
	secret := canary + "-shared-secret-of-32-bytes"
	for name, of := range map[string]struct {
		key      any
		settings map[string]any
		says     map[string]any
	}{
		"RS256":         {rsaKey, map[string]any{"private_key": inPEM(t, rsaKey), "key_id": "k1"}, map[string]any{"alg": "RS256", "typ": "JWT", "kid": "k1"}},
		"RS256, PKCS 1": {rsaKey, map[string]any{"private_key": oldRSA}, map[string]any{"alg": "RS256", "typ": "JWT"}},
		"PS256":         {rsaKey, map[string]any{"private_key": oldRSA, "algorithm": "PS256"}, map[string]any{"alg": "PS256", "typ": "JWT"}},
		"ES256":         {elliptic256, map[string]any{"private_key": inPEM(t, elliptic256)}, map[string]any{"alg": "ES256", "typ": "JWT"}},
		"EdDSA":         {edwards, map[string]any{"private_key": inPEM(t, edwards)}, map[string]any{"alg": "EdDSA", "typ": "JWT"}},
		"HS256":         {[]byte(secret), map[string]any{"secret": secret}, map[string]any{"alg": "HS256", "typ": "JWT"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, of.key)
			c := withTokens(t, account(t, b, of.settings))
			for range 2 {
				result, err := tooltest.CallHTTP(t, c, getInput(t, "/signed"))
				require.NoError(t, err)
				require.Equal(t, map[string]any{"you": "***"}, result.Data.Data)
			}
			require.Equal(t, of.says, b.header)
			require.Len(t, b.claims, 4)
			require.Equal(t, "robot@acme.test", b.claims["iss"])
			require.InDelta(t, 360, b.claims["exp"].(float64)-b.claims["iat"].(float64), 1, "5 minutes, and one before now")
			require.Len(t, b.seen, 1, "a token is sent until it ends")

			of.settings["token_url"], of.settings["scopes"] = b.URL+"/token", []any{"read", "write"}
			of.settings["subject"], of.settings["claims"] = "ana@acme.test", map[string]any{"box_sub_type": "enterprise", "from": "x"}
			c = withTokens(t, account(t, b, of.settings))
			for range 2 {
				result, err := tooltest.CallHTTP(t, c, getInput(t, "/given"))
				require.NoError(t, err)
				require.Equal(t, map[string]any{"you": "***"}, result.Data.Data)
			}
			require.Equal(t, 1, b.given)
			for _, claim := range []string{"iat", "exp", "jti"} {
				delete(b.claims, claim)
			}
			require.Equal(t, map[string]any{
				"iss": "robot@acme.test", "sub": "ana@acme.test", "aud": b.URL + "/token", "scope": "read write", "box_sub_type": "enterprise", "from": "x",
			}, b.claims)
		})
	}
}

// TestServiceAccountsOfAnotherClock: who checks a token has a clock of its own, and says so where it refuses one.
func TestServiceAccountsOfAnotherClock(t *testing.T) {
	t.Parallel()
	secret := canary + "-shared-secret-of-32-bytes"
	for ahead, requests := range map[time.Duration]int{
		0: 1, 45 * time.Second: 1, -45 * time.Second: 1, 2 * time.Hour: 2, -2 * time.Hour: 2,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			b := newBank(t, []byte(secret))
			b.ahead = ahead
			_, err := tooltest.CallHTTP(t, withTokens(t, account(t, b, map[string]any{"secret": secret})), getInput(t, "/signed"))
			require.NoError(t, err)
			require.Len(t, b.ReceivedRequests(), requests)
			_, err = tooltest.CallHTTP(t, withTokens(t, account(t, b, map[string]any{"secret": secret, "token_url": b.URL + "/token"})), getInput(t, "/given"))
			require.NoError(t, err)
			require.Len(t, b.ReceivedRequests(), 2*requests+1)
		})
	}
	b := newBank(t, []byte(secret))
	b.ahead = 13 * time.Hour // an hour more than mostSkew
	_, err := tooltest.CallHTTP(t, withTokens(t, account(t, b, map[string]any{"secret": secret})), getInput(t, "/signed"))
	require.Equal(t, 401, tooltest.ErrorObject(t, err).Status, "nothing is signed for tomorrow")
}

// TestServiceAccountsThatAreRefused repeat nothing of what was signed.
func TestServiceAccountsThatAreRefused(t *testing.T) {
	t.Parallel()
	secret := canary + "-shared-secret-of-32-bytes"
	b := newBank(t, []byte("another"))
	b.ahead = 2 * time.Hour
	c := withTokens(t, account(t, b, map[string]any{"secret": secret, "token_url": b.URL + "/token"}))
	_, err := tooltest.CallHTTP(t, c, getInput(t, "/given"))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, []any{"token", interpreter.ClassFinal, 400}, []any{object.Type, object.Class, object.Status})
	require.Regexp(t, `\(invalid_grant\); its clock differs by (2h0m0s|1h59m5[0-9]s) from that of the worker`, object.Message)
	require.Equal(t, map[string]any{"error_description": "not accepted: ***"}, object.Body.Data)
	require.Len(t, b.ReceivedRequests(), 2)
	requireNoCanary(t, object)
	_, err = tooltest.CallHTTP(t, withTokens(t, account(t, b, map[string]any{"secret": secret})), getInput(t, "/signed"))
	object = tooltest.ErrorObject(t, err)
	require.Equal(t, map[string]any{"you": "***"}, object.Body.Data)
	requireNoCanary(t, object)
}

// TestServiceAccountsWithTheirKeyInAFile is what clouds give: a file of JSON with a key in it, which may change.
func TestServiceAccountsWithTheirKeyInAFile(t *testing.T) {
	t.Parallel()
	folder, keys := t.TempDir(), [2]*rsa.PrivateKey{}
	write := func(text any) {
		data, err := json.Marshal(map[string]any{"client_email": "robot@acme.test", "private_key": text})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "new"), data, 0o600))
		require.NoError(t, os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, "sheets.json")))
	}
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)
		keys[i] = key
	}
	b := newBank(t, keys[0])
	c := activities.NewCatalogue(activities.Resources{SecretsDirectory: folder, Connections: activities.Connections{
		"api": account(t, b, map[string]any{"private_key": map[string]any{"from": "file", "path": "sheets.json", "field": "private_key"}}),
	}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	write(inPEM(t, keys[0]))
	_, err := tooltest.CallHTTP(t, c, getInput(t, "/signed"))
	require.NoError(t, err)
	b.key = keys[1]
	write(inPEM(t, keys[1]))
	_, err = tooltest.CallHTTP(t, c, getInput(t, "/signed"))
	require.NoError(t, err)
	write(canary + "-broken-key")
	_, err = tooltest.CallHTTP(t, c, getInput(t, "/signed"))
	object := tooltest.ErrorObject(t, err)
	require.True(t, object.Final)
	require.Equal(t, `connection "api" must have a private key in PEM, without a password, as jwt.private_key`, object.Message)
}
