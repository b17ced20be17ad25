package http

import (
	"fmt"
	"net/http"

	"reprise/activities/tool"
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
		return redirectErrorf("stopped after 10 redirects from %s", requestPath(out.request))
	}
	if (next.URL.Scheme != "http" && next.URL.Scheme != "https") || next.URL.Host == "" {
		return redirectErrorf("the redirect from %s leads to no web address (%s); only http and https are followed",
			requestPath(out.request), tool.CutText(next.URL.Scheme, maxShownScheme))
	}
	if out.left = out.left || !tool.SameHost(out.request.URL, next.URL); !out.left {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		return redirectErrorf("the redirect sends the body on from %s to %s, where it is not sent; "+
			"if it is meant for that host, name it in url", requestPath(out.request), tool.Origin(next.URL))
	}
	next.Header, next.Host = out.plain.Clone(), ""
	return nil
}

// maxShownScheme bounds what a message has of a scheme.
const maxShownScheme = 20

func redirectErrorf(format string, args ...any) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: "redirects", Message: fmt.Sprintf(format, args...),
	}
}
