package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	// awayAfter is how long a page may take before the Temporal server is checked, and awayWithin how long it has to
	// respond.
	awayAfter  = 800 * time.Millisecond
	awayWithin = 700 * time.Millisecond
)

// awayText is shown by a page whose own server does not respond.
func (s *Server) awayText() string {
	return "the server of this page does not respond. Start it again with " + cmp.Or(s.StartedWith, "starter ui") + "."
}

// errAway returns the page that replaces one that needs the unavailable Temporal server.
func (s *Server) errAway() *pageError {
	return &pageError{http.StatusServiceUnavailable, "The Temporal server does not respond. " +
		cmp.Or(s.TemporalAway, "Start it again; for a local one: starter dev.")}
}

// watchAway handles a request, and gives up once the Temporal server is found to be unavailable: its client would
// retry for as long as a page may take.
func (s *Server) watchAway(handle pageHandler, w http.ResponseWriter, r *http.Request, v *visit) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	err := s.errAway()
	timer := time.AfterFunc(awayAfter, func() {
		checking, stop := context.WithTimeout(ctx, awayWithin)
		defer stop()
		if _, failed := s.Client.CheckHealth(checking, &client.CheckHealthRequest{}); failed != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	defer timer.Stop()
	handled := s.guardPanic(handle, w, r.WithContext(ctx), v)
	if handled != nil && errors.Is(context.Cause(ctx), err) {
		return err
	}
	return handled
}
