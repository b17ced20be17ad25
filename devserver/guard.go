package main

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"go.temporal.io/server/common/authorization"
)

// keyVariable names the environment variable with the key that clients have to
// send. It is no flag, because everybody on the machine sees those.
const keyVariable = "DEVSERVER_API_KEY"

// bearer returns the authorization header of those who know the key.
func bearer(key string) string { return "Bearer " + key }

// keyed gives all rights to requests with the key and none to others.
type keyed struct{ key string }

// GetClaims reads the authorization header of one request.
func (k keyed) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	if subtle.ConstantTimeCompare([]byte(info.AuthToken), []byte(bearer(k.key))) != 1 {
		return nil, nil // no claims: only health checks are answered
	}
	return &authorization.Claims{Subject: "local", System: authorization.RoleAdmin}, nil
}

// guard keeps web pages of other sites from a server on this machine, which a
// browser reaches as well as its user does. It refuses hosts that are not the
// server's own, so that a name which leads here makes no page one of ours (DNS
// rebinding), and whatever a page of another origin asks for, except to be led
// here by a link.
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

// fromElsewhere reports whether a page of another origin asks, other than by a
// link that the user follows. Reading needs more than what is checked for
// writes: a request alone may cost something, and be told by its duration.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

// ownHost reports whether a Host header names a server that listens on ip:
// this address, or for one on loopback any name of that. A server on all
// addresses is known by any of them. Names other than localhost are nobody's,
// since who owns a name decides where it leads.
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
