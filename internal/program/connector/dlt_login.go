package connector

import (
	"fmt"
	"strings"

	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/scaffold"
)

// authClass is a class of dlt that logs in: its type in configurations, and its arguments by position.
type authClass struct {
	kind string
	args []string
}

var authClasses = map[string]authClass{
	"BearerTokenAuth":         {"bearer", []string{"token"}},
	"APIKeyAuth":              {"api_key", []string{"name", "api_key", "location"}},
	"HttpBasicAuth":           {"http_basic", []string{"username", "password"}},
	"OAuth2ClientCredentials": {"oauth2_client_credentials", []string{"access_token_url", "client_id", "client_secret", "access_token_request_data", "default_token_expiration", "session"}},
}

// configOfCall returns a call of a class as the dict of its configuration; nil if the class is unknown.
func configOfCall(call *pyliteral.CallExpr, classes map[string]authClass) component {
	class, known := classes[call.Name[strings.LastIndex(call.Name, ".")+1:]]
	if !known || len(call.Args) > len(class.args) {
		return nil
	}
	out := component{"type": class.kind}
	for i, value := range call.Args {
		out[class.args[i]] = value
	}
	for name, value := range call.Named {
		out[name] = value
	}
	return out
}

// loginOfAuth returns how dlt's auth logs in.
func (r *restAPI) loginOfAuth(s *step, auth any) *login {
	l := &login{}
	var of component
	switch auth := auth.(type) {
	case nil:
		return l
	case string:
		of = component{"type": auth}
	case map[string]any:
		of = auth
	case *pyliteral.CallExpr:
		of = configOfCall(auth, authClasses)
	}
	kind := of.text("type")
	if of != nil && of["type"] == nil {
		kind = "bearer"
	}
	known := []string{"type"}
	switch kind {
	case "bearer":
		l.bearer, known = secretForm(of["token"], "TOKEN"), append(known, "token")
	case "http_basic":
		l.user, l.password, known = secretForm(of["username"], "USERNAME"), secretForm(of["password"], "PASSWORD"), append(known, "username", "password")
	case "api_key":
		r.useAPIKey(s, l, of)
		known = append(known, "name", "api_key", "location")
	case "oauth2_client_credentials":
		r.useClientCredentials(s, l, of)
		known = append(known, "access_token_url", "client_id", "client_secret", "access_token_request_data", "access_token", "default_token_expiration", "session")
	default:
		s.addGap(atRequest, "auth", "%s: set a connection that the API accepts", kindOf(auth))
		l.bearer = "TOKEN"
		return l
	}
	r.noteUnknown(s, atRequest, of, known...)
	return l
}

// secretForm returns the placeholder for a secret. One that is written in the configuration is never repeated.
func secretForm(of any, usual string) string {
	if of == "" { // such as the password beside a key
		return ""
	}
	if reference, is := of.(*pyliteral.NameExpr); is {
		return strings.ToUpper(scaffold.NameOf(keyOfReference(reference), usual))
	}
	return usual
}

func (r *restAPI) useAPIKey(s *step, l *login, of component) {
	name := of.text("name")
	if of["name"] == nil {
		name = "Authorization"
	}
	form := secretForm(of["api_key"], "API_KEY")
	switch location := of.text("location"); {
	case name == "":
		s.addGap(atRequest, "auth", "api_key with a name that is no constant text")
	case location == "" || location == "header":
		l.addHeader(name, form)
	case location == "query" || location == "param":
		l.addQuery(name, form)
	case location == "cookie":
		l.addHeader("Cookie", name+"="+form)
	default:
		s.addGap(atRequest, "auth", "api_key in the %s", location)
	}
}

func (r *restAPI) useClientCredentials(s *step, l *login, of component) {
	l.oauth = map[string]any{"client_id": secretForm(of["client_id"], "CLIENT_ID"), "client_secret": secretForm(of["client_secret"], "CLIENT_SECRET")}
	if address := of.text("access_token_url"); address != "" {
		l.oauth["token_url"] = address
	} else {
		l.oauth["token_url"] = "https://" + secretForm(of["access_token_url"], "TOKEN_URL")
	}
	data := of.childAt("access_token_request_data")
	if scope := data.text("scope"); scope != "" {
		var scopes []any
		for _, one := range strings.Fields(scope) {
			scopes = append(scopes, one)
		}
		l.oauth["scopes"] = scopes
	}
	if audience := data.text("audience"); audience != "" {
		l.oauth["audience"] = audience
	}
	for key, value := range data {
		if key == "grant_type" && value == "client_credentials" || (key == "scope" || key == "audience") && data.text(key) != "" {
			continue
		}
		s.addGap(atRequest, "auth", "access_token_request_data: %s", fmt.Sprint(key))
	}
	for _, key := range []string{"access_token", "session"} {
		if of[key] != nil {
			s.addGap(atRequest, "auth", "%s", key)
		}
	}
}
