package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
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

// headerLimit bounds how long a client may take to send the headers of a request.
const headerLimit = 10 * time.Second

// newUI returns the web UI as its own program assembles it, without logs, logins and cross-origin checks; guard does
// those checks.
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
	if assets, err = below(opts.uiPath, assets); err != nil {
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
	if opts.uiPlace() == uiAtSocket {
		return http.StripPrefix(opts.uiPath, withKey(e, opts.key)), nil
	}
	return guard(e, opts.uiIP), nil
}

// withKey adds the key, if there is one, to the Authorization header of all requests.
func withKey(next http.Handler, key string) http.Handler {
	if key == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", bearer(key))
		next.ServeHTTP(w, r)
	})
}

// below rewrites the web UI's first page so that it requests everything under a path prefix. The path is in an inline
// script, which the page's content security policy allows by its digest, so the digest changes too.
func below(path string, assets fs.FS) (fs.FS, error) {
	if path == "" {
		return assets, nil
	}
	text, err := fs.ReadFile(assets, indexFile)
	if err != nil {
		return nil, err
	}
	index := strings.NewReplacer(`base: ""`, `base: "`+path+`"`, `"/_app/`, `"`+path+`/_app/`).Replace(string(text))
	script := inlineScript.FindStringSubmatch(index)
	if script == nil || !digest.MatchString(index) {
		return nil, errors.New("its page has no script with a digest")
	}
	sum := sha256.Sum256([]byte(script[1]))
	index = digest.ReplaceAllString(index, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	return rebased{FS: assets, index: []byte(index)}, nil
}

const indexFile = "index.html"

var (
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	digest       = regexp.MustCompile(`'sha256-[A-Za-z0-9+/=]+'`)
)

// rebased is the web UI's file system with another first page.
type rebased struct {
	fs.FS

	index []byte
}

// ReadFile returns the replaced first page, or another file of the file system.
func (r rebased) ReadFile(name string) ([]byte, error) {
	if name == indexFile {
		return r.index, nil
	}
	return fs.ReadFile(r.FS, name)
}

// newHTTPAPI returns a proxy to the server's HTTP API. The API does not check the origin of requests, so it accepts
// only a Host header that is known to this process alone, and the proxy is guarded.
func newHTTPAPI(opts options, chosen ports) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", address(reachableIP(opts.ip), chosen.httpInternal)
		r.Out.Host = chosen.httpHost
	}}
	return guard(proxy, opts.ip)
}

// serveHTTP serves HTTP in the background until the returned server is closed.
func serveHTTP(ctx context.Context, network, at string, handler http.Handler) (*http.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, at)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", at, err)
	}
	serving := &http.Server{Handler: handler, ReadHeaderTimeout: headerLimit}
	go func() { _ = serving.Serve(listener) }()
	return serving, nil
}
