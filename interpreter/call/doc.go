// Package call is the machine of one call of a tool: the work of a step without a loop, of
// an iteration, or of a sink, from its first request to one result.
//
// A host drives it. Next returns the command that is due: an attempt, a wait, an answer to
// await, a sink, a claim of a state, the end. The host carries it out and reports back with
// ApplyOutcome, EndWait, ApplyAnswer, SinkDone or StateAnswered, until Next returns DoFinish.
// workflows/drive/driver.go and activities/hosting/drive_call.go are the two hosts.
//
//	command := c.Next(now)
//	outcome := … // the host makes the attempt
//	c.ApplyOutcome(outcome, now)
//
// Methods of Call change it. What hosts read of it is a View; what follows from its state without
// a decision is in the reader beneath both, which changes nothing.
//
// It is read in this order: call.go has the Call with its State and Next, command.go the commands, report.go what a host
// reports, decide.go what follows an outcome, end.go and results.go how a call ends, people.go
// answers from outside, status.go what is shown, drive.go, stopped.go and ledger.go how a call continues at
// another host. todo.go, progress.go and scope.go are beneath these.
//
// Its parts do not know it: request makes the requests, page collects the pages, sink chooses the
// sinks, watermark moves the state between runs, and await has what others answer.
package call
