package connection

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"reprise/internal/base/secrets"
)

// parseText parses https://user:password@host, bearer:TOKEN or header:Name: value, the last two optionally followed
// by @https://host.
func parseText(raw string) (*Login, error) {
	scheme, rest, _ := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "bearer":
		token, host, err := cutHost(rest)
		if err != nil || token == "" || !httpguts.ValidHeaderFieldValue(token) {
			return nil, ErrNotHTTP
		}
		return &Login{Host: host, Headers: []NameValue{bearerHeader(token)}}, nil
	case "header":
		field, rest, _ := strings.Cut(rest, ":")
		field = strings.TrimSpace(field)
		value, host, err := cutHost(rest)
		if err != nil || value == "" || !httpguts.ValidHeaderFieldName(field) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, ErrNotHTTP
		}
		return &Login{Host: host, Headers: []NameValue{{http.CanonicalHeaderKey(field), value}}}, nil
	case "http", "https":
		return parseURL(raw)
	}
	return nil, ErrNotHTTP
}

const authorization = "Authorization"

func bearerHeader(token string) NameValue { return NameValue{authorization, "Bearer " + token} }

// basicHeader returns the header of basic authentication (RFC 7617).
func basicHeader(user, password string) NameValue {
	return NameValue{authorization, "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// cutHost splits the host off a secret; nil if it names none.
func cutHost(text string) (string, *url.URL, error) {
	secret, host := secrets.CutHost(text)
	if host == "" {
		return secret, nil, nil
	}
	parsed, err := parseHost(host)
	return secret, parsed, err
}

// parseHost parses the host that credentials are for, with the path to which relative addresses are added.
func parseHost(text string) (*url.URL, error) {
	host, err := url.Parse(strings.TrimSpace(text))
	if err != nil || !isHTTPAddress(host) || host.User != nil || host.RawQuery != "" || host.Fragment != "" {
		return nil, ErrNotHTTP
	}
	return host, nil
}

// isHTTPAddress reports whether a URL has a scheme and a host that http can request.
func isHTTPAddress(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func parseURL(raw string) (*Login, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" { // neither would be sent
		return nil, ErrNotHTTP
	}
	connection := &Login{}
	if password, _ := u.User.Password(); u.User.Username() != "" || password != "" {
		connection.Headers = []NameValue{basicHeader(u.User.Username(), password)}
	}
	u.User = nil
	connection.Host = u
	return connection, nil
}

// checkText reports a URL with a query, which requests would not send.
func checkText(raw string) error {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err == nil && isHTTPAddress(u) && u.RawQuery != "" {
		return &Problem{Message: "is a URL with a query string, which is not sent; to send a key in the query of each request, write a map: " +
			"{query: {NAME: KEY}, host: https://HOST}"}
	}
	return nil
}
