package connection

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// JWT is a service account that proves by its own signature who it is (RFC 7519).
type JWT struct {
	// TokenURL is where a signed token is exchanged for an access token (RFC 7523, section 2.1), nil where requests have the
	// signed one themselves.
	TokenURL *url.URL
	// Algorithm is that of RFC 7518 that signs, such as RS256.
	Algorithm string
	// Key is an *rsa.PrivateKey, an *ecdsa.PrivateKey, an ed25519.PrivateKey, or the bytes of a shared secret. It is nil as long
	// as its source is not read.
	Key      any
	KeyID    string // "" for none
	Issuer   string
	Subject  string   // "" for none
	Audience []string // none where nobody asks for one
	Scopes   []string
	Claims   map[string]any // others, canonical
	Lifetime time.Duration
}

const (
	// usualLifetime is how long a signed token lasts where nothing else is said: servers accept few minutes.
	usualLifetime = 5 * time.Minute
	// mostLifetime is the longest life of a signed token.
	mostLifetime = 24 * time.Hour
)

// algorithms are those that sign, with the keys that each is for.
var algorithms = map[string]func(key any) bool{
	"RS256": isRSA, "RS384": isRSA, "RS512": isRSA, "PS256": isRSA,
	"ES256": isEllipticOn(elliptic.P256()), "ES384": isEllipticOn(elliptic.P384()),
	"EdDSA": func(key any) bool { _, is := key.(ed25519.PrivateKey); return is },
	"HS256": isShared, "HS384": isShared, "HS512": isShared,
}

// usualAlgorithms are those of keys that an account without algorithm signs with, in the order in which they are tried.
var usualAlgorithms = []string{"RS256", "ES256", "ES384", "EdDSA", "HS256"}

func isRSA(key any) bool { _, is := key.(*rsa.PrivateKey); return is }

func isShared(key any) bool { _, is := key.([]byte); return is }

func isEllipticOn(curve elliptic.Curve) func(any) bool {
	return func(key any) bool {
		private, is := key.(*ecdsa.PrivateKey)
		return is && private.Curve == curve
	}
}

// ownClaims are claims that have a key of their own, or that signing sets.
var ownClaims = map[string]string{"iss": "issuer", "sub": "subject", "aud": "audience", "scope": "scopes", "exp": "lifetime", "iat": "", "jti": ""}

// jwt reads the account, nil for none.
func (s section) jwt() *JWT {
	account := s.section("jwt", "issuer", "subject", "audience", "scopes", "claims", "private_key", "secret", "key_id", "algorithm", "lifetime", "token_url")
	if account == nil {
		return nil
	}
	of := &JWT{
		Issuer: account.required("issuer"), Subject: account.text("subject"), KeyID: account.text("key_id"),
		Scopes: account.texts("scopes"), Lifetime: account.duration("lifetime", usualLifetime), Claims: account.claims(),
	}
	if of.Lifetime > mostLifetime {
		account.d.fail(account.at("lifetime"), "must have at most %s as jwt.lifetime", mostLifetime)
	}
	if audience, isText := account.values["audience"].(string); isText && audience != "" {
		of.Audience = []string{audience} // which may have spaces
	} else {
		of.Audience = account.texts("audience")
	}
	if account.has("token_url") {
		of.TokenURL = account.address("token_url", "https://login.example.com/token")
		if of.TokenURL != nil && len(of.Audience) == 0 {
			of.Audience = []string{of.TokenURL.String()}
		}
	}
	of.Key = account.signingKey()
	of.Algorithm = account.algorithm(of.Key)
	return of
}

// claims are those that have no key of their own.
func (s section) claims() map[string]any {
	claims := s.section("claims")
	if claims == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(claims.values)) {
		instead, own := ownClaims[name]
		switch {
		case own && instead != "":
			s.d.fail(claims.at(name), "has jwt.claims.%s; write jwt.%s", name, instead)
		case own:
			s.d.fail(claims.at(name), "has jwt.claims.%s, which the worker sets", name)
		}
	}
	return claims.values
}

// signingKey is private_key or secret, nil where that has its value elsewhere.
func (s section) signingKey() any {
	if s.has("private_key") == s.has("secret") {
		s.d.fail(s.path, "must have one of jwt.private_key and jwt.secret")
		return nil
	}
	if s.has("secret") {
		secret := s.requiredSecret("secret")
		if s.sourced("secret") {
			return nil
		}
		return []byte(secret)
	}
	text := s.requiredSecret("private_key")
	if s.sourced("private_key") {
		return nil
	}
	key := parseKey(text)
	if key == nil {
		s.d.fail(s.at("private_key"), "must have a private key in PEM, without a password, as jwt.private_key")
	}
	return key
}

// parseKey reads a private key of PKCS #8, PKCS #1 or SEC 1, nil for none.
func parseKey(text string) any {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key
	}
	return nil
}

// algorithm is the one that signs with a key, "" for a key that is not read.
func (s section) algorithm(key any) string {
	name := s.text("algorithm")
	fits, known := algorithms[name]
	switch {
	case name == "" && key == nil:
		return ""
	case name == "":
		for _, usual := range usualAlgorithms {
			if algorithms[usual](key) {
				return usual
			}
		}
		s.d.fail(s.at("private_key"), "has a key that no algorithm here signs with; use one of RSA, P-256, P-384 or Ed25519")
	case !known:
		s.d.fail(s.at("algorithm"), "must have one of %s as jwt.algorithm", strings.Join(slices.Sorted(maps.Keys(algorithms)), ", "))
	case key == nil && s.has("secret") != strings.HasPrefix(name, "HS"), key != nil && !fits(key):
		s.d.fail(s.at("algorithm"), "has an algorithm that is not one of its key")
	}
	return name
}
