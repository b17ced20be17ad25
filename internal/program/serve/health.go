package serve

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	// healthPatience is how long the Temporal server may take to say that it is there.
	healthPatience = 3 * time.Second
	// healthKept is for how long its answer is good, so that frequent requests do not
	// keep it busy.
	healthKept = time.Second
)

// health is what the Temporal server said last.
type health struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

// check checks the Temporal server, unless it was checked a moment ago.
func (h *health) check(ctx context.Context, c client.Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) < healthKept {
		return h.err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthPatience)
	defer cancel()
	_, h.err = c.CheckHealth(limited, &client.CheckHealthRequest{})
	h.asked = time.Now()
	return h.err
}

func (s *Server) getHealth(_ http.ResponseWriter, r *http.Request) (answer, error) {
	if err := s.health.check(r.Context(), s.Client); err != nil {
		s.Logger.Warn("the Temporal server does not answer", "error", err)
		return answer{}, problem(http.StatusServiceUnavailable, "unavailable", "the Temporal server does not answer").with("Retry-After", "5")
	}
	return answer{status: http.StatusOK, body: map[string]string{"status": "ok"}}, nil
}

// document describes the routes and their answers: OpenAPI 3.1.
//
//go:embed openapi.json
var document []byte

func (s *Server) getOpenAPI(http.ResponseWriter, *http.Request) (answer, error) {
	return answer{status: http.StatusOK, body: json.RawMessage(document)}, nil
}
