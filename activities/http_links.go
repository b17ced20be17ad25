package activities

import (
	"errors"
	"net/url"
	"strings"
)

// links reads Link headers (RFC 8288, section 3): relation -> absolute URL.
// The first link of a relation wins; what cannot be read is left out, as the
// RFC asks.
func links(values []string, base *url.URL) map[string]string {
	found := map[string]string{}

	for _, value := range values {
		for value != "" {
			var target, parameters string

			target, parameters, value = nextLink(value)
			if target == "" {
				continue
			}

			address, err := base.Parse(target)
			if err != nil {
				continue
			}

			address.User = nil

			for _, relation := range strings.Fields(relationOf(parameters)) {
				relation = strings.ToLower(relation)
				if _, taken := found[relation]; !taken {
					found[relation] = address.String()
				}
			}
		}
	}

	if len(found) == 0 {
		return nil
	}

	return found
}

// nextLink takes one <target>; parameters from a header, up to the comma that
// is neither in the target nor in quotes.
func nextLink(value string) (target, parameters, rest string) {
	open := strings.IndexByte(value, '<')
	if open < 0 {
		return "", "", ""
	}

	end := strings.IndexByte(value[open:], '>')
	if end < 0 {
		return "", "", ""
	}

	target, value = value[open+1:open+end], value[open+end+1:]

	comma := indexUnquoted(value, ',')
	if comma < 0 {
		return target, value, ""
	}

	return target, value[:comma], value[comma+1:]
}

// relationOf is the first rel among parameters such as `; rel="next"; title=x`.
func relationOf(parameters string) string {
	for parameters != "" {
		var one string

		if i := indexUnquoted(parameters, ';'); i < 0 {
			one, parameters = parameters, ""
		} else {
			one, parameters = parameters[:i], parameters[i+1:]
		}

		name, value, _ := strings.Cut(one, "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}

	return ""
}

// indexUnquoted is the place of a byte outside quotes, -1 for none.
func indexUnquoted(s string, wanted byte) int {
	quoted := false

	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == wanted && !quoted:
			return i
		}
	}

	return -1
}

// isURLError tells the wrapper that net/http puts around every error.
func isURLError(err error) bool {
	var wrapper *url.Error

	return errors.As(err, &wrapper)
}
