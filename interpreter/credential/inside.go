package credential

import (
	"net/url"
	"regexp"
	"strings"
)

// Stars replaces secrets that are masked.
const Stars = "***"

// Patterns of secrets within a text: in URLs, in JSON within JSON, in GraphQL queries, in commands.
var (
	// assigned matches names with values: name=value, "name": "value", name%3Dvalue.
	assigned = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})?([A-Za-z0-9_.-]+)(?:\\*["'])?\s*(?:=|:|%3[Dd]|%3[Aa])\s*(?:\\*["'])?([^\s"'\\&<>,;{}()%?#=]+)`)
	// element matches XML elements.
	element = regexp.MustCompile(`<([A-Za-z0-9_.:-]+)[^<>]*>([^<>]+)<`)
	// scheme matches what follows Bearer and Basic.
	scheme = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`)
	// graphType matches a GraphQL type, as in $token: String!.
	graphType = regexp.MustCompile(`^\[*[A-Z][A-Za-z]*[!\]]*$`)
)

// HasInside reports whether a text contains a secret among other things.
func HasInside(text string) bool { return WithoutInside(text) != text }

// WithoutInside returns a text with its secrets masked.
func WithoutInside(text string) string {
	return replaceInside(text, func(string) string { return Stars })
}

// FindSecrets returns the secrets within a text.
func FindSecrets(text string) (found []string) {
	replaceInside(text, func(secret string) string {
		found = append(found, secret)
		return Stars
	})
	return found
}

// replaceInside returns a text with its secrets replaced.
func replaceInside(text string, replace func(secret string) string) string {
	text = address.ReplaceAllStringFunc(text, func(found string) string { return replaceInPath(found, replace) })
	text = tokenInside.ReplaceAllStringFunc(text, func(found string) string {
		if strings.ContainsAny(found, digits) {
			return replace(found)
		}
		return found
	})
	text = replaceValues(text, scheme, func(_, value string) bool { return LooksSecret(value) }, replace)
	return replaceValues(text, assigned, func(name, value string) bool { return LooksSecret(value) && isAssigned(name, value) }, replace)
}

// replaceValues replaces those values within a text that are secret. The last group of pattern matches a value, and
// the first its name.
func replaceValues(text string, pattern *regexp.Regexp, isSecret func(name, value string) bool, replace func(secret string) string) string {
	var out strings.Builder
	end := 0
	for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[len(at)-2], at[len(at)-1]
		if name, value := text[at[2]:at[3]], text[from:to]; value != Stars && isSecret(name, value) {
			out.WriteString(text[end:from] + replace(value))
			end = to
		}
	}
	return out.String() + text[end:]
}

// replaceInPath replaces secrets in the user and the path of a URL. The query and fragment are unchanged.
func replaceInPath(found string, replace func(secret string) string) string {
	path, rest := found, ""
	if at := strings.IndexAny(found, "?#"); at >= 0 {
		path, rest = found[:at], found[at:]
	}
	parsed, err := url.Parse(path)
	if err != nil {
		return found
	}
	if password, has := parsed.User.Password(); has && password != "" && password != Stars {
		_, login, _ := strings.Cut(path, "//")
		login = login[:strings.LastIndexByte(login, '@')]
		user, written, _ := strings.Cut(login, ":")
		path = strings.Replace(path, user+":"+written+"@", user+":"+replace(written)+"@", 1)
	}
	segments := strings.Split(path, "/")
	const before = 3 // https:, nothing, and the host
	for _, secret := range PathSecrets(parsed.Hostname(), parsed.EscapedPath()) {
		for i := before; i < len(segments); i++ {
			if segments[i] == secret {
				segments[i] = replace(secret)
			}
		}
	}
	return strings.Join(segments, "/") + rest
}

// isAssigned reports whether the name makes its value a secret. GraphQL variables and types are not secrets.
func isAssigned(name, value string) bool {
	isVariable := strings.HasPrefix(value, "$") || graphType.MatchString(value)
	return !isVariable && !strings.HasPrefix(value, "//") && !NamesPage(name) && NamesSecret(name)
}

// WithoutGiven masks like WithoutInside, and in addition every value, however short, that is
// assigned to a name such as password. Use it for bodies and files that people see.
func WithoutGiven(text string) string {
	text = WithoutInside(text)
	for _, pattern := range []*regexp.Regexp{assigned, element} {
		text = replaceValues(text, pattern, func(name, value string) bool { return isAssigned(localName(name), value) }, func(string) string { return Stars })
	}
	return text
}

// localName returns the name of an XML element without its namespace.
func localName(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// AssignsSecret reports whether a body of text assigns a value, however short, to a name such as password.
func AssignsSecret(text string) bool {
	for _, pattern := range []*regexp.Regexp{assigned, element} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			if NamesSecret(localName(match[1])) && !strings.HasPrefix(match[2], "$") {
				return true
			}
		}
	}
	return false
}
