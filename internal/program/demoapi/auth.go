package demoapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// The OAuth 2.0 client that the demo API knows.
const (
	DemoClient = "demo"
	DemoSecret = "demo-secret"
)

// checkBearer expects the token of the query parameter "token" in the Authorization
// header (RFC 6750, section 2.1).
func (s *Server) checkBearer(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if token == "" || r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", `Bearer realm="demo"`)
		respondError(w, http.StatusUnauthorized, "bearer token is missing or wrong")
		return
	}
	respondJSON(w, http.StatusOK, object{"authenticated": true})
}

// checkBasic expects the user and password of the query (RFC 7617).
func (s *Server) checkBasic(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	user, password, ok := r.BasicAuth()
	if !ok || user != query.Get("user") || password != query.Get("password") {
		w.Header().Set("WWW-Authenticate", `Basic realm="demo"`)
		respondError(w, http.StatusUnauthorized, "user or password is missing or wrong")
		return
	}
	respondJSON(w, http.StatusOK, object{"authenticated": true, "user": user})
}

// tokenUses are the access tokens that are good, with how many requests they are
// good for; negative is any number.
type tokenUses struct {
	mu    sync.Mutex
	count int
	left  map[string]int
}

// maxIssued bounds how many tokens are kept; then all are forgotten at once. Without it, a
// server that runs for months collects them.
const maxIssued = 1000

// addToken issues a token that can be used a number of times.
func (i *tokenUses) addToken(uses int) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left == nil || len(i.left) >= maxIssued {
		i.left = map[string]int{}
	}
	i.count++
	token := fmt.Sprintf("demo-token-%d", i.count)
	i.left[token] = uses
	return token
}

// useToken takes one use of a token and reports whether it was good.
func (i *tokenUses) useToken(token string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	left, known := i.left[token]
	if !known || left == 0 {
		return false
	}
	i.left[token] = left - 1
	return true
}

// issueToken is the token endpoint for the client credentials grant (RFC 6749,
// section 4.4). Its tokens are good for an hour, or for the number of requests
// that the query parameter "uses" says.
func (s *Server) issueToken(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	uses := p.intValue("uses", -1, 1, 1_000_000)
	if p.rejectBad(w) {
		return
	}
	id, secret, basic := r.BasicAuth()
	switch {
	case r.Method != http.MethodPost || r.PostFormValue("grant_type") != "client_credentials":
		respondJSON(w, http.StatusBadRequest, object{"error": "unsupported_grant_type"})
		return
	case !basic:
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != DemoClient || secret != DemoSecret {
		respondJSON(w, http.StatusUnauthorized, object{"error": "invalid_client"})
		return
	}
	respondJSON(w, http.StatusOK, object{"access_token": s.issued.addToken(uses), "token_type": "Bearer", "expires_in": 3600})
}

// checkOAuth2 expects a token of the token endpoint that is still good.
func (s *Server) checkOAuth2(w http.ResponseWriter, r *http.Request) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || !s.issued.useToken(token) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="demo", error="invalid_token"`)
		respondError(w, http.StatusUnauthorized, "the access token is missing, unknown or expired")
		return
	}
	respondJSON(w, http.StatusOK, object{"authenticated": true})
}
