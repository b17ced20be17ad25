package demoapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// The OAuth 2.0 client that the demo API accepts.
const (
	DemoClient = "demo"
	DemoSecret = "demo-secret"
)

// checkBearer requires the query parameter "token" as bearer token in the Authorization header (RFC 6750, section
// 2.1).
func (s *Server) checkBearer(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if token == "" || r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", `Bearer realm="demo"`)
		respondError(w, http.StatusUnauthorized, "bearer token is missing or wrong")
		return
	}
	respondJSON(w, http.StatusOK, object{"authenticated": true})
}

// checkBasic requires the user and password from the query (RFC 7617).
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

// tokenUses has the valid access tokens, and how many requests each is valid for; negative is unlimited.
type tokenUses struct {
	mu    sync.Mutex
	count int
	left  map[string]int
}

// maxIssued bounds how many tokens are stored. When it is reached, all are forgotten; otherwise a server that runs
// for months would collect them.
const maxIssued = 1000

// addToken issues a token that is valid for a number of requests.
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

// useToken consumes one use of a token and reports whether it was valid.
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

// issueToken is the token endpoint for the client credentials grant (RFC 6749, section 4.4). Its tokens are valid for
// an hour, or for the number of requests in the query parameter "uses".
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

// checkOAuth2 requires a valid token from the token endpoint.
func (s *Server) checkOAuth2(w http.ResponseWriter, r *http.Request) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || !s.issued.useToken(token) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="demo", error="invalid_token"`)
		respondError(w, http.StatusUnauthorized, "the access token is missing, unknown or expired")
		return
	}
	respondJSON(w, http.StatusOK, object{"authenticated": true})
}
