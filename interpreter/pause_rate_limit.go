package interpreter

// PauseRateLimitActivity is the name of the local activity that pauses all attempts
// under a rate limit, because a response that reports success asks clients to wait.
const PauseRateLimitActivity = "pause_rate_limit"

// PauseRateLimitInput is the argument of PauseRateLimitActivity; it does not travel.
type PauseRateLimitInput struct {
	// Attempt is the one with that response; it names the rate limit.
	Attempt ToolInput `json:"attempt"`
	Seconds float64   `json:"seconds"`
}
