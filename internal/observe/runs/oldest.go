package runs

import (
	"context"
	"slices"
	"time"

	"reprise/interpreter"
)

// OpenFilter selects the open runs with a status. known says that the namespace has our search attributes; without
// them all open runs count as running.
func OpenFilter(status interpreter.Status, known bool) Filter {
	if status == interpreter.Running && known {
		return Filter{Doing: DoingWork}
	}
	return Filter{Status: status}
}

// mostOldestCalls bounds the calls of Oldest: among 100,000 open runs, bisection finds the last hundred in ten.
const mostOldestCalls = 16

// OldestStart returns when the oldest open run that a filter selects started; zero if there is none. before is the result
// of the previous call, or zero: if that run is still open, one call suffices. The server lists the newest runs
// first, so otherwise the time is found by bisection in at most sixteen calls; after that it returns the oldest start
// found.
func OldestStart(ctx context.Context, r *Reader, filter Filter, before, now time.Time) (time.Time, error) {
	var oldest time.Time // that was found
	empty := before      // none has started before then, except as it is zero
	if !before.IsZero() {
		filter.StartedBefore = before.Add(time.Nanosecond)
	}
	for range mostOldestCalls {
		page, err := r.listPage(ctx, filter.pageQuery(), listPage, nil)
		if err != nil {
			return oldest, err
		}
		if len(page.Runs) > 0 {
			oldest = slices.MinFunc(page.Runs, func(x, y Found) int { return x.StartedAt.Compare(y.StartedAt) }).StartedAt
			if page.Next == nil {
				return oldest, nil
			}
		}
		switch {
		case len(page.Runs) > 0: // others began before it
		case filter.StartedBefore.IsZero():
			return oldest, nil
		default:
			empty = filter.StartedBefore
		}
		filter.StartedBefore = earlierProbe(empty, oldest, now)
	}
	return oldest, nil
}

// earlierProbe returns a time before which to look for earlier runs: the middle if both bounds are known, else twice
// as long ago, and zero if nothing is known.
func earlierProbe(empty, oldest, now time.Time) time.Time {
	switch {
	case oldest.IsZero():
		return time.Time{}
	case empty.IsZero() || !empty.Before(oldest):
		return oldest.Add(-now.Sub(oldest) - time.Millisecond)
	}
	return empty.Add(oldest.Sub(empty)/2 + 1)
}
