// Package bearer checks the tokens of people that an identity provider signs: JSON Web Tokens, by the keys that the provider
// publishes.
package bearer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// Settings say whose tokens count.
type Settings struct {
	Issuer   string   // the claim iss, as it is
	Audience []string // one of them is in the claim aud
	KeysURL  string   // of the provider's JSON Web Key Set
	// RolesClaim is the claim with the roles: its name, or names of nested maps with dots between them.
	RolesClaim string
}

// TokenHolder is whom a token is about.
type TokenHolder struct {
	Subject string
	Roles   []string // as the token has them; the provider may have others than this program knows
}

// InvalidTokenError means that a token does not count. Reason has nothing of the token, so it may be logged.
type InvalidTokenError struct{ Reason string }

func (e *InvalidTokenError) Error() string { return "the token is refused: " + e.Reason }

// KeysError means that it is unknown whether a token counts, because the keys of the provider cannot be read.
type KeysError struct{ Cause error }

func (e *KeysError) Error() string {
	return "read the keys of the identity provider: " + e.Cause.Error()
}

func (e *KeysError) Unwrap() error { return e.Cause }

const (
	// leeway is how much the clocks of the provider and of this machine may differ.
	leeway = 30 * time.Second
	// maxSubject bounds the claim sub, in bytes. It becomes the name of who answers, which histories keep.
	maxSubject = 200
	// maxRoles bounds the roles of a token: each is parsed for each request, and others than this program's may be there.
	maxRoles = 200
)

// algorithms are the signatures that count: those of key pairs. With none, everybody could sign; with HS256, everybody who knows
// the public key, were it taken for a shared secret.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	settings Settings
	keys     *keySet
	now      func() time.Time
}

// New returns a verifier. It reads no keys yet. now returns the time; nil is time.Now.
func New(settings Settings, now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	return &Verifier{settings: settings, now: now, keys: newKeySet(settings.KeysURL, now)}
}

// Settings returns the settings of the verifier.
func (v *Verifier) Settings() Settings { return v.settings }

// ReadKeys reads the keys of the provider, if they have not been read lately. The error is a *KeysError.
func (v *Verifier) ReadKeys(ctx context.Context) error {
	_, err := v.keys.find(ctx, func(publishedKey) bool { return true })
	return err
}

// CheckKeysURL returns an error for a URL that keys must not be read from: whoever could change them on their way could be anybody.
func CheckKeysURL(text string) error {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.User != nil {
		return errors.New("expected a URL such as https://login.example.com/keys")
	}
	local := at.Hostname() == "localhost" || net.ParseIP(at.Hostname()).IsLoopback()
	if at.Scheme != "https" && (at.Scheme != "http" || !local) {
		return errors.New("the URL must begin with https://; http:// is for this machine only")
	}
	return nil
}

// IsToken reports whether a text has the form of a signed JSON Web Token.
func IsToken(text string) bool { return strings.Count(text, ".") == 2 }

// Verify returns whom a token is about. The error is a *InvalidTokenError or a *KeysError.
func (v *Verifier) Verify(ctx context.Context, text string) (TokenHolder, error) {
	var unread error // why the key is unknown
	parser := jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithTimeFunc(v.now), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithIssuer(v.settings.Issuer), jwt.WithAudience(v.settings.Audience...))
	claims := jwt.MapClaims{}
	_, err := parser.ParseWithClaims(text, claims, func(token *jwt.Token) (any, error) {
		var key any
		key, unread = v.keyOf(ctx, token)
		return key, unread
	})
	if err != nil {
		if _, refused := errors.AsType[*InvalidTokenError](unread); unread != nil && !refused {
			return TokenHolder{}, unread
		}
		return TokenHolder{}, refusalOf(err, unread)
	}
	holder := TokenHolder{Roles: rolesOf(claims, v.settings.RolesClaim)}
	holder.Subject, _ = claims["sub"].(string)
	if !validSubject(holder.Subject) {
		return TokenHolder{}, &InvalidTokenError{fmt.Sprintf("the claim sub must have up to %d printable bytes", maxSubject)}
	}
	return holder, nil
}

// validSubject reports whether a subject can be the name of somebody.
func validSubject(text string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return text != "" && len(text) <= maxSubject && utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) && strings.TrimSpace(text) == text
}

// keyOf returns the keys that may have signed a token.
func (v *Verifier) keyOf(ctx context.Context, token *jwt.Token) (any, error) {
	if _, has := token.Header["crit"]; has {
		return nil, &InvalidTokenError{"it has extensions that must be understood"}
	}
	id, isText := token.Header["kid"].(string)
	if _, has := token.Header["kid"]; has && !isText {
		return nil, &InvalidTokenError{"the kid is no text"}
	}
	found, err := v.keys.find(ctx, func(one publishedKey) bool { return one.fits(id, token.Method.Alg()) })
	if err != nil {
		return nil, err
	}
	if id == "" && len(found) > 1 {
		return nil, &InvalidTokenError{"it has no kid, and the provider has several keys"}
	}
	keys := jwt.VerificationKeySet{}
	for _, one := range found {
		keys.Keys = append(keys.Keys, one.public)
	}
	return keys, nil
}

// refusalOf returns why the parser refused a token, without what its error quotes.
func refusalOf(err, unread error) error {
	refused, isRefused := errors.AsType[*InvalidTokenError](unread)
	switch {
	case isRefused:
		return refused
	case errors.Is(err, jwt.ErrTokenExpired):
		return &InvalidTokenError{"it has expired"}
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return &InvalidTokenError{"it is not valid yet; compare the clocks"}
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return &InvalidTokenError{"it is of another issuer"}
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return &InvalidTokenError{"it is for another audience"}
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return &InvalidTokenError{"it lacks one of the claims iss, aud and exp"}
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		return &InvalidTokenError{"its signature does not count: by another key, changed, or of an algorithm other than " + strings.Join(algorithms, ", ")}
	}
	return &InvalidTokenError{"it is no JSON Web Token"}
}

// rolesOf returns the texts of a claim: a list of them, or a text with spaces between them. The name of a claim may contain dots
// itself; else they lead into nested maps.
func rolesOf(claims map[string]any, name string) []string {
	value, has := claims[name]
	for !has {
		first, rest, nested := strings.Cut(name, ".")
		below, isMap := claims[first].(map[string]any)
		if !nested || !isMap {
			return nil
		}
		claims, name = below, rest
		value, has = claims[name]
	}
	var roles []string
	switch value := value.(type) {
	case string:
		roles = strings.Fields(value)
	case []any:
		for _, one := range value {
			if text, ok := one.(string); ok {
				roles = append(roles, text)
			}
		}
	case map[string]any: // names of roles as keys
		roles = slices.Sorted(maps.Keys(value))
	}
	return roles[:min(len(roles), maxRoles)]
}
