package connection_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
	"reprise/interpreter/expression"
)

const canary = "canary-5ecret"

// entry is an entry of a file of connections.
func entry(t *testing.T, text string) any {
	t.Helper()
	value, err := expression.Decode([]byte(text))
	require.NoError(t, err)
	return value
}

// TestEveryKindOfAMap has what each kind sends.
func TestEveryKindOfAMap(t *testing.T) {
	t.Parallel()
	for text, sent := range map[string]string{
		`{"bearer": "tok"}`: "Authorization: Bearer tok",
		`{"basic": {"user": "Aladdin", "password": "open sesame"}}`:             "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", // RFC 7617, section 2
		`{"basic": {"user": "sk_live"}}`:                                        "Authorization: Basic c2tfbGl2ZTo=",
		`{"header": "x-key: a: b"}`:                                             "X-Key: a: b",
		`{"headers": {"x-key": "K", "X-Account": "A"}}`:                         "X-Account: A\nX-Key: K",
		`{"query": {"b": "2", "a": "1"}}`:                                       "?a=1\n?b=2",
		`{"bearer": "tok", "headers": {"X-Account": "A"}, "query": {"v": "1"}}`: "Authorization: Bearer tok\nX-Account: A\n?v=1",
	} {
		entryText, err := connection.EntryText(entry(t, text))
		require.NoError(t, err, text)
		c, err := connection.Parse(entryText)
		require.NoError(t, err, text)
		var lines []string
		for _, pair := range c.Headers {
			lines = append(lines, pair.Name+": "+pair.Value)
		}
		for _, pair := range c.Query {
			lines = append(lines, "?"+pair.Name+"="+pair.Value)
		}
		require.Equal(t, sent, strings.Join(lines, "\n"), text)
		require.Nil(t, c.Host)
	}
	c, err := connection.Parse(`{"bearer": "tok", "host": "https://api.test/v1", "cookies": "keep"}`)
	require.NoError(t, err)
	require.Equal(t, "https://api.test/v1", c.Host.String())
	require.True(t, c.StoreCookies)
}

// TestProblemsOfAMap has the place and what to write instead, and nothing of what was written.
func TestProblemsOfAMap(t *testing.T) {
	t.Parallel()
	const client = `"token_url": "https://login.test/token", "client_id": "ana"`
	for text, problem := range map[string]string{
		`["canary-5ecret"]`:                                                                             ": must be text such as bearer:TOKEN or a URL, or a map with one or more of bearer, basic",
		`{"host": "https://api.test"}`:                                                                  ": must be text such as bearer:TOKEN or a URL, or a map with one",
		`{"bearer": "x", "uses": ["http"]}`:                                                             "uses: must have a map as uses",
		`{"bearer": "x", "uses": {"playbook": ["a"]}}`:                                                  "uses playbook: has an unknown key in uses (did you mean playbooks?), expected one of tools, task_queues, playbooks",
		`{"bearer": "x", "uses": {"tool": ["a"]}}`:                                                      "uses tool: has an unknown key in uses (did you mean tools?)",
		`{"bearer": "x", "uses": {"tools": []}}`:                                                        "uses tools: must have one name or more in uses.tools",
		`{"bearer": "x", "uses": {"tools": ["http", "webhook"]}}`:                                       "uses tools: has webhook in uses.tools, which connects by http; name that",
		`{"bearer": "x", "uses": {"tools": [1]}}`:                                                       "uses tools: must have a list of texts as uses.tools",
		`{"bearer": "x", "uses": {"task_queues": ["[a"]}}`:                                              "uses task_queues: must have names of task queues in uses.task_queues",
		`{"uses": {"tools": ["http"]}}`:                                                                 ": must be text such as bearer:TOKEN",
		`{"url": "postgres://h/d", "uses": {"tols": ["http"]}}`:                                         "uses tols: has an unknown key in uses (did you mean tools?)",
		`{"berer": "canary-5ecret"}`:                                                                    "berer: has an unknown key (did you mean bearer?), expected one of bearer, basic",
		`{"canary-5ecret": 1}`:                                                                          "canary-5ecret: has an unknown key, expected one of",
		`{"bearer": 123}`:                                                                               "bearer: must have bearer, as text",
		`{"bearer": "canary-5ecret\n"}`:                                                                 "bearer: has a line break or another control character in bearer",
		`{"basic": "canary-5ecret"}`:                                                                    "basic: must have a map as basic",
		`{"basic": {"password": "x"}}`:                                                                  "basic user: must have basic.user, as text",
		`{"basic": {"user": "x", "pasword": "canary-5ecret"}}`:                                          "basic pasword: has an unknown key in basic (did you mean password?)",
		`{"header": "canary-5ecret"}`:                                                                   `header: must have header as text with name and value, such as "X-Api-Key: VALUE"`,
		`{"headers": {"canary-5ecret x": "a"}}`:                                                         "headers canary-5ecret x: has an invalid header name in headers",
		`{"headers": {"X-Key": ["canary-5ecret"]}}`:                                                     "headers X-Key: must have headers.X-Key, as text",
		`{"headers": {"x-key": "a", "X-KEY": "b"}}`:                                                     ": has two settings that send one header; keep one",
		`{"bearer": "a", "basic": {"user": "b"}}`:                                                       ": has two settings that send the header Authorization; keep one",
		`{"bearer": "a", "oauth2": {` + client + `, "client_secret": "canary-5ecret"}}`:                 ": has two settings that send the header Authorization",
		`{"query": {"api_key": 5}}`:                                                                     "query api_key: must have query.api_key, as text",
		`{"query": {"api_key": "K"}, "host": "https://x/?a=canary-5ecret"}`:                             "host: must have a URL as host, such as https://api.example.com",
		`{"bearer": "K", "cookies": true}`:                                                              "cookies: accepts only cookies as keep",
		`{"tls": {"certificate": "canary-5ecret", "key": "canary-5ecret"}}`:                             "tls: must have a certificate in PEM as tls.certificate",
		`{"tls": {"certificate": "canary-5ecret"}}`:                                                     "tls key: must have tls.key, as text",
		`{"tls": {"ca": "canary-5ecret"}}`:                                                              "tls ca: must have certificates in PEM as tls.ca",
		`{"oauth2": {` + client + `, "client_secret": 12345}}`:                                          "oauth2 client_secret: must have oauth2.client_secret, as text",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "audience": ["canary-5ecret"]}}`: "oauth2 audience: must have text as oauth2.audience",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "scopes": [1]}}`:                 "oauth2 scopes: must have a list of texts as oauth2.scopes",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "host": "https://ana:canary-5ecret@api.test"}}`:       "oauth2 host: must have a URL as oauth2.host, such as",
		`{"oauth2": {"token_url": "ftp://canary-5ecret", "client_id": "ana", "client_secret": "canary-5ecret"}}`:             "oauth2 token_url: must have a URL as oauth2.token_url, such as",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "host": "https://a.test"}, "host": "https://a.test"}`: "host: has both host and oauth2.host; keep one",
		`{"oauth2": {` + client + `, "grant": "canary-5ecret", "client_secret": "canary-5ecret"}}`:                           "oauth2 grant: must have one of client_credentials, refresh_token, authorization_code as oauth2.grant",
		`{"oauth2": {` + client + `, "grant": "refresh_token", "client_secret": "canary-5ecret"}}`:                           "oauth2 refresh_token: must have oauth2.refresh_token, as text",
		`{"oauth2": {` + client + `, "grant": "refresh_token", "refresh_token": "canary-5ecret", "audience": "x"}}`:          "oauth2 audience: has oauth2.audience, which the grant refresh_token does not use",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "refresh_token": "canary-5ecret"}}`:                   "oauth2 refresh_token: has oauth2.refresh_token, which the grant client_credentials does not use",
		`{"oauth2": {` + client + `, "grant": "authorization_code"}}`:                                                        "oauth2 authorize_url: must have a URL as oauth2.authorize_url",
		`{"oauth2": {` + client + `, "grant": "authorization_code", "device_url": "canary-5ecret"}}`:                         "oauth2 device_url: must have a URL as oauth2.device_url",
		`{"oauth2": {` + client + `, "client_secret": "canary-5ecret", "authorize_url": "https://x.test"}}`:                  "oauth2 authorize_url: has oauth2.authorize_url, which the grant client_credentials does not use",
		`"https://api.test/v1?api_key=canary-5ecret"`: ": is a URL with a query string, which is not sent; to send a key in the query of each request, write a map: " +
			"{query: {NAME: KEY}, host: https://HOST}",
	} {
		_, err := connection.EntryText(entry(t, text))
		var found *connection.Problem
		require.ErrorAs(t, err, &found, text)
		require.Contains(t, strings.Join(found.Path, " ")+": "+found.Message, problem, text)
		require.NotContains(t, found.Message, canary, text)
	}
}

// TestProblemsOfASession are those of its requests, templates and the place of its token.
func TestProblemsOfASession(t *testing.T) {
	t.Parallel()
	const login, token, send = `"login": {"url": "https://api.test/login"}`, `"token": "{{ response.token }}"`, `"send": {"header": "X-Session"}`
	for text, problem := range map[string]string{
		`{"session": {` + token + `, ` + send + `}}`:                                                                                                       "session: must have session.login, a map of url, method, headers, body, form",
		`{"session": {` + login + `, ` + send + `}}`:                                                                                                       "session: must have session.token, such as {{ response.token }}",
		`{"session": {` + login + `, ` + token + `}}`:                                                                                                      "session: must have session.send, a map of header, query, cookie, value",
		`{"session": {` + login + `, ` + token + `, ` + send + `, "expire": "1h"}}`:                                                                        "session expire: has an unknown key in session (did you mean expires?)",
		`{"session": {"login": {"url": "/login"}, ` + token + `, ` + send + `}}`:                                                                           "session login url: must have a whole URL as session.login.url, or host beside session",
		`{"session": {"login": {"url": "ftp://canary-5ecret"}, ` + token + `, ` + send + `}}`:                                                              "session login url: must have a URL as session.login.url",
		`{"session": {"login": {"url": "https://ana:canary-5ecret@api.test"}, ` + token + `, ` + send + `}}`:                                               "session login url: must have a URL as session.login.url",
		`{"session": {"login": {"url": "https://api.test", "methud": "GET"}, ` + token + `, ` + send + `}}`:                                                "session login methud: has an unknown key in session.login (did you mean method?)",
		`{"session": {"login": {"url": "https://api.test", "method": "canary 5ecret"}, ` + token + `, ` + send + `}}`:                                      "session login method: must have a method of HTTP as session.login.method",
		`{"session": {"login": {"url": "https://api.test", "body": "x", "form": {"a": "b"}}, ` + token + `, ` + send + `}}`:                                "session login form: has session.login.body and session.login.form; keep one",
		`{"session": {"login": {"url": "https://api.test", "headers": {"a b": "canary-5ecret"}}, ` + token + `, ` + send + `}}`:                            "session login headers a b: has an invalid header name in session.login.headers",
		`{"session": {"login": {"url": "https://api.test", "body": {"p": [{"from": "file"}]}}, ` + token + `, ` + send + `}}`:                              "session login body p path: must have session.login.body.p.path, as text",
		`{"session": {"login": {"url": "https://api.test", "form": {"p": {"from": "vault"}}}, ` + token + `, ` + send + `}}`:                               "session login form p path: must have session.login.form.p.path, as text",
		`{"session": {` + login + `, "token": "canary-5ecret", ` + send + `}}`:                                                                             "session token: must have an expression over response, headers, cookies, status as session.token",
		`{"session": {` + login + `, "token": "{{ respons.canary }}", ` + send + `}}`:                                                                      "session token: has a name in session.token, at character 4, that is not known there; did you mean response?",
		`{"session": {` + login + `, "token": "{{ response. }}", ` + send + `}}`:                                                                           "session token: has an expression in session.token that cannot be read, at character",
		`{"session": {` + login + `, ` + token + `, "send": {"header": "X-A", "cookie": "B"}}}`:                                                            "session send: must have one of header, query and cookie in session.send",
		`{"session": {` + login + `, ` + token + `, "send": {"header": "canary 5ecret"}}}`:                                                                 "session send header: has a name as session.send.header that cannot be sent",
		`{"session": {` + login + `, ` + token + `, "send": {"header": "X-A", "value": "{{ response }}"}}}`:                                                "session send value: has a name in session.send.value, at character 4, that is not known there; the names are token",
		`{"session": {` + login + `, ` + token + `, ` + send + `, "expires": "soon"}}`:                                                                     "session expires: must have a duration as session.expires",
		`{"session": {` + login + `, ` + token + `, ` + send + `, "refused_when": "cookies.a"}}`:                                                           "session refused_when: has a name in session.refused_when, at character 1, that is not known there; the names are response, headers, status",
		`{"session": {` + login + `, ` + token + `, ` + send + `, "logout": {"url": "/x", "body": {"a": ["{{ tokn }}"]}}}}`:                                "session logout body a: has a name in session.logout.body.a, at character 4, that is not known there; did you mean token?",
		`{"session": {` + login + `, ` + token + `, "send": {"header": "authorization"}}, "bearer": "x"}`:                                                  ": has two settings that send the header Authorization; keep one",
		`{"session": {` + login + `, ` + token + `, "send": {"query": "sid"}}, "query": {"sid": "x"}}`:                                                     "query: has query and session.send, which send one parameter; keep one",
		`{"session": {` + login + `, ` + token + `, ` + send + `}, "oauth2": {"token_url": "https://login.test", "client_id": "a", "client_secret": "b"}}`: "session: has oauth2 and session, which both give tokens; keep one",
	} {
		_, err := connection.EntryText(entry(t, text))
		var found *connection.Problem
		require.ErrorAs(t, err, &found, text)
		require.Contains(t, strings.Join(found.Path, " ")+": "+found.Message, problem, text)
		require.NotContains(t, found.Message, "canary", text)
	}
}

// TestSession has the requests of a session at the connection's host.
func TestSession(t *testing.T) {
	t.Parallel()
	const rest = `"token": "{{ response.token }}", "send": {"header": "x-session"}, "expires": "20m", "logout": {"url": "session/{{ token }}", "method": "delete"}`
	c, err := connection.Parse(`{"host": "https://api.test/v1", "session": {"login": {"url": "/login?a=b"}, ` + rest + `}}`)
	require.NoError(t, err)
	require.Equal(t, "https://api.test/v1/login?a=b", c.Session.Login.URL.String())
	require.Equal(t, "/v1/session/{{ token }}", c.Session.Logout.URL.Path)
	require.Equal(t, []string{"POST", "DELETE", "X-Session", "20m0s"}, []string{c.Session.Login.Method, c.Session.Logout.Method, c.Session.Send.Header, c.Session.Lifetime.String()})
	c, err = connection.Parse(`{"session": {"login": {"url": "https://login.test/a", "method": "get"}, ` + rest + `}}`)
	require.NoError(t, err)
	require.Equal(t, "https://login.test", c.Host.String(), "the login's host, where the connection has none")
}

// TestProblemsOfAServiceAccount are those of its key and its claims, and of a life above mostLifetime.
func TestProblemsOfAServiceAccount(t *testing.T) {
	t.Parallel()
	const shared = `"issuer": "a", "secret": "canary-5ecret"`
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	odd, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	require.NoError(t, err)
	for text, problem := range map[string]string{
		`{"jwt": {"secret": "canary-5ecret"}}`:                                                         "jwt issuer: must have jwt.issuer, as text",
		`{"jwt": {"issuer": "a"}}`:                                                                     "jwt: must have one of jwt.private_key and jwt.secret",
		`{"jwt": {` + shared + `, "private_key": "canary-5ecret"}}`:                                    "jwt: must have one of jwt.private_key and jwt.secret",
		`{"jwt": {"issuer": "a", "private_key": "canary-5ecret"}}`:                                     "jwt private_key: must have a private key in PEM, without a password, as jwt.private_key",
		`{"jwt": {"issuer": "a", "private_key": ` + string(odd) + `}}`:                                 "jwt private_key: has a key that no algorithm here signs with",
		`{"jwt": {` + shared + `, "algorithm": "none"}}`:                                               "jwt algorithm: must have one of ES256, ES384, EdDSA, HS256, HS384, HS512, PS256, RS256, RS384, RS512 as jwt.algorithm",
		`{"jwt": {` + shared + `, "algorithm": "RS256"}}`:                                              "jwt algorithm: has an algorithm that is not one of its key",
		`{"jwt": {"issuer": "a", "private_key": {"from": "file", "path": "k"}, "algorithm": "HS256"}}`: "jwt algorithm: has an algorithm that is not one of its key",
		`{"jwt": {` + shared + `, "claims": {"aud": "x"}}}`:                                            "jwt claims aud: has jwt.claims.aud; write jwt.audience",
		`{"jwt": {` + shared + `, "claims": {"jti": "x"}}}`:                                            "jwt claims jti: has jwt.claims.jti, which the worker sets",
		`{"jwt": {` + shared + `, "lifetime": "24h1m"}}`:                                               "jwt lifetime: must have at most 24h0m0s as jwt.lifetime",
		`{"jwt": {` + shared + `, "token_url": "/token"}}`:                                             "jwt token_url: must have a URL as jwt.token_url",
		`{"jwt": {` + shared + `, "audiense": "x"}}`:                                                   "jwt audiense: has an unknown key in jwt (did you mean audience?)",
		`{"jwt": {` + shared + `}, "bearer": "x"}`:                                                     ": has two settings that send the header Authorization; keep one",
	} {
		_, err := connection.EntryText(entry(t, text))
		var found *connection.Problem
		require.ErrorAs(t, err, &found, text)
		require.Contains(t, strings.Join(found.Path, " ")+": "+found.Message, problem, text)
		require.NotContains(t, found.Message, "canary", text)
	}
	_, err = connection.EntryText(entry(t, `{"jwt": {"issuer": "a", "private_key": {"from": "file", "path": "k"}, "algorithm": "ES256"}}`))
	require.NoError(t, err)
}

// TestProblemsOfAWS are those of its keys.
func TestProblemsOfAWS(t *testing.T) {
	t.Parallel()
	for text, problem := range map[string]string{
		`{"aws": {"region": "r", "access_key_id": "canary-5ecret", "secret_access_key": "canary-5ecret"}}`:                                     "aws service: must have aws.service, as text",
		`{"aws": {"service": "s3", "region": "r", "access_key_id": "canary-5ecret"}}`:                                                          "aws secret_access_key: must have aws.secret_access_key, as text",
		`{"aws": {"service": "s3", "region": "r", "session_token": "canary-5ecret"}}`:                                                          "aws access_key_id: must have aws.access_key_id, as text",
		`{"aws": {"service": "s3", "region": "r", "access_key_id": "a", "secret_access_key": "b", "profile": "canary-5ecret"}}`:                "aws profile: has an unknown key in aws, expected one of service, region, access_key_id, secret_access_key, session_token, role_arn, external_id",
		`{"aws": {"service": "s3", "region": "r", "role_arn": "orders"}}`:                                                                      "aws role_arn: must have the ARN of a role as aws.role_arn, such as arn:aws:iam::123456789012:role/orders",
		`{"aws": {"service": "s3", "region": "r", "external_id": "canary-5ecret"}}`:                                                            "aws external_id: has aws.external_id, which is for a role; add role_arn, or remove it",
		`{"aws": {"service": "s3", "region": "r", "access_key_id": "a", "secret_access_key": "b"}, "basic": {"user": "canary-5ecret"}}`:        ": has two settings that send the header Authorization; keep one",
		`{"aws": {"service": "s3", "region": "r", "access_key_id": {"from": "file"}, "secret_access_key": {"from": "env", "name": "SECRET"}}}`: "aws access_key_id path: must have aws.access_key_id.path, as text",
	} {
		_, err := connection.EntryText(entry(t, text))
		var found *connection.Problem
		require.ErrorAs(t, err, &found, text)
		require.Contains(t, strings.Join(found.Path, " ")+": "+found.Message, problem, text)
		require.NotContains(t, found.Message, "canary", text)
	}
}

// TestTexts are those that connections have always been.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"postgres://x?sslmode=disable", "sqlite:rows.db", "bearer:tok?a=b@https://api.test", "a secret of a trigger"} {
		entryText, err := connection.EntryText(text)
		require.NoError(t, err)
		require.Equal(t, text, entryText)
	}
	c, err := connection.Parse("https://ana:pw@api.test/v1")
	require.NoError(t, err)
	require.Equal(t, "https://api.test/v1", c.Host.String())
	require.Equal(t, []connection.NameValue{{Name: "Authorization", Value: "Basic YW5hOnB3"}}, c.Headers)
	require.Equal(t, "Authorization", http.CanonicalHeaderKey(c.Headers[0].Name))
	_, err = connection.Parse("postgres://ana:pw@db.test")
	require.ErrorIs(t, err, connection.ErrNotHTTP)
}
