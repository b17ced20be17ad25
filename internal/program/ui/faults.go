package ui

import (
	"context"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
)

const (
	// mostFaults bounds the runs whose failures are cached, and shownFault cuts each, in characters. A run's failure
	// never changes, so its history is read once, but a namespace has any number of runs.
	mostFaults = 2000
	shownFault = 200
)

// historyGone is shown for a run that the server still lists but whose history it has deleted.
const historyGone = "The server no longer has the history of this run, so its cause is not known and it cannot be run again."

// noFailure is shown for a failed run that has recorded no error.
const noFailure = "The run recorded no error: it was terminated, or ran out of time."

// faults remembers what runs have failed with, by their run IDs: it does not change, and each takes a
// call to the server. It is safe for concurrent use.
type faults struct{ known *lru.Cache[string, fault] }

// fault is the error of a failed run; the zero value if it is unknown.
type fault struct {
	Text string
	// End is the last line of the traceback or response body that came with the failure; it often has the cause.
	End string
}

func newFaults() faults {
	known, err := lru.New[string, fault](mostFaults)
	if err != nil {
		panic(err) // for a size below 1 alone
	}
	return faults{known}
}

// isKnown reports whether the error of a run is cached, so that faultOf needs no call to the server.
func (f faults) isKnown(run runs.Found) bool { return f.known.Contains(run.LastRunID()) }

// callsOfFault is how many calls to the server it takes to read the error of a run: those of backfills come from the runs of partitions.
func callsOfFault(run runs.Found) int {
	if strings.HasSuffix(run.Playbook, backfill.Suffix) {
		return 2
	}
	return 1
}

// faultOf returns the error of a failed run. It makes at most callsOfFault calls.
func (f faults) faultOf(ctx context.Context, reader *runs.Reader, run runs.Found) fault {
	if known, found := f.known.Get(run.LastRunID()); found {
		return known
	}
	failure, err := reader.FailureOf(ctx, run)
	var known fault
	switch {
	case connect.IsNotFound(err):
		known.Text = historyGone
	case err != nil:
		return known // the list says that it failed, and its page what with
	case failure == nil:
		known.Text = noFailure
	default:
		text, id := failure.Message, ""
		if of, cause := failure.FailedRun(); cause != "" {
			text, id = cause, of
		}
		if id != "" && callsOfFault(run) > 1 {
			if below, err := reader.FailureOf(ctx, runs.Found{WorkflowID: id}); err == nil && below != nil {
				failure = below
			}
		}
		known = fault{terminal.Shorten(text, shownFault), terminal.Shorten(render.LastLine(failure), shownFault)}
	}
	f.known.Add(run.LastRunID(), known)
	return known
}
