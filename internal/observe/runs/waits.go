package runs

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// CountWaits counts what waits in a running run, in one step of it, or in one iteration of that: for a retry, a poll, a
// page, a turn or a person and, if held is set, for the end of a pause. Attempts that are answered from outside do
// not count. It makes the calls of Status, and those of AddIterations for each loop. whole is false if part of the run
// was not queried.
func (r *Reader) CountWaits(ctx context.Context, run Found, step string, index *int, held bool) (n int, whole bool) {
	status, err := r.Status(ctx, run, time.Now())
	if err != nil {
		return 0, false
	}
	whole = !status.IsSilent()
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

// waitsOf counts the waiting iterations of a loop, or only one of them.
func (r *Reader) waitsOf(ctx context.Context, status *Status, visit *Step, index *int, held bool) (n int) {
	r.AddIterations(ctx, status, visit)
	for _, iteration := range visit.Iterations {
		if iteration.mayEnd(held) && (index == nil || iteration.Index == *index) {
			n++
		}
	}
	return n
}

// mayEnd reports whether people may end what the item waits for. A pause counts only if held is set.
func (i Item) mayEnd(held bool) bool {
	switch i.HeldBy {
	case HeldByWait, HeldByRateLimit, HeldByPerson:
		return true
	case HeldByPause:
		return held
	}
	return false
}

// WaitsFor is a group of iterations of a loop that wait for the same thing, for the same reason.
type WaitsFor struct {
	Items  int                `json:"items"`
	Reason interpreter.Reason `json:"reason"`
	// Why is how the previous attempts ended, without the paths of URLs.
	Why         string    `json:"why,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"` // of the first of them; zero where that is unknown
}

const (
	// shownWaits bounds the groups that are distinguished; the last group has all others.
	shownWaits = 5
	// mostSampled is how many children are queried of a loop that has too many to query all: the groups of its waits
	// are then those of a sample.
	mostSampled = 2
)

// groupWaits sets what the iterations in the answers wait for.
func (s *Step) groupWaits(answers []protocol.Iterations) {
	s.Waits, s.WaitsOf = nil, 0
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			s.WaitsOf++
			if iteration.Reason != interpreter.ReasonTurn && iteration.Status.LoopTally() != interpreter.TallyWaiting {
				continue
			}
			group := WaitsFor{Items: 1, Reason: iteration.Reason, NextRetryAt: iteration.NextRetryAt}
			switch {
			case iteration.Reason == interpreter.ReasonKeeper:
				group.Why = iteration.Cause
			case iteration.Error != nil && iteration.Reason != interpreter.ReasonTurn:
				group.Why = errorGist(iteration.Error)
			}
			s.addWait(group)
		}
	}
	slices.SortStableFunc(s.Waits, func(x, y WaitsFor) int { return cmp.Compare(y.Items, x.Items) })
}

func (s *Step) addWait(one WaitsFor) {
	i := slices.IndexFunc(s.Waits, func(of WaitsFor) bool { return of.Reason == one.Reason && of.Why == one.Why })
	if i < 0 && len(s.Waits) == shownWaits {
		i, s.Waits[shownWaits-1].Why = shownWaits-1, "for several reasons"
	}
	if i < 0 {
		s.Waits = append(s.Waits, one)
		return
	}
	of := &s.Waits[i]
	of.Items++
	of.NextRetryAt = interpreter.EarlierTime(of.NextRetryAt, one.NextRetryAt)
}

const (
	// shownGist bounds the text of a group, in characters.
	shownGist = 120
	// cutMark follows the query of a URL that a message truncates.
	cutMark = " … (cut)"
)

// errorGist reduces an error to what similar errors share: it keeps only the host of an address, and for a child run
// its failure.
func errorGist(failure *interpreter.ErrorObject) string {
	text := failure.Message
	if _, cause := failure.FailedRun(); cause != "" {
		text = "a child run failed: " + cause
	}
	return terminal.Shorten(hostOnly(text, failure.URL), shownGist)
}

// hostOnly replaces an address in a text by its host, even if the text truncates the address.
func hostOnly(text, address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return text
	}
	path, query, _ := strings.Cut(address, "?")
	before, after, found := strings.Cut(text, path)
	if !found {
		return text
	}
	if rest, hasQuery := strings.CutPrefix(after, "?"); hasQuery {
		n := 0
		for n < min(len(rest), len(query)) && rest[n] == query[n] {
			n++
		}
		after = strings.TrimPrefix(rest[n:], cutMark)
	}
	return before + parsed.Host + after
}
