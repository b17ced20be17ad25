// Package connection parses connections that an operator configures: a text such as bearer:TOKEN, or a map of what to
// send. docs/how-to/secrets.md explains both. It sends nothing and reads no files.
package connection

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"strings"

	"reprise/internal/base/egress"
	"reprise/interpreter/expression"
)

// Login is what a connection adds to requests of the http tool.
type Login struct {
	// Host is the address that the credentials are for, with the path to which relative addresses are added; nil for
	// the host of the call's first request.
	Host *url.URL
	// Headers are sent with each request, by their canonical names. They include Authorization for bearer and basic.
	Headers []NameValue
	// Query are the query parameters added to each request to the host.
	Query []NameValue
	// TLS has the client certificates and the authorities to trust; nil for the defaults.
	TLS *tls.Config
	// StoreCookies says whether later requests send the cookies that the host has set.
	StoreCookies bool
	// OAuth2 is the client that fetches tokens; nil for none.
	OAuth2 *OAuth2
	// Session is the login request that returns tokens; nil for none.
	Session *SessionSettings
	// JWT is the service account that signs tokens; nil for none.
	JWT *JWT
	// AWS holds the keys that sign each request; nil for none.
	AWS *AWS
}

// Hosts returns the hosts that the connection names, each as host:port: those of requests and of tokens.
func (l *Login) Hosts() []string {
	named := []*url.URL{l.Host}
	if l.OAuth2 != nil {
		named = append(named, l.OAuth2.Host, l.OAuth2.TokenURL, l.OAuth2.DeviceURL)
	}
	if l.Session != nil {
		named = append(named, l.Session.Login.URL)
		if l.Session.Logout != nil {
			named = append(named, l.Session.Logout.URL)
		}
	}
	if l.JWT != nil {
		named = append(named, l.JWT.TokenURL)
	}
	var hosts []string
	for _, u := range named {
		if u != nil {
			hosts = append(hosts, egress.NameOf(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])))
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// NameValue is a header or a query parameter.
type NameValue struct{ Name, Value string }

// Problem is a mistake in an entry of a connections file. Its message continues after the connection's name, and
// reveals no values of the entry.
type Problem struct {
	// Path are the keys that lead to the mistake.
	Path    []string
	Message string
}

func (p *Problem) Error() string { return p.Message }

// ErrNotHTTP means that a text is not an http connection. It does not quote the text.
var ErrNotHTTP = errors.New("not a connection of http")

// EntryText converts an entry of a connections file to the form in which resolvers store it: a text unchanged, a map as
// JSON. The error is a *Problem.
func EntryText(entry any) (string, error) {
	switch entry := entry.(type) {
	case string:
		if entry != "" {
			return entry, checkText(entry)
		}
	case map[string]any:
		if _, problem := decodeMap(entry); problem != nil {
			return "", problem
		}
		if text, err := expression.Encode(entry); err == nil {
			return string(text), nil
		}
	}
	return "", notAConnection
}

// IsMap reports whether a connection is written as a map.
func IsMap(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// Parse parses a connection of the http tool. The error is ErrNotHTTP, or a *Problem in a map.
func Parse(text string) (*Login, error) {
	if !IsMap(text) {
		return parseText(strings.TrimSpace(text))
	}
	value, err := expression.Decode([]byte(text))
	entry, isMap := value.(map[string]any)
	if err != nil || !isMap {
		return nil, notAConnection
	}
	connection, problem := decodeMap(entry)
	if problem != nil {
		return nil, problem
	}
	return connection, nil
}
