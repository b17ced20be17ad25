package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// headerLimit bounds how long a client takes to say what it wants.
const headerLimit = 10 * time.Second

// newUI is the web UI of a server, as its own program puts it together but for
// logs, logins and what it has against other sites: that is for guard.
func newUI(opts options, chosen ports) (http.Handler, error) {
	provider, err := uiconfig.NewConfigProviderWithRefresh(&uiconfig.Config{
		Host:                opts.uiIP,
		Port:                chosen.ui,
		TemporalGRPCAddress: address(reachableIP(opts.ip), chosen.frontend),
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true, // the page would ask the vendor's site
		NotifyOnNewVersion:  false,
	})
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure())
	route.SetHealthRoute(e)
	forwarded := headers.WithForwardHeaders([]string{auth.AuthorizationExtrasHeader, "Caller-Type"})
	if err := route.SetAPIRoutes(e, provider, []api.Middleware{forwarded}); err != nil {
		return nil, err
	}
	if err := route.SetUIRoutes(e, "", assets, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return guard(e, opts.uiIP, opts.key), nil
}

// newHTTPAPI leads to the server's HTTP API, which takes requests for a host
// that only this process knows. The API itself asks nobody where they are from.
func newHTTPAPI(opts options, chosen ports) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", address(reachableIP(opts.ip), chosen.httpInternal)
		r.Out.Host = chosen.httpHost
	}}
	return guard(proxy, opts.ip, "")
}

// serveHTTP serves until the server that it returns is closed.
func serveHTTP(ctx context.Context, at string, handler http.Handler) (*http.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", at, err)
	}
	serving := &http.Server{Handler: handler, ReadHeaderTimeout: headerLimit}
	go func() { _ = serving.Serve(listener) }()
	return serving, nil
}
