package interpreter

// HoldBackActivity is the name of the local activity that holds back all attempts
// under a rate limit, because an answer that says it worked asks for patience.
const HoldBackActivity = "hold_back"

// HoldBackInput is the argument of HoldBackActivity; it does not travel.
type HoldBackInput struct {
	// Attempt is the one that was answered so, as far as it says under which limit it is.
	Attempt ToolInput `json:"attempt"`
	Seconds float64   `json:"seconds"`
}
