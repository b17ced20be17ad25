package secrets

import (
	"regexp"
	"strings"
)

// token finds what can only be a token: by the beginnings that providers give theirs, and JSON Web Tokens.
var token = regexp.MustCompile(`^(sk_|pk_|rk_|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|shpat_|shpss_|pat-|secret_|ntn_|key-|AKIA|SG\.|EAA|ya29\.|AIza|whsec_|eyJ[A-Za-z0-9_-]{10,}\.)`)

// IsToken reports whether a text can only be a token, by the way in which it begins.
func IsToken(text string) bool { return token.MatchString(text) }

// credential are names that nothing but a secret has.
var credential = regexp.MustCompile(`(?i)(^|[_.-])(passwords?|passwd|pwd|otp|secret|(access|auth|api|id|refresh|csrf|xsrf)?[_-]?token|api[_-]?key|app[_-]?key|access[_-]?key|signature|sig|sid|session([_-]?id)?|auth|authorization|credentials?|private[_-]?key|(auth|authorization|verification)[_-]code)$`)

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// NamesCredential reports whether nothing but a secret has a name: api_key and accessToken, but neither
// country_code nor author, which NamesSecret counts as one.
func NamesCredential(name string) bool {
	return credential.MatchString(camel.ReplaceAllString(name, "${1}_$2"))
}

// NamesPage reports whether a name is that of what leads to another page.
func NamesPage(name string) bool { return !NamesSecret("token_" + name) }

// opaque is what keys and tokens look like: no words, no times, no sentences.
var opaque = regexp.MustCompile(`^[A-Za-z0-9_.~+/=-]{20,}$`)

// IsMember reports whether a member of an answer is a secret, by its name and its value. An answer has much that
// is named like a secret and is none, such as the key of an issue and the code of an error. Inside finds tokens by what
// they look like.
func IsMember(name, value string) bool {
	switch {
	case value == "" || NamesPage(name):
		return false
	case NamesCredential(name):
		return true
	}
	return NamesSecret(name) && opaque.MatchString(value) && strings.ContainsAny(value, "0123456789")
}

// What is secret within a text: in addresses, in JSON within JSON, in queries of GraphQL, in commands.
var (
	// tokenInside finds tokens by the beginnings that providers give theirs.
	tokenInside = regexp.MustCompile(`\b(?:(?:sk|rk|pk)_(?:live|test)_|sk-|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|shpat_|shpss_|secret_|ntn_|AKIA|ASIA|SG\.|EAA|ya29\.|AIza|whsec_|npm_|hf_|lin_api_)[A-Za-z0-9_.-]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*`)
	// assigned finds names with values: name=value, "name": "value", name%3Dvalue.
	assigned = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})?([A-Za-z0-9_.-]+)(?:\\*["'])?\s*(?:=|:|%3[Dd]|%3[Aa])\s*(?:\\*["'])?([^\s"'\\&<>,;{}()%?#=]+)`)
	// element finds elements of XML.
	element = regexp.MustCompile(`<([A-Za-z0-9_.:-]+)[^<>]*>([^<>]+)<`)
	// scheme finds what follows Bearer and Basic.
	scheme = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`)
	// graphType is a type of GraphQL, as in $token: String!.
	graphType = regexp.MustCompile(`^\[*[A-Z][A-Za-z]*[!\]]*$`)
)

// HasInside reports whether a text contains a secret beside other things.
func HasInside(text string) bool { return WithoutInside(text) != text }

// WithoutInside is a text whose secrets are stars.
func WithoutInside(text string) string {
	return replaceInside(text, func(string) string { return Stars })
}

// Inside are the secrets within a text.
func Inside(text string) (found []string) {
	replaceInside(text, func(secret string) string {
		found = append(found, secret)
		return Stars
	})
	return found
}

// replaceInside replaces the secrets within a text.
func replaceInside(text string, replace func(secret string) string) string {
	text = tokenInside.ReplaceAllStringFunc(text, func(found string) string {
		if strings.ContainsAny(found, "0123456789") {
			return replace(found)
		}
		return found
	})
	for _, pattern := range []*regexp.Regexp{scheme, assigned} {
		var out strings.Builder
		end := 0
		for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
			from, to := at[len(at)-2], at[len(at)-1]
			value := text[from:to]
			if !LooksSecret(value) || value == Stars || pattern == assigned && !isAssignedSecret(text[at[2]:at[3]], value) {
				continue
			}
			out.WriteString(text[end:from] + replace(value))
			end = to
		}
		text = out.String() + text[end:]
	}
	return text
}

// isAssignedSecret reports whether a name has a secret as its value, and no variable or type of GraphQL.
func isAssignedSecret(name, value string) bool {
	isVariable := strings.HasPrefix(value, "$") || graphType.MatchString(value)
	return !isVariable && !NamesPage(name) && NamesCredential(name)
}

// GivesSecret reports whether a body of text gives something the name of a secret, however short it is.
func GivesSecret(text string) bool {
	for _, pattern := range []*regexp.Regexp{assigned, element} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			if name := match[1][strings.LastIndexByte(match[1], ':')+1:]; NamesCredential(name) && !strings.HasPrefix(match[2], "$") {
				return true
			}
		}
	}
	return false
}
