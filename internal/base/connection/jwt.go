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

// JWT is a service account that authenticates with tokens it signs itself (RFC 7519).
type JWT struct {
	// TokenURL is where a signed token is exchanged for an access token (RFC 7523, section 2.1); nil if requests send
	// the signed token itself.
	TokenURL *url.URL
	// Algorithm is the signature algorithm (RFC 7518), such as RS256.
	Algorithm string
	// Key is an *rsa.PrivateKey, an *ecdsa.PrivateKey, an ed25519.PrivateKey, or the bytes of a shared secret; nil
	// until its source has been read.
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
	// usualLifetime is the default lifetime of a signed token: servers accept only a few minutes.
	usualLifetime = 5 * time.Minute
	// mostLifetime is the longest configurable lifetime of a signed token.
	mostLifetime = 24 * time.Hour
)

// algorithms maps each known algorithm to a check of the keys it accepts.
var algorithms = map[string]func(key any) bool{
	"RS256": isRSA, "RS384": isRSA, "RS512": isRSA, "PS256": isRSA,
	"ES256": isEllipticOn(elliptic.P256()), "ES384": isEllipticOn(elliptic.P384()),
	"EdDSA": func(key any) bool { _, is := key.(ed25519.PrivateKey); return is },
	"HS256": isShared, "HS384": isShared, "HS512": isShared,
}

// usualAlgorithms are tried in this order if the connection names no algorithm.
var usualAlgorithms = []string{"RS256", "ES256", "ES384", "EdDSA", "HS256"}

func isRSA(key any) bool { _, is := key.(*rsa.PrivateKey); return is }

func isShared(key any) bool { _, is := key.([]byte); return is }

func isEllipticOn(curve elliptic.Curve) func(any) bool {
	return func(key any) bool {
		private, is := key.(*ecdsa.PrivateKey)
		return is && private.Curve == curve
	}
}

// ownClaims are claims that have their own keys in the connection, or that signing sets.
var ownClaims = map[string]string{"iss": "issuer", "sub": "subject", "aud": "audience", "scope": "scopes", "exp": "lifetime", "iat": "", "jti": ""}

// readJWT reads the service account; nil if there is none.
func (s section) readJWT() *JWT {
	account := s.subsection("jwt", "issuer", "subject", "audience", "scopes", "claims", "private_key", "secret", "key_id", "algorithm", "lifetime", "token_url")
	if account == nil {
		return nil
	}
	of := &JWT{
		Issuer: account.requiredText("issuer"), Subject: account.optionalText("subject"), KeyID: account.optionalText("key_id"),
		Scopes: account.readTexts("scopes"), Lifetime: account.readDuration("lifetime", usualLifetime), Claims: account.otherClaims(),
	}
	if of.Lifetime > mostLifetime {
		account.d.recordProblem(account.pathOf("lifetime"), "must have at most %s as jwt.lifetime", mostLifetime)
	}
	if audience, isText := account.values["audience"].(string); isText && audience != "" {
		of.Audience = []string{audience} // which may have spaces
	} else {
		of.Audience = account.readTexts("audience")
	}
	if account.hasKey("token_url") {
		of.TokenURL = account.requiredAddress("token_url", "https://login.example.com/token")
		if of.TokenURL != nil && len(of.Audience) == 0 {
			of.Audience = []string{of.TokenURL.String()}
		}
	}
	of.Key = account.signingKey()
	of.Algorithm = account.keyAlgorithm(of.Key)
	return of
}

// otherClaims returns the additional claims to sign.
func (s section) otherClaims() map[string]any {
	claims := s.subsection("claims")
	if claims == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(claims.values)) {
		instead, own := ownClaims[name]
		switch {
		case own && instead != "":
			s.d.recordProblem(claims.pathOf(name), "has jwt.claims.%s; write jwt.%s", name, instead)
		case own:
			s.d.recordProblem(claims.pathOf(name), "has jwt.claims.%s, which the worker sets", name)
		}
	}
	return claims.values
}

// signingKey returns the parsed private_key or secret; nil if its value is in a source that has not been read.
func (s section) signingKey() any {
	if s.hasKey("private_key") == s.hasKey("secret") {
		s.d.recordProblem(s.path, "must have one of jwt.private_key and jwt.secret")
		return nil
	}
	if s.hasKey("secret") {
		secret := s.requiredSecret("secret")
		if s.isSourced("secret") {
			return nil
		}
		return []byte(secret)
	}
	text := s.requiredSecret("private_key")
	if s.isSourced("private_key") {
		return nil
	}
	key := parseKey(text)
	if key == nil {
		s.d.recordProblem(s.pathOf("private_key"), "must have a private key in PEM, without a password, as jwt.private_key")
	}
	return key
}

// parseKey parses a private key in PEM: PKCS #8, PKCS #1 or SEC 1; nil if it is none of them.
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

// keyAlgorithm returns the algorithm to sign with for a key; "" if the key is unusable.
func (s section) keyAlgorithm(key any) string {
	name := s.optionalText("algorithm")
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
		s.d.recordProblem(s.pathOf("private_key"), "has a key that no algorithm here signs with; use one of RSA, P-256, P-384 or Ed25519")
	case !known:
		s.d.recordProblem(s.pathOf("algorithm"), "must have one of %s as jwt.algorithm", strings.Join(slices.Sorted(maps.Keys(algorithms)), ", "))
	case key == nil && s.hasKey("secret") != strings.HasPrefix(name, "HS"), key != nil && !fits(key):
		s.d.recordProblem(s.pathOf("algorithm"), "has an algorithm that is not one of its key")
	}
	return name
}
