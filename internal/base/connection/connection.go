// Package connection parses connections that an operator configures: a text such as bearer:TOKEN, or a map of
// what is sent. docs/how-to/secrets.md explains both. It sends nothing and reads no file.
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

// Login is what a connection adds to the requests of http.
type Login struct {
	// Host is the address that the credentials are for, with a path to which addresses are relative; nil is the
	// host of the call's first request.
	Host *url.URL
	// Headers are sent with each request, Authorization of bearer and basic among them, by their canonical names.
	Headers []NameValue
	// Query are parameters that each request to the host has in its query.
	Query []NameValue
	// TLS has the certificates that a server asks for, and those that it is checked against; nil for the usual ones.
	TLS *tls.Config
	// KeepCookies has cookies of the host sent with later requests.
	KeepCookies bool
	// OAuth2 is the client whose tokens are fetched, nil for none.
	OAuth2 *OAuth2
	// Session is the login whose tokens are sent, nil for none.
	Session *SessionSettings
	// JWT is the service account whose tokens are sent, nil for none.
	JWT *JWT
	// AWS are the keys that sign each request, nil for none.
	AWS *AWS
}

// Hosts returns the hosts that the connection names, each as host:port: that of its requests, and those that give it
// tokens.
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

// NameValue is a header or a parameter of a query.
type NameValue struct{ Name, Value string }

// Problem is a mistake in an entry of a file of connections. Its message continues after the connection's name, and
// reveals nothing of the entry's values.
type Problem struct {
	// Path are the keys that lead to the place.
	Path    []string
	Message string
}

func (p *Problem) Error() string { return p.Message }

// ErrNotHTTP says that a text is not an http connection, without quoting it.
var ErrNotHTTP = errors.New("not a connection of http")

// Text converts an entry of a file of connections to the form that resolvers keep: a text unchanged, a map as JSON.
// Its error is a *Problem.
func Text(entry any) (string, error) {
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

// IsMap reports whether a connection is a map and not a text.
func IsMap(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// Parse reads a connection as http uses it. Its error is ErrNotHTTP, or a *Problem of a map.
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
