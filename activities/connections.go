package activities

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// minSecret is the shortest password that is masked wherever it appears.
// Shorter ones would turn ordinary words of a message into stars; they are
// still masked as part of their URL.
const minSecret = 4

const stars = "***"

// secretSet collects what one attempt must not print. Tools keep secrets out
// of their messages; this is the second fence, for what drivers and servers
// repeat.
type secretSet struct {
	mu     sync.Mutex
	values []string
}

type secretsKey struct{}

// withSecrets gives the attempt a set of its own.
func withSecrets(ctx context.Context) (context.Context, *secretSet) {
	set := &secretSet{}

	return context.WithValue(ctx, secretsKey{}, set), set
}

// secretsOf is the attempt's set; outside an attempt a set nobody reads.
func secretsOf(ctx context.Context) *secretSet {
	if set, ok := ctx.Value(secretsKey{}).(*secretSet); ok {
		return set
	}

	return &secretSet{}
}

// add notes a secret; short ones are left out.
func (s *secretSet) add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, secret := range secrets {
		if len(secret) >= minSecret && !slices.Contains(s.values, secret) {
			s.values = append(s.values, secret)
		}
	}

	// Longest first, so that a password inside a URL does not spoil the URL.
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
}

// addURL notes a connection's URL and the secrets in it.
func (s *secretSet) addURL(raw string) {
	if scheme, secret, ok := strings.Cut(raw, ":"); ok && !strings.HasPrefix(secret, "//") {
		switch scheme {
		case "bearer":
			s.add(strings.TrimSpace(secret))
		case "header":
			_, value, _ := strings.Cut(secret, ":")
			s.add(strings.TrimSpace(value))
		}

		return
	}

	u, err := url.Parse(raw)
	if err != nil {
		s.add(raw)

		return
	}

	if u.User == nil && u.RawQuery == "" {
		return
	}

	s.add(raw)

	if password, ok := u.User.Password(); ok {
		s.add(password, url.QueryEscape(password), url.PathEscape(password))

		_, escaped, _ := strings.Cut(u.User.String(), ":")
		s.add(escaped)
	}

	for _, name := range []string{"password", "sslpassword"} {
		s.add(u.Query().Get(name))
	}
}

// mask replaces every secret in text.
func (s *secretSet) mask(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, secret := range s.values {
		text = strings.ReplaceAll(text, secret, stars)
	}

	return text
}

// maskAll masks the texts of a canonical value; v is not changed.
func (s *secretSet) maskAll(v any) any {
	switch v := v.(type) {
	case string:
		return s.mask(v)
	case []any:
		masked := make([]any, len(v))
		for i, item := range v {
			masked[i] = s.maskAll(item)
		}

		return masked
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key, item := range v {
			masked[s.mask(key)] = s.maskAll(item)
		}

		return masked
	}

	return v
}

// redacted is a URL as errors may show it: scheme, host and path, without
// user, password, query and fragment.
func redacted(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		return u.Scheme + ":" + stars
	}

	return short.String()
}

// cutText keeps at most limit bytes of text, whole runes, and makes it valid
// UTF-8, which JSON needs.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}

	const mark = " … (cut)"

	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + mark
}
