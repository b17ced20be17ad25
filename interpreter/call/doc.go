// Package call is the machine of one call of a tool: the work of a step without a loop, of
// an iteration, or of a sink, from its first request to one result.
//
// A host drives it. Next returns the command that is due: an attempt, a wait, an answer to
// await, a sink, a claim of a state, the end. The host carries it out and reports back with
// Attempted, Waited, ApplyAnswer, SinkDone or StateAnswered, until Next returns DoFinish.
// workflows/driver.go and activities/drive_call.go are the two hosts.
//
//	command := c.Next(now)
//	outcome := … // the host makes the attempt
//	c.Attempted(outcome, now)
//
// call.go has the Call with its State, todo.go the row of what is still to do, decide.go
// what follows a report, next_request.go and pagination.go the requests, pages.go and
// collect.go the pages, sink.go the sinks, ledger.go what a sink's ledger keeps, and task.go
// how a call continues at another host.
package call
