package ratelimit

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Attempts that have released their slots in the loop come back at the promised time. That time may be too late:
// attempts before them may be gone, or may have two promises because a worker died. So the limiter records who is
// away, and calls the next ones back for slots that nobody uses.

// Names of signals: with the first, a worker reports attempts that wait elsewhere; with the second, the limiter
// calls back a call of a workflow.
const (
	AwaySignal = "away"
	TurnSignal = "turn"
)

// Away is an attempt that waits elsewhere for its promised time; kept in workflow history.
type Away struct {
	Workflow string    `json:"workflow"`
	Step     string    `json:"step"`
	Index    *int      `json:"index,omitempty"`
	At       time.Time `json:"at"` // when it comes back by itself, by the clock of the server
}

// TurnCall is the signal that a call of a workflow may come back for a free slot; kept in workflow history.
type TurnCall struct {
	Step  string `json:"step"`
	Index *int   `json:"index,omitempty"`
}

const (
	// callAfter is how long a slot stays free before an attempt is called back for it: less than the time by which
	// attempts come early, more than a lease takes.
	callAfter = time.Second
	// callFor is the period whose slots are filled by one round of calls. Called attempts get the slots in order,
	// so that the promised times after them are right again.
	callFor = 20 * time.Second
	// callAhead is how long before the end of that period the next attempts are called.
	callAhead = 5 * time.Second
	// callAgain is the minimum time between two rounds of calls.
	callAgain = 2 * time.Second
	// mostCalled bounds the attempts called back in one round. A call for all attempts under a limit of thousands
	// would be one message with their names; the others come back by themselves.
	mostCalled = 100
	// mostAway bounds the waiting attempts that a limiter records, the soonest ones: they are in the state with
	// which its workflow continues as new.
	mostAway = 1000
	// maxAwayName bounds the names of a waiting attempt, in bytes, because clients can signal any.
	maxAwayName = 2000
)

// CheckAway returns an error if reported attempts cannot be genuine: too many, or with impossible names.
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

// NoteAway records attempts that wait elsewhere. For an attempt that is reported again, the last time counts.
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

// CallAt returns when to check whether attempts must be called back; zero if none is away.
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

// CallBack returns the attempts to be called back: if nobody has taken a free slot, or if those called last have
// almost used up their slots and nobody follows.
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
		turns -= l.countAway(until)
	}
	turns = min(turns, len(l.Away))
	if turns <= 0 {
		l.Filled = time.Time{} // all remaining ones come back in order
		return nil
	}
	called := slices.Clone(l.Away[:turns])
	l.Away = l.Away[turns:]
	l.Filled, l.Called = until, now
	return called
}

// countAway counts the attempts that come back by themselves up to a time.
func (l *Limiter) countAway(until time.Time) int {
	at := slices.IndexFunc(l.Away, func(a Away) bool { return a.At.After(until) })
	if at < 0 {
		return len(l.Away)
	}
	return at
}
