package call

import "time"

// Doing describes the current work of a hosted call. Heartbeats report it for display; it decides nothing.
type Doing struct {
	Call    int       `json:"call"` // its position among the calls of the activity
	Index   *int      `json:"index,omitempty"`
	Attempt int       `json:"attempt"`
	Page    int       `json:"page,omitempty"`
	Since   time.Time `json:"since"`
	// Turn says that the attempt waits for its slot under a rate limit.
	Turn bool `json:"turn,omitempty"`
	// Made are the attempts that this activity has made for the call.
	Made Stretches `json:"made,omitempty"`
}
