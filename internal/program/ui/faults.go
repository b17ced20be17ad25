package ui

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
)

const (
	// mostFaults bounds the runs whose failures are cached, and shownFault cuts each, in characters. A run's failure
	// never changes, so its history is read once, but a namespace has any number of runs.
	mostFaults = 2000
	shownFault = 200
)

// historyGone is shown for a run that the server still lists but whose history it has deleted.
const historyGone = "The server no longer has the history of this run, so its cause is not known and it cannot be run again."

// faults caches the failures of runs by run ID: they never change, and reading one takes a call to the server. It is
// safe for concurrent use.
type faults struct{ known *lru.Cache[string, string] }

func newFaults() faults {
	known, err := lru.New[string, string](mostFaults)
	if err != nil {
		panic(err) // for a size below 1 alone
	}
	return faults{known}
}

// faultOf returns the failure of a run; "" if unknown.
func (f faults) faultOf(ctx context.Context, reader *runs.Reader, run runs.Found) string {
	if fault, found := f.known.Get(run.LastRunID()); found {
		return fault
	}
	failure, err := reader.FailureOf(ctx, run)
	if connect.NotFound(err) {
		f.known.Add(run.LastRunID(), historyGone)
		return historyGone
	}
	if err != nil {
		return "" // the list says that it failed, and its page what with
	}
	fault := ""
	if failure != nil {
		fault = terminal.Shorten(failure.Message, shownFault)
	}
	f.known.Add(run.LastRunID(), fault)
	return fault
}
