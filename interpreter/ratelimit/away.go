package ratelimit

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Attempts that have given up their slots come back at the promised time. That may be wrong:
// attempts before them may be gone, or may have two promises because a worker died. So the
// limiter remembers who is away, and calls the next ones back for turns that nobody uses.

// Names of signals: by the first a worker reports attempts that were dropped to the limiter; by
// the second the limiter calls back a workflow for one of its calls.
const (
	AwaySignal = "away"
	TurnSignal = "turn"
)

// Away is an attempt that has given up its place; kept in workflow history.
type Away struct {
	Workflow string    `json:"workflow"`
	Step     string    `json:"step"`
	Index    *int      `json:"index,omitempty"`
	At       time.Time `json:"at"` // when it comes back by itself, by the clock of the server
}

// TurnCall signals a workflow that some of its calls may come back for their turns; kept in
// workflow history.
type TurnCall struct {
	Step  string `json:"step"`
	Index *int   `json:"index,omitempty"`
}

const (
	// callAfter is how long a turn stays free before somebody is called back for it: less than
	// attempts come early, more than a lease takes.
	callAfter = time.Second
	// callFor is the time whose turns are filled at once. An attempt that is called gets the
	// turns in order, and so the times after it are right again.
	callFor = 20 * time.Second
	// callAhead is how long before those turns are used up the next are called.
	callAhead = 5 * time.Second
	// callAgain is the least time between two calls.
	callAgain = 2 * time.Second
	// mostCalled bounds for how many of those that wait one call is. A call for all of a limit
	// of thousands would be one message of their names; the others look for themselves.
	mostCalled = 100
	// mostAway bounds the waiting attempts that a limit remembers, the soonest: they are in the
	// state with which its workflow continues as new.
	mostAway = 1000
	// maxAwayName bounds the names of an attempt that is away, in bytes, as clients can signal
	// them.
	maxAwayName = 2000
)

// CheckAway returns an error if waiting attempts that a worker reports cannot be genuine: too
// many, or with impossible names.
func CheckAway(away []Away) error {
	if len(away) > mostAway {
		return errors.New("too many reports")
	}
	for _, one := range away {
		if one.Workflow == "" || len(one.Workflow)+len(one.Step) > maxAwayName {
			return errors.New("not the name of a workflow and a step")
		}
	}
	return nil
}

// NoteAway notes who has gone away. Of one that has gone again the last time counts.
func (l *Limiter) NoteAway(away []Away) {
	if l.Every <= 0 {
		return // nobody has asked this limiter
	}
	for _, one := range away {
		l.Away = slices.DeleteFunc(l.Away, one.isSame)
		at, _ := slices.BinarySearchFunc(l.Away, one, func(a, b Away) int { return cmp.Or(a.At.Compare(b.At), -1) })
		l.Away = slices.Insert(l.Away, at, one)
	}
	l.Away = l.Away[:min(len(l.Away), mostAway)]
}

func (a Away) isSame(other Away) bool {
	return a.Workflow == other.Workflow && a.Step == other.Step &&
		(a.Index == nil) == (other.Index == nil) && (a.Index == nil || *a.Index == *other.Index)
}

// CallAt is when to check whether somebody has to be called back; zero while nobody is away.
func (l *Limiter) CallAt() time.Time {
	if len(l.Away) == 0 {
		return time.Time{}
	}
	at := l.Next.Add(callAfter)
	if ahead := l.Filled.Add(-callAhead); !l.Filled.IsZero() && ahead.Before(at) {
		at = ahead
	}
	if again := l.Called.Add(callAgain); at.Before(again) {
		return again
	}
	return at
}

// CallBack gives those who are called back, as nobody has taken a turn that is free, or
// as those that were called last are about to have had theirs and nobody comes
// after them.
func (l *Limiter) CallBack(now time.Time) []Away {
	l.Away = slices.DeleteFunc(l.Away, func(a Away) bool { return !a.At.After(now) }) // they come by themselves
	idle := !l.Next.Add(callAfter).After(now)
	if len(l.Away) == 0 || l.Every <= 0 || !idle && !l.Filled.After(now) {
		l.Filled = time.Time{}
		return nil
	}
	if l.CallAt().After(now) {
		return nil
	}
	from := l.Filled
	if idle {
		from = now
	}
	until := from.Add(callFor)
	turns := int(min((callFor+l.Every-1)/l.Every, mostCalled))
	if !idle {
		turns -= l.awayUntil(until)
	}
	turns = min(turns, len(l.Away))
	if turns <= 0 {
		l.Filled = time.Time{} // those come in order
		return nil
	}
	called := slices.Clone(l.Away[:turns])
	l.Away = l.Away[turns:]
	l.Filled, l.Called = until, now
	return called
}

// awayUntil counts those that come back by themselves up to a time.
func (l *Limiter) awayUntil(until time.Time) int {
	at := slices.IndexFunc(l.Away, func(a Away) bool { return a.At.After(until) })
	if at < 0 {
		return len(l.Away)
	}
	return at
}
