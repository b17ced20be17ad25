package ui

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"

	"reprise/internal/program/localserver"
)

// temporalPath is the path of Temporal's own UI.
const temporalPath = localserver.UIPath + "/"

// mostToTemporal bounds the size of a request to Temporal's own UI, in bytes: the page forwards it, and the server
// accepts 4 MiB.
const mostToTemporal = 8 << 20

// AtSocket returns a proxy to a Temporal UI that listens on a Unix socket.
func AtSocket(socket string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
			for _, ours := range []string{"Cookie", "Authorization"} {
				r.Out.Header.Del(ours)
			}
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
			DisableCompression: true,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "The Temporal server does not respond. It may have stopped.", http.StatusBadGateway)
		},
	}
}

// temporalUI shows Temporal's own UI. It can do whatever the server can, so it is for the person who started the
// pages, and neither for operators, who have the buttons of the pages, nor for those who may only look.
func (s *Server) temporalUI(w http.ResponseWriter, r *http.Request, v *visit) error {
	if !v.person.Owner {
		return &pageError{http.StatusForbidden, "Temporal’s own UI can do more than the buttons here. It is for the person who has started this page."}
	}
	for _, ours := range []string{"Content-Security-Policy", "X-Frame-Options", "Cache-Control", "Referrer-Policy"} {
		w.Header().Del(ours) // it has its own
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostToTemporal)
	s.Temporal.ServeHTTP(w, r)
	return nil
}

// checkOrigin refuses requests from pages of other sites, except for following a link.
func checkOrigin(_ http.ResponseWriter, r *http.Request, _ *visit) error {
	foreign := http.NewCrossOriginProtection().Check(r) != nil
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		foreign = foreign || r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	if foreign {
		return &pageError{http.StatusForbidden, "Pages of other sites may not use this server."}
	}
	return nil
}

// isTemporal reports whether a request is for Temporal's own UI. Its paths are not cleaned, because names of runs in
// them may contain slashes and dots.
func (s *Server) isTemporal(r *http.Request) bool {
	return s.Temporal != nil && strings.HasPrefix(r.URL.Path, temporalPath)
}
