package run

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"reprise/workflows/protocol"
)

var (
	errNotContinued = errors.New("it contains the state of a run, but does not continue one; start a run without state")
	errNotCalled    = errors.New("it claims that a step of another run started it, or that a worker found its files, and neither is true")
)

// checkContinued returns an error for a state that was not written by the previous history of this run. Cron
// schedules and retries also follow other histories, but with an input that a client has written.
func checkContinued(ctx workflow.Context, state *protocol.RunState) error {
	info := workflow.GetInfo(ctx)
	if info.ContinuedExecutionRunID == "" || state.First == "" || state.First != info.FirstRunID {
		return errNotContinued
	}
	return nil
}
