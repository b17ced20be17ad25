package credential

import (
	"slices"
	"strings"
)

// credentialHeaders carry credentials, or prove that the client has them.
var credentialHeaders = []string{
	"authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie", "set-cookie", "set-cookie2",
}

// credentialEndings are endings of the names of headers in which servers return credentials, such as x-auth-token.
// Headers that count tokens of a limit have other endings.
var credentialEndings = []string{"-token", "-secret", "-password", "-apikey", "-api-key", "-cookie", "-session", "-session-id"}

// HeaderMayHoldSecret reports whether a header may contain credentials. A challenge, such as www-authenticate, names the
// required ones and contains none.
func HeaderMayHoldSecret(header string) bool {
	name := strings.ToLower(header)
	return slices.Contains(credentialHeaders, name) ||
		slices.ContainsFunc(credentialEndings, func(ending string) bool { return strings.HasSuffix("-"+name, ending) })
}
