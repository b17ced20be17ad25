// Package retry decides what the policies of a step make of an outcome: Decide matches them
// and returns a Decision, whose delays backoff.go computes. Counters is all that it keeps of
// a call. Time and random numbers are arguments.
package retry
