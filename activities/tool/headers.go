package tool

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"reprise/interpreter/credential"
)

// Bounds of the headers that are kept.
const (
	// maxHeaders bounds the headers of a response that are kept: they are in the history of
	// each call. Names count as bytes as well as values.
	maxHeaders = 100
	// maxHeader bounds the name and the value of a header, each in bytes; what is longer is
	// cut.
	maxHeader = 8 << 10
	// maxHeaderBytes bounds the kept headers of a response, in bytes; later ones are dropped.
	// Without it, large headers fill histories.
	maxHeaderBytes = 32 << 10
)

// ErrorHeaders returns the headers of an error for the history, with secrets masked; nil if
// there are none.
func ErrorHeaders(headers map[string]string, secrets *Secrets) map[string]string {
	return boundedHeaders(headers, func(name string) bool { return !credential.HeaderMayHoldSecret(name) }, secrets.MaskText)
}

// AnswerHeaders returns the headers of an answer that succeeded.
func AnswerHeaders(headers map[string]string) map[string]string {
	return boundedHeaders(headers, func(string) bool { return true }, func(text string) string { return text })
}

// boundedHeaders returns the wanted headers that are within the bounds. show masks names and
// values.
func boundedHeaders(headers map[string]string, wanted func(name string) bool, show func(string) string) map[string]string {
	var bounded map[string]string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !wanted(name) {
			continue
		}
		shown, value := CutText(show(name), maxHeader), CutText(show(headers[name]), maxHeader)
		if size+len(shown)+len(value) > maxHeaderBytes {
			continue // a shorter one may still fit
		}
		if bounded == nil {
			bounded = map[string]string{}
		}
		bounded[shown] = value
		size += len(shown) + len(value)
		if len(bounded) == maxHeaders {
			break
		}
	}
	return bounded
}

// Origin returns a URL's scheme and host, for messages.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// SameHost reports whether credentials for a may be sent to b: the host and port are the same,
// and https does not become http. http may become https.
func SameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	if a.Scheme == "http" && b.Scheme == "https" && a.Port() == "" && b.Port() == "" {
		return true
	}
	return a.Scheme == b.Scheme && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
