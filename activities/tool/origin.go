package tool

import (
	"net/url"
	"strings"
)

// Origin is a URL's scheme and host, for messages.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// SameHost reports whether b may see what is meant for a: the same host and
// port, never in clear text if a was not; http may become https.
func SameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	if a.Scheme == "http" && b.Scheme == "https" && a.Port() == "" && b.Port() == "" {
		return true
	}
	return a.Scheme == b.Scheme && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
