package call

import (
	"cmp"
	"fmt"
	"time"

	"reprise/interpreter"
)

// LedgerUse says whether ledgers hold entries of a call; kept in workflow history. With the entries, a redelivered
// activity continues after the writes of a lost worker. They are deleted once the activity's result is in history.
type LedgerUse int

const (
	// NotNoted says that there are no entries.
	NotNoted LedgerUse = iota
	// NotedOnce says that there are entries of an activity that was delivered once.
	NotedOnce
	// NotedAgain says that there are entries of an activity that was delivered more than once. The first worker may
	// have been frozen rather than lost. When it continues, it must see that its rows were written, so entries are
	// emptied instead of deleted.
	NotedAgain
)

// ForgetInput is the argument of ForgetActivity. It stays within the worker.
type ForgetInput struct {
	Task  Task
	Calls []Snapshot // calls that have ended
	Again bool       // whether one of them is NotedAgain
}

// Mark is a point of a call against which later progress is measured.
type Mark struct{ restarts, collected, seen int }

// CurrentMark returns the current point of the call.
func (v View) CurrentMark() Mark {
	return Mark{restarts: v.state.Restarts, collected: v.state.Pages.CountElements(), seen: len(v.state.Seen)}
}

// LedgerEntry builds the ledger entry of the due write: how the call continues once the sink has written. since is
// the call's Mark at its previous entry, or when its host loaded it; noted is what the ledgers hold after the
// write; warnings are those of the sink's call; given counts the rows passed to the sink, since it is not known yet
// what the destination does with them. The error says that the entry exceeds MaxContinuation.
func (c *Call) LedgerEntry(since Mark, noted LedgerUse, warnings []string, given *interpreter.Rows, now time.Time) (interpreter.LedgerEntry, error) {
	after := *c
	after.SetNoted(noted)
	after.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess, Warnings: warnings, Meta: interpreter.CallMeta{Rows: given}}, now)
	next := continuation{State: after.View().Snapshot()}
	state := &next.State
	if after.Finished() {
		next.State = State{Todo: state.Todo, Written: state.Written, Noted: state.Noted, Ledger: state.Ledger}
	} else if since.restarts == state.Restarts {
		next.Seen = state.Requests.DropKnown(c.state.Seen[:since.seen])
		if state.Pages.DropFirst(c.config.collectingOf(), since.collected) {
			next.Collected = &since.collected
		}
	} else { // a restart has discarded what the mark measured
		state.Pages.MarkAttached()
	}
	entry := interpreter.LedgerEntry{Call: c.newReader().ledgerKey(), Written: state.Written}
	var err error
	entry.Continuation, err = next.packState()
	return entry, err
}

// Warnings returns the warnings of the call so far.
func (v View) Warnings() []string { return v.state.Warnings }

// SetNoted records whether ledgers hold entries of the call.
func (c *Call) SetNoted(noted LedgerUse) { c.state.Noted = max(c.state.Noted, noted) }

// MarkRecalled records that the ledgers' entries of the call have been read.
func (c *Call) MarkRecalled() { c.state.Recalls = false }

// ResumeAfterWrite restores the state of the call right after a write, from the continuation in the write's ledger entry.
func (c *Call) ResumeAfterWrite(noted []byte) error {
	var next continuation
	if err := next.unpackState(noted); err != nil {
		return err
	}
	state := next.State
	if len(state.Todo) == 0 {
		return fmt.Errorf("the note of write %d does not record how the call continues", state.Written)
	}
	if state.nextTodo().End == nil {
		if next.Seen > len(c.state.Seen) || next.Collected != nil && !state.Pages.PrependFirst(&c.state.Pages, *next.Collected) {
			return fmt.Errorf("the note of write %d does not belong to this call", state.Written)
		}
		state.Requests.PrependFingerprints(c.state.Seen[:next.Seen])
	}
	c.setState(state)
	return nil
}

// ledgerKey identifies the call in ledgers: by its own key, or by the key of the earlier call that it continues.
func (r reader) ledgerKey() string { return cmp.Or(r.state.Ledger, r.config.LedgerKey()) }

// LedgerQueries returns the places where ledger entries of the call may be, as inputs for queries: one for each sink
// whose target does not depend on results of attempts.
func (v View) LedgerQueries(now time.Time) []interpreter.ToolInput {
	var inputs []interpreter.ToolInput
	for _, sink := range v.config.AllSinks() {
		if input, fixed := v.config.SinkTarget(sink, now); fixed {
			input.Note = &interpreter.LedgerEntry{Call: v.ledgerKey(), Written: v.state.Written}
			inputs = append(inputs, input)
		}
	}
	return inputs
}

// HasFixedTarget reports whether the target of the due sink is in a place of LedgerQueries. It must have been
// rendered without an error.
func (v View) HasFixedTarget() bool {
	due := v.config.SinkOf(v.state.nextTodo().Sink.Choice)
	return v.config.Step.FixedPlace(v.config.Book.ResolveAction(due.Action))
}
