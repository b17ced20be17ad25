package demoapi

import "net/http"

// addControl registers the routes that are about the server itself. They are
// not logged.
func (s *Server) addControl() {
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, object{"routes": s.routes})
	})
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, object{"status": "ok"})
	})
	s.mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		s.Reset(r.URL.Query().Get("scenario"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		found := s.log.list(query.Get("scenario"), query.Get("path"))
		respond(w, http.StatusOK, object{"requests": found, "total": len(found)})
	})
	s.mux.HandleFunc("DELETE /requests", func(w http.ResponseWriter, r *http.Request) {
		s.log.clear(r.URL.Query().Get("scenario"))
		w.WriteHeader(http.StatusNoContent)
	})
}
