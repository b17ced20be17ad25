package activities

import (
	"maps"
	"slices"
	"strings"
)

// What an error keeps of the headers of its answer, in bytes where it is not a
// number of headers. Their names count.
const (
	maxErrorHeaders     = 100
	maxErrorHeader      = 8 << 10
	maxErrorHeaderBytes = 32 << 10
)

// keptHeaders are the headers of an error as they go to the history, by their
// names. Secrets are masked. nil where there are none.
func keptHeaders(headers map[string]string, secrets *attemptSecrets) map[string]string {
	var kept map[string]string

	size := 0

	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if carriesCredentials(name) {
			continue
		}

		shown, value := cutText(secrets.Text(name), maxErrorHeader), cutText(secrets.Text(headers[name]), maxErrorHeader)
		if size+len(shown)+len(value) > maxErrorHeaderBytes {
			continue // a shorter one may still fit
		}

		if kept == nil {
			kept = map[string]string{}
		}

		kept[shown] = value
		size += len(shown) + len(value)

		if len(kept) == maxErrorHeaders {
			break
		}
	}

	return kept
}

// credentialHeaders carry credentials, or what proves that one has them.
var credentialHeaders = []string{
	"authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie", "set-cookie", "set-cookie2",
}

// credentialEndings are what names of headers end with that servers use for
// credentials of their own, such as x-auth-token. Counts of tokens, which some
// limits have, end otherwise.
var credentialEndings = []string{"-token", "-secret", "-password", "-apikey", "-api-key", "-cookie", "-session", "-session-id"}

// carriesCredentials reports whether a header, in lower case, may hold
// credentials. A challenge, such as www-authenticate, says which are wanted and
// holds none.
func carriesCredentials(name string) bool {
	return slices.Contains(credentialHeaders, name) ||
		slices.ContainsFunc(credentialEndings, func(ending string) bool { return strings.HasSuffix("-"+name, ending) })
}
