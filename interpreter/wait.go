package interpreter

import "time"

// Wait is a pause before the next attempt; kept with call.State.
type Wait struct {
	Delay   time.Duration `json:"delay"`
	Reason  Reason        `json:"reason"`
	Summary string        `json:"summary"`
	// Most is how many attempts, polls or restarts its policy gives, 0 where it bounds none.
	Most int `json:"most,omitempty"`
	// Rest says that it began elsewhere, and this is what is left of it.
	Rest bool `json:"rest,omitempty"`
}

// Sooner is the earlier of two times; zero, for unknown, is later than any.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
