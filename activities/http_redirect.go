package activities

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"reprise/interpreter"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 10

// checkRedirect keeps a request at the host it is for. Where a redirect leads
// elsewhere is for its server to say, so from there on only method and URL are
// sent, even back to where the request began. The standard client leaves out
// Authorization and Cookie alone.
func (out *outgoing) checkRedirect(next *http.Request, via []*http.Request) error {
	if !out.follow {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return redirectErrorf("stopped after 10 redirects from %s", requestLine(out.request))
	}
	if (next.URL.Scheme != "http" && next.URL.Scheme != "https") || next.URL.Host == "" {
		return redirectErrorf("the redirect from %s leads to no web address (%s); only http and https are followed",
			requestLine(out.request), cutText(next.URL.Scheme, maxShownScheme))
	}
	if out.left = out.left || !sameHost(out.request.URL, next.URL); !out.left {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		return redirectErrorf("the redirect sends the body on from %s to %s, where it is not sent; "+
			"if it is meant for that host, name it in url", requestLine(out.request), origin(next.URL))
	}
	next.Header, next.Host = out.plain.Clone(), ""
	return nil
}

// maxShownScheme bounds what a message has of a scheme.
const maxShownScheme = 20

func redirectErrorf(format string, args ...any) error {
	return &Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: "redirects", Message: fmt.Sprintf(format, args...),
	}
}

// sameHost tells whether b may see what is meant for a: the same host and
// port, never in clear text if a was not; http may become https.
func sameHost(a, b *url.URL) bool {
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
