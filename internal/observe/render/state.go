package render

import (
	"cmp"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// What people read in place of the status of something that does not continue by itself: "running" and "retry_pending" would
// promise that it does. JSON has it as held_by: person and no_worker.
const (
	NeedsPerson = "needs a person"
	NoWorker    = "no worker"
)

// PeopleNeeded returns the words for n iterations that continue only when a person acts, as they follow n.
func PeopleNeeded(n int) string {
	if n == 1 {
		return NeedsPerson
	}
	return "need a person"
}

// heldWord returns what is read in place of a status; "" for the status itself.
func heldWord(status interpreter.Status, heldBy string) string {
	switch {
	case status.Ended():
	case heldBy == runs.HeldByNoWorker:
		return NoWorker
	case heldBy == runs.HeldByPerson:
		return NeedsPerson
	}
	return ""
}

// StateWord returns the words for the status of a run, a step or an iteration that may be held by something.
func StateWord(status interpreter.Status, heldBy string) string {
	return cmp.Or(heldWord(status, heldBy), status.DisplayWord())
}

// StateColour returns the status in whose colour something is drawn.
func StateColour(status interpreter.Status, heldBy string) interpreter.Status {
	switch heldWord(status, heldBy) {
	case NoWorker:
		return interpreter.RetryPending
	case NeedsPerson:
		return interpreter.Awaiting
	}
	return status
}

// stateCell returns a status in its colour, in the words of filters and JSON, or what is read in place of it.
func stateCell(status interpreter.Status, heldBy string, paper terminal.Paper) string {
	return paper.Paint(styleOf(StateColour(status, heldBy)), cmp.Or(heldWord(status, heldBy), string(status)))
}
