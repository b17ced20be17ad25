package runs

import (
	"context"
	"time"
)

// Waits counts what waits in a running run, or in one step of it, or one iteration of
// that: for a retry, a poll, a page, a turn or a person, and where held is true for the
// end of a pause. Attempts that are answered from outside are not among them. It takes
// the calls of Status, and those of Iterations for each loop. whole is false where some
// of it was not queried.
func (r *Reader) Waits(ctx context.Context, run Found, step string, index *int, held bool) (n int, whole bool) {
	status, err := r.Status(ctx, run, time.Now())
	if err != nil {
		return 0, false
	}
	whole = status.HeldBy != HeldByNoWorker
	for _, visit := range status.Visits(step) {
		switch {
		case !visit.EndedAt.IsZero(), !held && status.Control.IsPaused(visit.Step): // it has none, or none is ended
		case visit.Loop == nil:
			if index == nil && visit.mayEnd(held) {
				n++
			}
		default:
			counted := r.waitsOf(ctx, status, visit, index, held)
			whole = whole && !visit.silent
			if len(visit.open) > mostQueried { // the loop knows of those that have released their slots
				whole = false
				if index == nil {
					counted = max(counted, visit.Loop.Waiting)
				}
			}
			n += counted
		}
	}
	return n, whole
}

// waitsOf counts the iterations of a loop that wait, or only one of them.
func (r *Reader) waitsOf(ctx context.Context, status *Status, visit *Step, index *int, held bool) (n int) {
	r.Iterations(ctx, status, visit)
	for _, iteration := range visit.Iterations {
		if iteration.mayEnd(held) && (index == nil || iteration.Index == *index) {
			n++
		}
	}
	return n
}

// mayEnd reports whether people may end what the item waits for; that of a pause only
// where they give it up.
func (i Item) mayEnd(held bool) bool {
	switch i.HeldBy {
	case HeldByWait, HeldByRateLimit, HeldByPerson:
		return true
	case HeldByPause:
		return held
	}
	return false
}
