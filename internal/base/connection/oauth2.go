package connection

import (
	"net/url"
	"slices"
	"strings"
)

// OAuth2 is a client whose tokens the worker fetches (RFC 6749).
type OAuth2 struct {
	// Grant is one of Grants.
	Grant    string
	TokenURL *url.URL
	ID       string
	Secret   string // "" for a client without one, which has a login
	Scopes   []string
	Audience string   // "" for none
	Host     *url.URL // nil for that of the connection
	// RefreshToken is the first refresh token; "" for none.
	RefreshToken string
	// AuthorizeURL is where people log in, and DeviceURL issues device codes; nil if the client has none.
	AuthorizeURL, DeviceURL *url.URL
}

// OAuth 2.0 grants.
const (
	GrantClient  = "client_credentials" // RFC 6749, section 4.4
	GrantRefresh = "refresh_token"      // section 6
	GrantCode    = "authorization_code" // section 4.1, for people: starter auth login
)

// Grants are the accepted values of oauth2.grant.
var Grants = []string{GrantClient, GrantRefresh, GrantCode}

// HasLogin reports whether the client has a login, whose tokens all workers share.
func (c *OAuth2) HasLogin() bool { return c.Grant != GrantClient }

// readOAuth2 reads the client; nil if there is none.
func (s section) readOAuth2() *OAuth2 {
	client := s.subsection("oauth2", "grant", "token_url", "client_id", "client_secret", "scopes", "audience", "host", "refresh_token", "authorize_url", "device_url")
	if client == nil {
		return nil
	}
	of := &OAuth2{
		Grant: client.grantType(), ID: client.requiredText("client_id"), Audience: client.optionalText("audience"),
		TokenURL: client.requiredAddress("token_url", "https://login.example.com/token"),
		Host:     client.optionalHost("host"), Scopes: client.readTexts("scopes"),
	}
	if of.HasLogin() {
		of.Secret = client.readSecret("client_secret")
		client.refuseBeside(of.Grant, "audience")
	} else {
		of.Secret = client.requiredSecret("client_secret")
	}
	if of.Grant == GrantRefresh {
		of.RefreshToken = client.requiredSecret("refresh_token")
	} else {
		client.refuseBeside(of.Grant, "refresh_token")
	}
	if of.Grant == GrantCode {
		client.endpointsOfPeople(of)
	} else {
		client.refuseBeside(of.Grant, "authorize_url", "device_url")
	}
	return of
}

// endpointsOfPeople reads the URLs at which people log in.
func (s section) endpointsOfPeople(of *OAuth2) {
	if s.hasKey("authorize_url") || !s.hasKey("device_url") {
		of.AuthorizeURL = s.requiredAddress("authorize_url", "https://login.example.com/authorize")
	}
	if s.hasKey("device_url") {
		of.DeviceURL = s.requiredAddress("device_url", "https://login.example.com/device")
	}
}

// grantType returns the grant of the client, by default client_credentials.
func (s section) grantType() string {
	if !s.hasKey("grant") {
		return GrantClient
	}
	grant := s.optionalText("grant")
	if !slices.Contains(Grants, grant) {
		s.d.recordProblem(s.pathOf("grant"), "must have one of %s as oauth2.grant", strings.Join(Grants, ", "))
	}
	return grant
}

// refuseBeside reports keys that a grant does not use.
func (s section) refuseBeside(grant string, keys ...string) {
	for _, key := range keys {
		if s.hasKey(key) {
			s.d.recordProblem(s.pathOf(key), "has %s, which the grant %s does not use", s.keyName(key), grant)
		}
	}
}
