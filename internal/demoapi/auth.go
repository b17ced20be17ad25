package demoapi

import "net/http"

func (s *Server) addAuth() {
	s.handle("/auth/bearer", s.bearer)
	s.handle("/auth/basic", s.basic)
}

// bearer expects the token of the query parameter "token" in the Authorization
// header (RFC 6750, section 2.1).
func (s *Server) bearer(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if token == "" || r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", `Bearer realm="demo"`)
		respondError(w, http.StatusUnauthorized, "bearer token is missing or wrong")
		return
	}
	respond(w, http.StatusOK, object{"authenticated": true})
}

// basic expects the user and password of the query (RFC 7617).
func (s *Server) basic(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	user, password, ok := r.BasicAuth()
	if !ok || user != query.Get("user") || password != query.Get("password") {
		w.Header().Set("WWW-Authenticate", `Basic realm="demo"`)
		respondError(w, http.StatusUnauthorized, "user or password is missing or wrong")
		return
	}
	respond(w, http.StatusOK, object{"authenticated": true, "user": user})
}
