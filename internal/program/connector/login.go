package connector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/node"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/expression"
)

// login is how a connection authenticates, with placeholders for secrets.
type login struct {
	name           string
	bearer         string
	user, password string
	headers, query map[string]string
	oauth          map[string]any
	session, jwt   map[string]any
	host           string
	// others are the names of other connections that may be used instead.
	others []string
}

// formOf returns a text of a component with placeholders for its templates; secret says that it contains secrets.
func (c *converter) formOf(s *step, of component, text string) (form string, secret bool) {
	if !jinja.HasTemplate(text) {
		return text, false
	}
	tree, err := jinja.Parse(text)
	var into trace
	scope := c.stepScope(s, of, &into)
	if err != nil {
		return "VALUE", false
	}
	nodes := []jinja.Operand{tree}
	if concat, isConcat := tree.(*jinja.Concat); isConcat {
		nodes = concat.Parts
	}
	var b strings.Builder
	for _, one := range joinedTexts(nodes) {
		before := len(into.secret) + len(into.plain)
		translated, err := scope.translateNode(one)
		read := slices.Concat(into.secret, into.plain)
		switch {
		case err == nil && translated.known:
			b.WriteString(expression.Text(translated.value))
		case len(read) > before:
			last := into.plain
			if len(into.secret) > 0 {
				last = into.secret
			}
			key := last[len(last)-1]
			b.WriteString(strings.ToUpper(scaffold.NameOf(key[len(key)-1], "VALUE")))
		case len(read) == 1:
			b.WriteString(strings.ToUpper(scaffold.NameOf(read[0][len(read[0])-1], "VALUE")))
		default:
			b.WriteString("VALUE")
		}
	}
	return b.String(), len(into.secret) > 0
}

// joinedTexts are operands with the operands of those that join texts in their place.
func joinedTexts(nodes []jinja.Operand) (out []jinja.Operand) {
	for _, one := range nodes {
		if binary, is := one.(*jinja.Binary); is && (binary.Operator == "+" || binary.Operator == "~") {
			out = append(out, joinedTexts([]jinja.Operand{binary.Left, binary.Right})...)
			continue
		}
		out = append(out, one)
	}
	return out
}

func (l *login) addQuery(name, form string) {
	if l.query == nil {
		l.query = map[string]string{}
	}
	l.query[name] = form
}

func (l *login) addHeader(name, form string) {
	if l.headers == nil {
		l.headers = map[string]string{}
	}
	l.headers[name] = form
}

// moveOutOfURL returns a requester without the secrets in the query of its address. The connection sends them instead.
func (l *login) moveOutOfURL(c *converter, s *step, requester component) component {
	out := maps.Clone(requester)
	for _, key := range []string{"url_base", "path", "url"} {
		text := requester.text(key)
		at := indexOutside(text, '?')
		if at < 0 {
			continue
		}
		var rest []string
		for _, pair := range strings.Split(strings.Join(strings.Fields(text[at+1:]), " "), "&") {
			name, value, _ := strings.Cut(pair, "=")
			if form, secret := c.formOf(s, requester, value); secret && name != "" && !jinja.HasTemplate(name+"}}") {
				l.addQuery(name, form)
				continue
			}
			rest = append(rest, pair)
		}
		if out[key] = text[:at]; len(rest) > 0 {
			out[key] = text[:at] + "?" + strings.Join(rest, "&")
		}
	}
	return out
}

// indexOutside returns the position of a character outside of templates; -1 if there is none.
func indexOutside(text string, c byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '{':
			depth++
		case text[i] == '}':
			depth--
		case text[i] == c && depth == 0:
			return i
		}
	}
	return -1
}

// loginOf returns how a requester authenticates.
func (c *converter) loginOf(s *step, requester component) *login {
	l := &login{}
	of := requester.childAt("authenticator")
	if of.kind() == "SelectiveAuthenticator" {
		l.useSelected(c, s, of)
		return l
	}
	l.readAuthenticator(c, s, of)
	return l
}

// useSelected uses the first of several authenticators; the operator may configure any of them.
func (l *login) useSelected(c *converter, s *step, of component) {
	all := of.childAt("authenticators")
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	best := -1
	for i, name := range names { // one that needs no refresh of tokens
		if kind := all.childAt(name).kind(); kind != "OAuthAuthenticator" && kind != "Custom" && best < 0 {
			best = i
		}
	}
	for i, name := range names {
		if i == max(best, 0) {
			l.readAuthenticator(c, s, all.childAt(name))
			continue
		}
		l.others = append(l.others, name+" ("+all.childAt(name).text("type")+")")
	}
}

func (l *login) readAuthenticator(c *converter, s *step, of component) {
	form := func(key string) string {
		text, _ := c.formOf(s, of, of.text(key))
		return text
	}
	switch kind := of.kind(); kind {
	case "", "NoAuth":
	case "BearerAuthenticator":
		l.bearer = form("api_token")
	case "BasicHttpAuthenticator":
		l.user, l.password = form("username"), form("password")
		if l.user == "" && l.password == "" {
			l.user = "USER"
		}
	case "ApiKeyAuthenticator":
		option := of.childAt("inject_into")
		name := of.text("header")
		if option != nil {
			name, _ = c.formOf(s, option, option.text("field_name"))
		} else if name != "" {
			name, _ = c.formOf(s, of, name)
		}
		switch option.text("inject_into") {
		case "", "header":
			l.addHeader(name, form("api_token"))
		case "request_parameter":
			l.addQuery(name, form("api_token"))
		default:
			s.addGap(atRequest, kind, "a key in the %s: no connection sends it there", option.text("inject_into"))
		}
	case "OAuthAuthenticator":
		l.useOAuth(c, s, of)
	case "SessionTokenAuthenticator":
		l.useSession(c, s, of)
	case "LegacySessionTokenAuthenticator":
		l.useLegacySession(c, s, of)
	case "JwtAuthenticator":
		l.useJWT(c, s, of)
	case "Custom":
		s.addGap(atRequest, customName(of, "CustomAuthenticator"), "set a connection that the API accepts")
		l.bearer = "TOKEN"
	default:
		s.addGap(atRequest, kind, "set a connection that the API accepts")
		l.bearer = "TOKEN"
	}
}

func (l *login) useOAuth(c *converter, s *step, of component) {
	grant := of.text("grant_type")
	if value, isText := c.translateAt(s, atRequest, of, "grant_type", nil).(string); isText {
		grant = value
	}
	if grant != "client_credentials" {
		l.useRefreshToken(c, s, of)
		return
	}
	l.oauth = map[string]any{}
	for key, name := range map[string]string{"token_url": "token_refresh_endpoint", "client_id": "client_id", "client_secret": "client_secret"} {
		l.oauth[key], _ = c.formOf(s, of, of.text(name))
	}
	if scopes, _ := of["scopes"].([]any); len(scopes) > 0 {
		l.oauth["scopes"] = scopes
	}
	if body := of.childAt("refresh_request_body"); len(body) > 0 {
		scope := body.text("scope")
		if scope != "" && l.oauth["scopes"] == nil {
			l.oauth["scopes"] = []any{scope}
		}
		if audience := body.text("audience"); audience != "" {
			l.oauth["audience"], _ = c.formOf(s, of, audience)
		}
	}
}

// constantHost matches the beginning of an address whose host contains no template.
var constantHost = regexp.MustCompile(`^https?://[A-Za-z0-9.:-]+`)

// nameConnection returns the name of a step's connection; "" if it needs none.
func (c *converter) nameConnection(s *step, l *login) string {
	if l.bearer == "" && l.user == "" && l.password == "" && len(l.headers)+len(l.query)+len(l.oauth)+len(l.session)+len(l.jwt) == 0 {
		return ""
	}
	address, _ := s.url.(string)
	if template, isTemplate := s.url.(node.Verbatim); isTemplate {
		address = string(template)
	}
	if found := constantHost.FindString(address); found != "" && !strings.HasPrefix(address[len(found):], "{{") {
		l.host = found
	} else if strings.HasPrefix(address, "{{") && s.base != "" { // which rows name
		l.host = constantHost.FindString(s.base)
	}
	for _, known := range c.logins {
		if known.connectionText() == l.connectionText() {
			return known.name
		}
	}
	l.name = c.Connector
	if n := len(c.logins); n > 0 {
		l.name = fmt.Sprintf("%s_%d", c.Connector, n+1)
	}
	if len(l.others) > 0 {
		c.addNote("the connection %s may also log in as the manifest's %s does", l.name, strings.Join(l.others, " or "))
	}
	c.logins = append(c.logins, l)
	return l.name
}

// connectionText returns the connection that the operator has to configure, with placeholders for secrets.
func (l *login) connectionText() string {
	behind := ""
	if l.host != "" {
		behind = "@" + l.host
	}
	kinds := len(l.headers)
	for _, has := range []bool{l.bearer != "", l.user != "" || l.password != "", len(l.query) > 0, len(l.oauth) > 0, len(l.session) > 0, len(l.jwt) > 0} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds == 1 && l.bearer != "":
		return "bearer:" + l.bearer + behind
	case kinds == 1 && len(l.headers) == 1:
		for name, value := range l.headers {
			return "header:" + name + ": " + value + behind
		}
	case kinds == 1 && l.user != "" && l.host != "" && plainName.MatchString(l.user) && (l.password == "" || plainName.MatchString(l.password)):
		scheme, host, _ := strings.Cut(l.host, "://")
		if l.password == "" {
			return scheme + "://" + l.user + "@" + host
		}
		return scheme + "://" + l.user + ":" + l.password + "@" + host
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(l.connectionParts()) // texts, lists and maps alone
	return strings.TrimSpace(b.String())
}

// connectionParts returns the connection as a map.
func (l *login) connectionParts() map[string]any {
	out := map[string]any{}
	if l.bearer != "" {
		out["bearer"] = l.bearer
	}
	if l.user != "" || l.password != "" {
		basic := map[string]any{"user": l.user}
		if l.password != "" {
			basic["password"] = l.password
		}
		out["basic"] = basic
	}
	if len(l.headers) > 0 {
		out["headers"] = l.headers
	}
	if len(l.query) > 0 {
		out["query"] = l.query
	}
	if len(l.session) > 0 {
		out["session"] = l.session
	}
	if len(l.jwt) > 0 {
		out["jwt"] = l.jwt
	}
	if len(l.oauth) > 0 {
		out["oauth2"] = l.oauth
		if l.host != "" {
			l.oauth["host"] = l.host
		}
	} else if l.host != "" {
		out["host"] = l.host
	}
	return out
}
