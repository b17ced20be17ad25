package request

import (
	"fmt"
	"net/url"
	"strings"
)

// ParseURL parses a URL or a reference (RFC 3986), ignoring surrounding space. Characters that are invalid in a
// path, such as spaces, are escaped, and existing escapes are kept: net/url would escape the whole path again and
// turn %2F into a slash.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.RawPath == "" || u.EscapedPath() == u.RawPath {
		return u, err
	}
	u.RawPath = escapedPath(u.RawPath)
	return u, nil
}

// escapedPath escapes the bytes that a path must not contain; existing escapes are kept.
func escapedPath(path string) string {
	var escaped strings.Builder
	for i := range len(path) {
		if c := path[i]; isUnreserved(c) || strings.IndexByte("/%!$&'()*+,;=:@[]", c) >= 0 {
			escaped.WriteByte(c)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	return escaped.String()
}
