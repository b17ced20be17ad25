package main

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"go.temporal.io/server/common/authorization"
)

// keyVariable is the environment variable with the key that clients have to send. It is not a flag, because other
// users of the machine can see flags.
const keyVariable = "DEVSERVER_API_KEY"

// bearer returns the Authorization header for a key.
func bearer(key string) string { return "Bearer " + key }

// keyed grants all rights to requests with the key, and none to others.
type keyed struct{ key string }

// GetClaims returns the claims of a request, by its Authorization header.
func (k keyed) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	if subtle.ConstantTimeCompare([]byte(info.AuthToken), []byte(bearer(k.key))) != 1 {
		return nil, nil // no claims: only health checks are answered
	}
	return &authorization.Claims{Subject: "local", System: authorization.RoleAdmin}, nil
}

// guard protects a server on this machine from web pages of other sites, which the user's browser could let reach it.
// It refuses requests whose Host header is not the server's, against DNS rebinding, and all cross-origin requests
// except navigation by a link.
func guard(next http.Handler, ip string) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownHost(r.Host, ip) {
			refuse(w, fmt.Sprintf("this server is not %q; use its address, or localhost", r.Host))
			return
		}
		if protection.Check(r) != nil || fromElsewhere(r) {
			refuse(w, "pages of other sites may not use this server")
			return
		}
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, why string) {
	http.Error(w, "devserver: "+why, http.StatusForbidden)
}

// fromElsewhere reports whether a page of another origin sent the request, other than by a link that the user
// followed. It applies to reads as well, because a cross-origin read may be expensive, and its duration reveals
// something.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

// ownHost reports whether a Host header names a server that listens on ip: that address, a loopback address, or
// localhost. A server on all addresses accepts every IP address. Other names are refused, since whoever owns a name
// decides which address it resolves to.
func ownHost(header, ip string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = header // no port
	}
	bound, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	asked, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return bound.IsUnspecified() || asked == bound || asked.IsLoopback()
}
