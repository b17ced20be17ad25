package activities

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// httpLogin is what a connection adds to a request; the zero value adds
// nothing.
type httpLogin struct {
	base           *url.URL // nil: the credentials are for whatever host the step names
	user, password string
	header, value  string
}

// login reads the connection a step names: https://user:password@host,
// bearer:TOKEN or header:Name: value.
func (t *httpTool) login(ctx context.Context, name string) (*httpLogin, error) {
	if name == "" {
		return &httpLogin{}, nil
	}

	raw, err := t.res.connection(ctx, name)
	if err != nil {
		return nil, err
	}

	raw = strings.TrimSpace(raw)
	scheme, rest, _ := strings.Cut(raw, ":")

	switch strings.ToLower(scheme) {
	case "bearer":
		if token := strings.TrimSpace(rest); token != "" && httpguts.ValidHeaderFieldValue(token) {
			return &httpLogin{header: "Authorization", value: "Bearer " + token}, nil
		}
	case "header":
		field, value, ok := strings.Cut(rest, ":")
		field, value = strings.TrimSpace(field), strings.TrimSpace(value)

		if ok && httpguts.ValidHeaderFieldName(field) && httpguts.ValidHeaderFieldValue(value) {
			return &httpLogin{header: http.CanonicalHeaderKey(field), value: value}, nil
		}
	case "http", "https":
		if login := urlLogin(raw); login != nil {
			return login, nil
		}
	}

	return nil, configErrorf("connection %q is not one that http can use: it must be https://user:password@host, "+
		"bearer:TOKEN or header:Name: value", name)
}

func urlLogin(raw string) *httpLogin {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil
	}

	login := &httpLogin{base: u}
	if u.User != nil {
		login.user = u.User.Username()
		login.password, _ = u.User.Password()
	}

	u.User = nil

	return login
}

// apply adds the credentials and names the header that holds them, "" for
// none. A header the author has set wins.
func (l *httpLogin) apply(request *http.Request) string {
	switch {
	case l.header != "":
		setDefault(request.Header, l.header, l.value)

		return l.header
	case l.user != "" || l.password != "":
		if request.Header.Get("Authorization") == "" {
			request.SetBasicAuth(l.user, l.password)
		}
	}

	return ""
}
