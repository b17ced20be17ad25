package serve

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

func (s *Server) getHealth(_ http.ResponseWriter, r *http.Request) (answer, error) {
	if err := s.health.Err(r.Context()); err != nil {
		s.Logger.Warn("the Temporal server does not respond", "error", err)
		return answer{}, newProblem(http.StatusServiceUnavailable, "unavailable", "the Temporal server does not respond").withHeader("Retry-After", "5")
	}
	return answer{status: http.StatusOK, body: map[string]string{"status": "ok"}}, nil
}

// document is the OpenAPI 3.1 description of the routes.
//
//go:embed openapi.json
var document []byte

func (s *Server) getOpenAPI(http.ResponseWriter, *http.Request) (answer, error) {
	return answer{status: http.StatusOK, body: json.RawMessage(document)}, nil
}
