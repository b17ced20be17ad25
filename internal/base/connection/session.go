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

// SessionSettings describe an API's own login: a request whose response has a token, which later requests send.
type SessionSettings struct {
	Login  Exchange
	Logout *Exchange // sent with the token when the worker ends, nil for none
	// Token is the expression that reads the token from the login's response.
	Token *expression.Template
	// Expires reads, from the login's response, when the token expires: seconds, a duration or a time; nil if
	// unknown.
	Expires *expression.Template
	// Lifetime is how long each token lasts; 0 if Expires decides or it is unknown.
	Lifetime time.Duration
	// RefusedWhen is true for a response which means that the token was refused, in addition to HTTP 401; nil if only
	// 401 does.
	RefusedWhen *expression.Template
	Send        Place
}

// Exchange is the request of a login or a logout. The texts of a logout are templates that may use the token.
type Exchange struct {
	URL     *url.URL
	Method  string
	Headers []NameValue
	Body    any            // canonical, nil for none
	Form    map[string]any // nil for none
}

// Place is where requests send a token. Exactly one of its names is set.
type Place struct {
	Header string // canonical
	Query  string
	Cookie string
	// Value is the template of what is sent; nil for the token itself.
	Value *expression.Template
}

// The names that templates of a session may use.
var (
	namesOfLogin   = []string{"response", "headers", "cookies", "status"}
	namesOfRefusal = []string{"response", "headers", "status"}
	namesOfToken   = []string{"token"}
)

// readSession reads the login; nil if there is none. It sets c.Host to the host of the login if the connection has
// none.
func (s section) readSession(c *Login) *SessionSettings {
	session := s.subsection("session", "login", "token", "send", "expires", "logout", "refused_when")
	if session == nil {
		return nil
	}
	of := &SessionSettings{Token: session.readTemplate("token", namesOfLogin), RefusedWhen: session.readCondition("refused_when", namesOfRefusal)}
	if !session.hasKey("token") {
		s.d.recordProblem(session.path, "must have session.token, such as {{ response.token }}")
	}
	of.Expires, of.Lifetime = session.readExpiry("expires")
	if login := session.mustHave("login", "url", "method", "headers", "body", "form"); login != nil {
		of.Login = login.readExchange(c)
	}
	if logout := session.subsection("logout", "url", "method", "headers", "body", "form"); logout != nil {
		exchange := logout.readExchange(c)
		logout.checkTemplates(nil, logout.values)
		of.Logout = &exchange
	}
	if send := session.mustHave("send", "header", "query", "cookie", "value"); send != nil {
		of.Send = send.readPlace()
	}
	return of
}

// mustHave returns a required section, and reports a missing one.
func (s section) mustHave(name string, known ...string) *section {
	if !s.hasKey(name) {
		s.d.recordProblem(s.path, "must have %s, a map of %s", s.keyName(name), strings.Join(known, ", "))
	}
	return s.subsection(name, known...)
}

// readExchange reads a request. A relative URL is resolved against the connection's host.
func (s section) readExchange(c *Login) Exchange {
	e := Exchange{Method: strings.ToUpper(s.optionalText("method")), URL: s.relativeAddress("url", c)}
	if e.Method == "" {
		e.Method = http.MethodPost
	}
	if !httpguts.ValidHeaderFieldName(e.Method) {
		s.d.recordProblem(s.pathOf("method"), "must have a method of HTTP as %s, such as POST", s.keyName("method"))
	}
	if headers := s.subsection("headers"); headers != nil {
		e.Headers = headers.namedHeaders()
	}
	if s.hasKey("body") && s.hasKey("form") {
		s.d.recordProblem(s.pathOf("form"), "has %s and %s; keep one", s.keyName("body"), s.keyName("form"))
	}
	s.sourcesOf("body", s.values["body"])
	e.Body = s.values["body"]
	if form := s.subsection("form"); form != nil {
		e.Form = form.values
		for name, value := range form.values {
			form.sourcesOf(name, value)
		}
	}
	return e
}

// sourcesOf checks the secret sources within a value.
func (s section) sourcesOf(key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		inner := section{s.d, s.pathOf(key), value}
		if isSource(value) {
			inner.readSource()
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

// relativeAddress returns a URL that may be relative to the connection's host. If the connection has no host, the
// URL's host becomes it.
func (s section) relativeAddress(key string, c *Login) *url.URL {
	u, err := url.Parse(s.requiredText(key))
	switch {
	case err != nil || u.User != nil || u.Fragment != "" || (u.Host == "" && u.Scheme != "") || (u.Host != "" && !isHTTPAddress(u)):
		s.d.recordProblem(s.pathOf(key), "must have a URL as %s, such as https://api.example.com/login, or a path of the host", s.keyName(key))
		return nil
	case u.Host != "":
		if c.Host == nil {
			c.Host = &url.URL{Scheme: u.Scheme, Host: u.Host}
		}
		return u
	case c.Host == nil:
		s.d.recordProblem(s.pathOf(key), "must have a whole URL as %s, or host beside session", s.keyName(key))
		return nil
	}
	at := c.Host.JoinPath(u.EscapedPath())
	at.RawQuery = u.RawQuery
	return at
}

// readPlace reads where a token is sent.
func (s section) readPlace() Place {
	p := Place{Header: http.CanonicalHeaderKey(s.optionalText("header")), Query: s.optionalText("query"), Cookie: s.optionalText("cookie"), Value: s.readTemplate("value", namesOfToken)}
	set := slices.DeleteFunc([]string{"header", "query", "cookie"}, func(key string) bool { return !s.hasKey(key) })
	switch {
	case len(set) != 1:
		s.d.recordProblem(s.path, "must have one of header, query and cookie in %s", s.keyName(""))
	case s.hasKey("header") && !httpguts.ValidHeaderFieldName(p.Header), s.hasKey("cookie") && !httpguts.ValidHeaderFieldName(p.Cookie):
		s.d.recordProblem(s.pathOf(set[0]), "has a name as %s that cannot be sent", s.keyName(set[0]))
	}
	return p
}

// readExpiry returns a template over the login's response, or a duration.
func (s section) readExpiry(key string) (*expression.Template, time.Duration) {
	if text, _ := s.values[key].(string); strings.Contains(text, "{{") {
		return s.readTemplate(key, namesOfLogin), 0
	}
	return nil, s.readDuration(key, 0)
}

// readTemplate returns a template that may use some names; nil if the key is missing.
func (s section) readTemplate(key string, names []string) *expression.Template {
	if !s.hasKey(key) {
		return nil
	}
	template, problems := expression.ParseTemplate(s.optionalText(key))
	return s.checkTemplate(key, template, problems, names)
}

// readCondition is readTemplate for a condition, which may be written without braces.
func (s section) readCondition(key string, names []string) *expression.Template {
	if !s.hasKey(key) {
		return nil
	}
	template, problems := expression.ParseCondition(s.optionalText(key))
	return s.checkTemplate(key, template, problems, names)
}

// checkTemplate returns a template if it has no problems and uses only the allowed names. Messages do not quote it:
// it may be a secret in the wrong place.
func (s section) checkTemplate(key string, template *expression.Template, problems []expression.Problem, names []string) *expression.Template {
	if len(problems) > 0 {
		s.d.recordProblem(s.pathOf(key), "has an expression in %s that cannot be read, at character %d (%s)", s.keyName(key), problems[0].Offset+1, problems[0].Code)
		return nil
	}
	refs := template.Refs()
	if len(refs) == 0 {
		s.d.recordProblem(s.pathOf(key), "must have an expression over %s as %s", strings.Join(names, ", "), s.keyName(key))
	}
	for _, ref := range refs {
		if slices.Contains(names, ref.Root) {
			continue
		}
		hint := ""
		if near := expression.Suggest(ref.Root, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		s.d.recordProblem(s.pathOf(key), "has a name in %s, at character %d, that is not known there%s; the names are %s", s.keyName(key), ref.Offset+1, hint, strings.Join(names, ", "))
	}
	return template
}

// checkTemplates checks the texts of a logout, which may use the token.
func (s section) checkTemplates(path []string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.checkTemplates(append(slices.Clone(path), key), value[key])
		}
	case []any:
		for _, item := range value {
			s.checkTemplates(path, item)
		}
	case string:
		if strings.Contains(value, "{{") {
			last := len(path) - 1
			section{s.d, slices.Concat(s.path, path[:last]), map[string]any{path[last]: value}}.readTemplate(path[last], namesOfToken)
		}
	}
}
