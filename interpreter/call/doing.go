package call

import "time"

// Doing is what a hosted call is doing. Heartbeats report it for display; nothing is decided by
// it.
type Doing struct {
	Call    int       `json:"call"` // its position among the calls of the activity
	Index   *int      `json:"index,omitempty"`
	Attempt int       `json:"attempt"`
	Page    int       `json:"page,omitempty"`
	Since   time.Time `json:"since"`
	// Turn says that the attempt waits for its turn under a rate limit.
	Turn bool `json:"turn,omitempty"`
	// Made are the attempts that the call has made in this activity.
	Made Stretches `json:"made,omitempty"`
}
