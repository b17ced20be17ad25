// Package sink decides which sinks a call writes to, in which order, and what they get besides rows: the publishing
// of staged rows, and dead letters.
// sinks.go has the sinks of a call, staging.go the handling of staged rows, dead_letter.go the row of a failed
// iteration, and written.go what the result of a sink adds to the result of its call.
package sink
