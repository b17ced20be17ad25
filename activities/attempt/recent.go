package attempt

import (
	"context"
	"maps"
	"sync"
	"time"

	"reprise/interpreter"
)

const (
	// readTimeout bounds a request for what recent keeps of a run. Without an answer what was
	// read last counts.
	readTimeout = 2 * time.Second
	// recentForgets is how long a value is kept that nobody requests.
	recentForgets = time.Minute
)

// recent caches what the server reports of runs. All attempts of a worker share it, so that the
// server gets one request per run in interpreter.ControlPatience, however many attempts begin.
type recent[V any] struct {
	// read reads it of a run.
	read func(ctx context.Context, workflowID string) (V, error)
	mu   sync.Mutex
	runs map[string]*recentRun[V]
}

// recentRun is the entry of one run.
type recentRun[V any] struct {
	mu    sync.Mutex // held during the request
	value V
	asked time.Time // of the last request
	used  time.Time // under the lock of recent
}

func newRecent[V any](read func(ctx context.Context, workflowID string) (V, error)) *recent[V] {
	return &recent[V]{read: read, runs: map[string]*recentRun[V]{}}
}

// valueOf returns a value of a run that is no older than interpreter.ControlPatience; it is
// read again if it does not serve. After an error of the request, the value is the one that was
// read last.
func (r *recent[V]) valueOf(ctx context.Context, workflowID string, serves func(V) bool) (V, error) {
	run := r.runOf(workflowID)
	run.mu.Lock()
	defer run.mu.Unlock()
	asking := time.Now()
	if asking.Sub(run.asked) < interpreter.ControlPatience && serves(run.value) {
		return run.value, nil
	}
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	value, err := r.read(bounded, workflowID)
	if err == nil {
		run.value = value
	}
	run.asked = asking
	return run.value, err
}

// runOf finds the cached values of a run, and drops those of runs that nobody requests.
func (r *recent[V]) runOf(workflowID string) *recentRun[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, run := time.Now(), r.runs[workflowID]
	if run == nil {
		maps.DeleteFunc(r.runs, func(_ string, other *recentRun[V]) bool { return now.Sub(other.used) > recentForgets })
		run = &recentRun[V]{}
		r.runs[workflowID] = run
	}
	run.used = now
	return run
}
