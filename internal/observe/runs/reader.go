// Package runs reads runs of playbooks from Temporal: a run is the chain of its
// histories, with its loops, calls and iterations. All readers of runs use it: those
// that follow a run, list runs, show status or events, and find dead letters.
//
// Each method has a budget of calls to the server. Find takes at most four, List one
// for each page of a hundred runs, Status at most StatusCalls, whatever the size of the
// run: it queries the workflows, and reads no history of an iteration. Iterations takes
// one call more for each child of the loop that is open, up to a bound. Events reads
// histories page by page, those of iterations only where they are requested.
package runs

import (
	"errors"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/payload"
)

// ErrNotFound says that there is no such run, or no longer.
var ErrNotFound = errors.New("there is no such run")

// Reader reads runs from Temporal. It is safe for concurrent use.
type Reader struct {
	Client client.Client
	Store  *payload.Store // of large values, nil for none
	// Namespace is that of the client; only List, Find and Status need it.
	Namespace string
	// Patience bounds one query of a workflow: without a worker it gets no answer, and
	// a busy worker answers late.
	Patience time.Duration
}
