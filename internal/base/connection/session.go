package connection

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"reprise/interpreter/expression"
)

// SessionSettings describe a login that an API has of its own: a request whose answer has a token, which later requests send.
type SessionSettings struct {
	Login  Exchange
	Logout *Exchange // sent with the token when the worker ends, nil for none
	// Token gives the token of the login's answer.
	Token *expression.Template
	// Expires gives the seconds until the token ends, a duration or a time, of the login's answer; nil where nobody knows.
	Expires *expression.Template
	// Lifetime is how long each token lasts; 0 where Expires says it, or nobody.
	Lifetime time.Duration
	// RefusedWhen is true for an answer that says that the token is refused, beside those with HTTP 401; nil for those alone.
	RefusedWhen *expression.Template
	Send        Place
}

// Exchange is a request of a login or a logout. The texts of a logout are templates over the token.
type Exchange struct {
	URL     *url.URL
	Method  string
	Headers []NameValue
	Body    any            // canonical, nil for none
	Form    map[string]any // nil for none
}

// Place is where requests have a token. One of its names is set.
type Place struct {
	Header string // canonical
	Query  string
	Cookie string
	// Value makes what is sent of the token, nil for the token itself.
	Value *expression.Template
}

// The names that templates of a session know.
var (
	namesOfLogin   = []string{"response", "headers", "cookies", "status"}
	namesOfRefusal = []string{"response", "headers", "status"}
	namesOfToken   = []string{"token"}
)

// session reads the login, nil for none. c gets the host of the login where the connection has none.
func (s section) session(c *Login) *SessionSettings {
	session := s.section("session", "login", "token", "send", "expires", "logout", "refused_when")
	if session == nil {
		return nil
	}
	of := &SessionSettings{Token: session.template("token", namesOfLogin), RefusedWhen: session.condition("refused_when", namesOfRefusal)}
	if !session.has("token") {
		s.d.fail(session.path, "must have session.token, such as {{ response.token }}")
	}
	of.Expires, of.Lifetime = session.expiry("expires")
	if login := session.mustHave("login", "url", "method", "headers", "body", "form"); login != nil {
		of.Login = login.exchange(c)
	}
	if logout := session.section("logout", "url", "method", "headers", "body", "form"); logout != nil {
		exchange := logout.exchange(c)
		logout.templates(nil, logout.values)
		of.Logout = &exchange
	}
	if send := session.mustHave("send", "header", "query", "cookie", "value"); send != nil {
		of.Send = send.place()
	}
	return of
}

// mustHave is a section that has to be there.
func (s section) mustHave(name string, known ...string) *section {
	if !s.has(name) {
		s.d.fail(s.path, "must have %s, a map of %s", s.name(name), strings.Join(known, ", "))
	}
	return s.section(name, known...)
}

// exchange reads a request. A relative address is one of the connection's host.
func (s section) exchange(c *Login) Exchange {
	e := Exchange{Method: strings.ToUpper(s.text("method")), URL: s.below("url", c)}
	if e.Method == "" {
		e.Method = http.MethodPost
	}
	if !httpguts.ValidHeaderFieldName(e.Method) {
		s.d.fail(s.at("method"), "must have a method of HTTP as %s, such as POST", s.name("method"))
	}
	if headers := s.section("headers"); headers != nil {
		e.Headers = headers.named()
	}
	if s.has("body") && s.has("form") {
		s.d.fail(s.at("form"), "has %s and %s; keep one", s.name("body"), s.name("form"))
	}
	s.sourcesOf("body", s.values["body"])
	e.Body = s.values["body"]
	if form := s.section("form"); form != nil {
		e.Form = form.values
		for name, value := range form.values {
			form.sourcesOf(name, value)
		}
	}
	return e
}

// sourcesOf checks the sources within a value.
func (s section) sourcesOf(key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		inner := section{s.d, s.at(key), value}
		if isSource(value) {
			inner.source()
			return
		}
		for name, member := range value {
			inner.sourcesOf(name, member)
		}
	case []any:
		for _, item := range value {
			s.sourcesOf(key, item)
		}
	}
}

// below is an address that may be relative to the connection's host, and is that host where the connection has none.
func (s section) below(key string, c *Login) *url.URL {
	u, err := url.Parse(s.required(key))
	switch {
	case err != nil || u.User != nil || u.Fragment != "" || (u.Host == "" && u.Scheme != "") || (u.Host != "" && !isWeb(u)):
		s.d.fail(s.at(key), "must have a URL as %s, such as https://api.example.com/login, or a path of the host", s.name(key))
		return nil
	case u.Host != "":
		if c.Host == nil {
			c.Host = &url.URL{Scheme: u.Scheme, Host: u.Host}
		}
		return u
	case c.Host == nil:
		s.d.fail(s.at(key), "must have a whole URL as %s, or host beside session", s.name(key))
		return nil
	}
	at := c.Host.JoinPath(u.EscapedPath())
	at.RawQuery = u.RawQuery
	return at
}

// place reads where a token is sent.
func (s section) place() Place {
	p := Place{Header: http.CanonicalHeaderKey(s.text("header")), Query: s.text("query"), Cookie: s.text("cookie"), Value: s.template("value", namesOfToken)}
	set := slices.DeleteFunc([]string{"header", "query", "cookie"}, func(key string) bool { return !s.has(key) })
	switch {
	case len(set) != 1:
		s.d.fail(s.path, "must have one of header, query and cookie in %s", s.name(""))
	case s.has("header") && !httpguts.ValidHeaderFieldName(p.Header), s.has("cookie") && !httpguts.ValidHeaderFieldName(p.Cookie):
		s.d.fail(s.at(set[0]), "has a name as %s that cannot be sent", s.name(set[0]))
	}
	return p
}

// expiry reads a duration, or a template over the login's answer.
func (s section) expiry(key string) (*expression.Template, time.Duration) {
	if text, _ := s.values[key].(string); strings.Contains(text, "{{") {
		return s.template(key, namesOfLogin), 0
	}
	return nil, s.duration(key, 0)
}

// template reads a text with expressions over some names, nil for none.
func (s section) template(key string, names []string) *expression.Template {
	if !s.has(key) {
		return nil
	}
	template, problems := expression.ParseTemplate(s.text(key))
	return s.checked(key, template, problems, names)
}

// condition is template for an expression that may be without its braces.
func (s section) condition(key string, names []string) *expression.Template {
	if !s.has(key) {
		return nil
	}
	template, problems := expression.ParseCondition(s.text(key))
	return s.checked(key, template, problems, names)
}

// checked is a template that names what it may. What was written is not shown: it may be a secret in the wrong place.
func (s section) checked(key string, template *expression.Template, problems []expression.Problem, names []string) *expression.Template {
	if len(problems) > 0 {
		s.d.fail(s.at(key), "has an expression in %s that cannot be read, at character %d (%s)", s.name(key), problems[0].Offset+1, problems[0].Code)
		return nil
	}
	refs := template.Refs()
	if len(refs) == 0 {
		s.d.fail(s.at(key), "must have an expression over %s as %s", strings.Join(names, ", "), s.name(key))
	}
	for _, ref := range refs {
		if slices.Contains(names, ref.Root) {
			continue
		}
		hint := ""
		if near := expression.Suggest(ref.Root, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		s.d.fail(s.at(key), "has a name in %s, at character %d, that is not known there%s; the names are %s", s.name(key), ref.Offset+1, hint, strings.Join(names, ", "))
	}
	return template
}

// templates checks the texts of a logout, in which the token may be.
func (s section) templates(path []string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.templates(append(slices.Clone(path), key), value[key])
		}
	case []any:
		for _, item := range value {
			s.templates(path, item)
		}
	case string:
		if strings.Contains(value, "{{") {
			last := len(path) - 1
			section{s.d, slices.Concat(s.path, path[:last]), map[string]any{path[last]: value}}.template(path[last], namesOfToken)
		}
	}
}
