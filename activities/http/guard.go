package http

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"reprise/internal/base/egress"
)

// guardedTransport makes requests to the addresses that the operator's rules allow. Connections that are kept alive belong to one
// of these, so an attempt never uses one that was made under the grants of another connection of the operator.
type guardedTransport struct {
	*http.Transport

	rules *egress.Policy
	named egress.HostMatcher
}

// newGuardedTransport returns a transport that obeys the rules. named reports which hosts the operator's connection
// names. config has the connection's certificates; nil uses the usual ones.
func newGuardedTransport(rules *egress.Policy, named egress.HostMatcher, config *tls.Config) *guardedTransport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	direct := rules.Dial(dialer, named)
	transport := newTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
		if proxyOf(ctx) != nil { // the operator has chosen it, and RoundTrip has checked what it is asked for
			return dialer.DialContext(ctx, network, address)
		}
		return direct(ctx, network, address)
	})
	transport.Proxy = func(request *http.Request) (*url.URL, error) { return proxyOf(request.Context()), nil }
	if config != nil {
		transport.TLSClientConfig = config.Clone()
	}
	return &guardedTransport{Transport: transport, rules: rules, named: named}
}

// proxyKey is the key of the proxy of a request.
type proxyKey struct{}

// proxyOf returns the proxy of a request, nil for none.
func proxyOf(ctx context.Context) *url.URL {
	proxy, _ := ctx.Value(proxyKey{}).(*url.URL)
	return proxy
}

// RoundTrip sends a request. What a proxy is asked for is checked by name, since the proxy resolves it.
func (g *guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		if err := g.rules.CheckProxied(hostPortOf(request.URL), g.named); err != nil {
			return nil, err
		}
	}
	return g.Transport.RoundTrip(request.WithContext(context.WithValue(request.Context(), proxyKey{}, proxy)))
}

// hostPortOf returns the host of a URL with the port that requests to it go to.
func hostPortOf(u *url.URL) string {
	port := u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
