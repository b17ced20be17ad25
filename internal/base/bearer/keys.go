package bearer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keysFresh is how long keys count before they are read again: so long, a key that the provider has withdrawn still counts.
	keysFresh = 10 * time.Minute
	// keysStale is how long the last keys count while the provider does not respond.
	keysStale = time.Hour
	// keysPause is the least time between two requests to the provider: anybody can send tokens with an unknown key.
	keysPause = 10 * time.Second
	// keysTimeout is how long the provider may take.
	keysTimeout = 5 * time.Second
	// maxKeySet bounds the answer of the provider, in bytes: it is in memory as a whole.
	maxKeySet = 1 << 20
	// maxKeys bounds the keys of the provider: a token without kid is compared with all of them.
	maxKeys = 100
	// minRSA is the least length of an RSA key, in bits: shorter ones are not safe.
	minRSA = 2048
	// maxRSA is the greatest length of an RSA key, in bits: anybody can have tokens checked, and longer keys make that slow.
	maxRSA = 8192
)

// publishedKey is a key of the provider with which tokens are signed.
type publishedKey struct {
	id         string
	algorithms []string // those that it may sign with
	public     any
}

// fits reports whether a key may have signed a token with an ID of a key, "" for none, and an algorithm.
func (k publishedKey) fits(id, algorithm string) bool {
	return (id == "" || id == k.id) && slices.Contains(k.algorithms, algorithm)
}

// keySet is the keys of a provider.
type keySet struct {
	url    string
	now    func() time.Time
	client *http.Client

	mu      sync.Mutex
	keys    []publishedKey
	readAt  time.Time // zero before keys were read
	triedAt time.Time
	failed  error         // why the last attempt to read them failed
	reading chan struct{} // closed when the attempt that is made has ended; nil if none is made
}

func newKeySet(url string, now func() time.Time) *keySet {
	return &keySet{url: url, now: now, client: &http.Client{
		Timeout:       keysTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// find returns the keys that fit. They are read if they are old, or if none fits, unless that was just done. The error is a
// *KeysError, or a *InvalidTokenError if the provider has no such key.
func (s *keySet) find(ctx context.Context, fits func(publishedKey) bool) ([]publishedKey, error) {
	found, age := s.known(fits)
	if len(found) == 0 || age >= keysFresh {
		if err := s.read(ctx); err != nil {
			return nil, &KeysError{err}
		}
		found, age = s.known(fits)
	}
	if len(found) > 0 && age < keysStale {
		return found, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, &KeysError{s.failed}
	}
	return nil, &InvalidTokenError{"the provider has no such key"}
}

// known returns the keys that fit among those that were read, and how long ago that was.
func (s *keySet) known(fits func(publishedKey) bool) ([]publishedKey, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []publishedKey
	for _, one := range s.keys {
		if fits(one) {
			found = append(found, one)
		}
	}
	return found, s.now().Sub(s.readAt)
}

// read reads the keys, or waits until they have been read for somebody else. The error is that of ctx.
func (s *keySet) read(ctx context.Context) error {
	s.mu.Lock()
	if s.reading == nil {
		if now := s.now(); now.Sub(s.triedAt) >= keysPause {
			s.triedAt, s.reading = now, make(chan struct{})
			go s.readNow(context.WithoutCancel(ctx))
		}
	}
	reading := s.reading
	s.mu.Unlock()
	if reading == nil {
		return nil
	}
	select {
	case <-reading:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *keySet) readNow(ctx context.Context) {
	keys, err := s.request(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = err; err == nil {
		s.keys, s.readAt = keys, s.now()
	}
	close(s.reading)
	s.reading = nil
}

// request asks the provider for its keys.
func (s *keySet) request(ctx context.Context) ([]publishedKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("%s: %w", s.url, failed.Err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: the answer has status %d", s.url, response.StatusCode)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.url, err)
	case len(text) > maxKeySet:
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", s.url, maxKeySet)
	}
	keys, err := parseKeySet(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	return keys, nil
}

// webKey is a key as RFC 7517, 7518 and 8037 have it.
type webKey struct {
	Type      string   `json:"kty"`
	ID        string   `json:"kid"`
	Use       string   `json:"use"`
	Uses      []string `json:"key_ops"`
	Algorithm string   `json:"alg"`
	Curve     string   `json:"crv"`
	Modulus   string   `json:"n"`
	Exponent  string   `json:"e"`
	X         string   `json:"x"`
	Y         string   `json:"y"`
}

// parseKeySet returns the keys of a set with which tokens may be signed. Others are left out: providers have keys for encryption,
// and may have kinds that are unknown here.
func parseKeySet(text []byte) ([]publishedKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("the answer is no JSON Web Key Set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the answer has more than %d keys", maxKeys)
	}
	var keys []publishedKey
	for _, raw := range set.Keys {
		var one webKey
		if json.Unmarshal(raw, &one) != nil || one.Use != "" && one.Use != "sig" || one.Uses != nil && !slices.Contains(one.Uses, "verify") {
			continue
		}
		public, signs := one.publicKey()
		if one.Algorithm != "" {
			signs = slices.DeleteFunc(signs, func(name string) bool { return name != one.Algorithm })
		}
		if public != nil && len(signs) > 0 {
			keys = append(keys, publishedKey{id: one.ID, algorithms: signs, public: public})
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the answer has no key for signatures by " + strings.Join(algorithms, ", "))
	}
	return keys, nil
}

// publicKey returns the key, with the algorithms that it can sign with; nil for one that does not count.
func (k webKey) publicKey() (any, []string) {
	switch k.Type {
	case "RSA":
		if key := k.rsaKey(); key != nil {
			return key, []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case "EC":
		if key, algorithm := k.ellipticKey(); key != nil {
			return key, []string{algorithm}
		}
	case "OKP":
		if x := bytesOf(k.X); k.Curve == "Ed25519" && len(x) == ed25519.PublicKeySize {
			return ed25519.PublicKey(x), []string{"EdDSA"}
		}
	}
	return nil, nil
}

func (k webKey) rsaKey() *rsa.PublicKey {
	const maxExponent = 1<<31 - 1
	n, e := new(big.Int).SetBytes(bytesOf(k.Modulus)), new(big.Int).SetBytes(bytesOf(k.Exponent))
	if n.BitLen() < minRSA || n.BitLen() > maxRSA || !e.IsInt64() || e.Int64() < 3 || e.Int64() > maxExponent || e.Bit(0) == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}
}

func (k webKey) ellipticKey() (*ecdsa.PublicKey, string) {
	curves := map[string]struct {
		curve     elliptic.Curve
		algorithm string
	}{"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"}}
	of, known := curves[k.Curve]
	if !known {
		return nil, ""
	}
	const uncompressed = 4 // the first byte of a point (SEC 1, section 2.3.3)
	x, y := bytesOf(k.X), bytesOf(k.Y)
	key, err := ecdsa.ParseUncompressedPublicKey(of.curve, slices.Concat([]byte{uncompressed}, x, y))
	if err != nil || len(x) != len(y) {
		return nil, ""
	}
	return key, of.algorithm
}

// bytesOf decodes a member of a key; nil if it is no base64url.
func bytesOf(text string) []byte {
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return decoded
}
