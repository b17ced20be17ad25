// Package retry decides how the policies of a step rule on an outcome: Decide matches the policies and returns a
// Decision; backoff.go computes its delay. Counters is all state that it keeps for a call. Time and random numbers
// are arguments.
package retry
