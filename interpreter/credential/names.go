// Package credential recognizes secrets by their form and by the names of what contains them. New playbooks,
// recordings, masks and the checks of playbooks all use this one list.
package credential

import (
	"regexp"
	"slices"
	"strings"
)

// certain matches names that only secrets have.
var certain = regexp.MustCompile(`(?i)(^|[_.-])(` + password + `|otp|` +
	`(access|auth|api|bearer|id|private|refresh|csrf|xsrf|x_?auth|x_?api|x_?access)?[_-]?token|x?api[_-]?key|app[_-]?key|access[_-]?key|signature|sig|sid|session([_-]?id)?|` +
	`auth|(proxy[_-]?)?authorization|cookies?|credentials?|private[_-]?key|secret[_-]?key|(auth|authorization|verification)[_-]code)$`)

// password matches those of them whose values may have any form.
const password = `passwords?|passwd|pwd|passphrase|(client|api|app)?[_-]?secret`

var passwordName = regexp.MustCompile(`(?i)(^|[_.-])(` + password + `|(x?api|secret|private|access)[_-]?key|[a-z_-]*token)$`)

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// toSnake converts a name to the form a_b.
func toSnake(name string) string { return camel.ReplaceAllString(name, "${1}_$2") }

// NamesSecret reports whether only a secret can have the name: api_key and accessToken, but neither
// country_code nor author, which MayName accepts.
func NamesSecret(name string) bool { return certain.MatchString(toSnake(name)) }

// parts are common parts of the names of what may contain a secret.
var parts = []string{"pass", "pwd", "secret", "token", "key", "sig", "auth", "cred", "session", "code"}

// pageParts are parts of the names of tokens that identify a page.
var pageParts = []string{"page", "next", "cursor", "continu", "sync"}

func hasPart(name string, parts []string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// HasPart reports whether a name has a part that is common in names of secrets, such as token
// or key.
func HasPart(name string) bool { return hasPart(name, parts) }

// MayName reports whether a parameter has a name like that of a secret.
func MayName(name string) bool { return HasPart(name) && !NamesPage(name) }

// NamesPage reports whether a parameter has a name like one that leads to another page.
func NamesPage(name string) bool { return hasPart(name, pageParts) }

// mentioned matches names whose values are not shown, whatever else is in them.
var mentioned = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|authorization|cookie|api[_-]?key|private[_-]?key|access[_-]?key`)

// MentionsSecret reports whether a name mentions a secret, so that its value is not shown to people who look at a
// run.
func MentionsSecret(name string) bool {
	return mentioned.MatchString(name) || NamesSecret(name) && !NamesPage(name)
}

// opaque matches texts that look like keys and tokens: no words, times or sentences.
var opaque = regexp.MustCompile(`^[A-Za-z0-9_.~+/=-]{20,}$`)

// IsMember reports whether a member of a response is a secret, by its name and value. Many members have names like
// secrets but are not, such as an issue's key and an error's code. WithoutInside finds tokens by their form, and
// secrets in URLs.
func IsMember(name, value string) bool {
	switch {
	case value == "" || NamesPage(name):
		return false
	case isAddress(value):
		return passwordName.MatchString(toSnake(name))
	case NamesSecret(name):
		return true
	}
	return MayName(name) && opaque.MatchString(value) && strings.ContainsAny(value, digits)
}

// IsWritten reports whether a literal text in a file is a secret, by its name or by its form.
func IsWritten(name, text string) bool {
	if NamesSecret(name) && !NamesPage(name) && (LooksSecret(text) || passwordName.MatchString(toSnake(name))) {
		return true
	}
	return IsToken(text) || isAddress(text) && FirstPathSecret(text) != ""
}
