package tool

import (
	"net/url"
	"strings"

	"reprise/internal/base/secrets"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
)

// RequestError is an error with the request that failed: error.url and error.params of the
// playbook's expressions.
type RequestError struct {
	URL    string         // as it was sent; with its query, without what it says to log in
	Params map[string]any // nil for none
	Err    error
}

func (e *RequestError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// Bounds of what a message, and error.url, have of an address.
const (
	// MaxShownQuery bounds the query of an address in messages and in error.url, in bytes: it
	// may hold a cursor of kilobytes.
	MaxShownQuery = 300
	// MaxShownURL bounds an address in messages and in error.url, in bytes.
	MaxShownURL = 2 << 10
)

// ShownURL returns an address as errors may show it: without user, password and fragment,
// and without the values of parameters that are secret by their names. At most so many
// bytes of the query are shown.
func ShownURL(u *url.URL, most int) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		return u.Scheme + ":" + secrets.Stars
	}
	if query := shownQuery(u.RawQuery); query != "" {
		return short.String() + "?" + CutText(query, most)
	}
	return short.String()
}

func shownQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, isPair := strings.Cut(pair, "=")
		switch {
		case isPair && credential.MayName(unescapeName(name)):
			pairs[i] = name + "=" + secrets.Stars
		case !isPair && credential.LooksSecret(name):
			pairs[i] = secrets.Stars
		}
	}
	return strings.Join(pairs, "&")
}

func unescapeName(name string) string {
	if plain, err := url.QueryUnescape(name); err == nil {
		return plain
	}
	return name
}

// shownParams bounds error.params, in bytes of JSON.
const shownParams = 4 << 10

// ShownParams are parameters as errors may show them, nil for none and where they are
// very large.
func ShownParams(params map[string]any) any {
	if len(params) == 0 {
		return nil
	}
	shown := make(map[string]any, len(params))
	for name, value := range params {
		if shown[name] = value; credential.MayName(name) && value != nil {
			shown[name] = secrets.Stars
		}
	}
	encoded, err := expression.Encode(shown)
	if err != nil || len(encoded) > shownParams {
		return nil
	}
	return shown
}
