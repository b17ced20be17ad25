package connector

import (
	"cmp"
	"maps"
	"strings"

	"reprise/interpreter/expression"
)

// formedValue returns a component's value with placeholders for its templates.
func (c *converter) formedValue(s *step, of component, value any) any {
	switch value := value.(type) {
	case string:
		text, _ := c.formOf(s, of, value)
		return text
	case map[string]any:
		out := map[string]any{}
		for key, one := range value {
			out[key] = c.formedValue(s, of, one)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = c.formedValue(s, of, one)
		}
		return out
	}
	return value
}

// useRefreshToken converts a login with a refresh token whose response has the access token.
func (l *login) useRefreshToken(c *converter, s *step, of component) {
	if of["refresh_token_updater"] != nil {
		s.addGap(atRequest, "OAuthAuthenticator", "refresh_token_updater: an API that gives a new refresh token each time refuses the old one; no connection keeps the new one")
	}
	fields := map[string]any{"grant_type": "refresh_token"}
	for _, name := range []string{"client_id", "client_secret", "refresh_token"} {
		if of.text(name) != "" {
			fields[name] = c.formedValue(s, of, of.text(name))
		}
	}
	if grant := of.text("grant_type"); grant != "" {
		fields["grant_type"] = c.formedValue(s, of, grant)
	}
	if scopes, _ := of["scopes"].([]any); len(scopes) > 0 {
		texts := make([]string, len(scopes))
		for i, scope := range scopes {
			texts[i] = expression.Text(c.formedValue(s, of, scope))
		}
		fields["scope"] = strings.Join(texts, " ")
	}
	if body := of.childAt("refresh_request_body"); body != nil {
		maps.Copy(fields, c.formedValue(s, of, map[string]any(body)).(map[string]any)) // a map stays one
	}
	delete(fields, parametersKey)
	expires := "response" + memberPath([]any{cmp.Or(of.text("expires_in_name"), "expires_in")})
	if strings.HasSuffix(of.text("expires_in_name"), "_at") { // a time, in seconds since 1970, and not how long the token is valid
		expires = "date(" + expires + ")"
	}
	l.session = map[string]any{
		"login":   map[string]any{"url": c.formedValue(s, of, of.text("token_refresh_endpoint")), "form": fields},
		"token":   "{{ response" + memberPath([]any{cmp.Or(of.text("access_token_name"), "access_token")}) + " }}",
		"send":    map[string]any{"header": "Authorization", "value": "Bearer {{ token }}"},
		"expires": "{{ " + expires + " }}",
	}
	if of.text("token_expiry_date_format") != "" {
		delete(l.session, "expires") // it lasts until it is refused
	}
}

// useSession converts a login whose response has a token for later requests.
func (l *login) useSession(c *converter, s *step, of component) {
	requester := of.childAt("login_requester")
	base, path := requester.text("url_base"), requester.text("path")
	request := map[string]any{"url": c.formedValue(s, requester, strings.TrimRight(base, "/")+"/"+strings.TrimLeft(path, "/"))}
	if method := requester.text("http_method"); method != "" && !strings.EqualFold(method, "POST") {
		request["method"] = strings.ToUpper(method)
	}
	for key, name := range map[string]string{"request_body_json": "body", "request_body_data": "form", "request_headers": "headers"} {
		if fields, isMap := requester[key].(map[string]any); isMap && len(fields) > 0 {
			request[name] = c.formedValue(s, requester, fields)
		}
	}
	if kind := requester.childAt("authenticator").kind(); kind != "" && kind != "NoAuth" {
		s.addGap(atRequest, "SessionTokenAuthenticator", "a login with %s", kind)
	}
	keys, _ := of["session_token_path"].([]any)
	l.session = map[string]any{"login": request, "token": "{{ response" + memberPath(keys) + " }}"}
	send := map[string]any{"header": "Authorization", "value": "Bearer {{ token }}"}
	if authentication := of.childAt("request_authentication"); authentication.kind() == "ApiKey" {
		option := authentication.childAt("inject_into")
		name, _ := c.formOf(s, option, option.text("field_name"))
		send = map[string]any{"header": name}
		if option.text("inject_into") == "request_parameter" {
			send = map[string]any{"query": name}
		}
	}
	l.session["send"] = send
	if duration := of.text("expiration_duration"); duration != "" {
		if amount, err := amountOf(duration); err == nil {
			l.session["expires"] = lagInHours(amount, false)
		}
	}
}

// useLegacySession converts the older form of a login, with user and password.
func (l *login) useLegacySession(c *converter, s *step, of component) {
	base := s.of.childAt("retriever").childAt("requester").text("url_base")
	body := map[string]any{"username": c.formedValue(s, of, of.text("username")), "password": c.formedValue(s, of, of.text("password"))}
	l.session = map[string]any{
		"login": map[string]any{"url": c.formedValue(s, of, strings.TrimRight(base, "/")+"/"+strings.TrimLeft(of.text("login_url"), "/")), "body": body},
		"token": "{{ response" + memberPath([]any{of.text("session_token_response_key")}) + " }}",
		"send":  map[string]any{"header": of.text("header")},
	}
}

// useJWT converts a service account that signs its tokens.
func (l *login) useJWT(c *converter, s *step, of component) {
	l.jwt = map[string]any{}
	payload, headers := of.childAt("jwt_payload"), of.childAt("jwt_headers")
	for name, text := range map[string]string{
		"issuer": payload.text("iss"), "subject": payload.text("sub"), "audience": payload.text("aud"), "key_id": headers.text("kid"),
		"algorithm": of.text("algorithm"),
	} {
		if text != "" {
			l.jwt[name] = c.formedValue(s, of, text)
		}
	}
	if claims := of.childAt("additional_jwt_payload"); len(claims) > 0 {
		l.jwt["claims"] = c.formedValue(s, of, map[string]any(claims))
	}
	key := "private_key"
	if strings.HasPrefix(of.text("algorithm"), "HS") {
		key = "secret"
	}
	l.jwt[key] = c.formedValue(s, of, of.text("secret_key"))
	if seconds, ok := of.wholeNumber("token_duration"); ok {
		l.jwt["lifetime"] = expression.Text(seconds) + "s"
	}
	if prefix := of.text("header_prefix"); prefix != "" && prefix != "Bearer" {
		s.addGap(atRequest, "JwtAuthenticator", "header_prefix %s: the token is sent with Bearer", prefix)
	}
}
