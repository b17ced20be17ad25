package call

import (
	"cmp"
	"fmt"
	"time"

	"reprise/interpreter"
)

// Noted says whether ledgers hold entries of a call; kept in workflow history. Entries let another delivery of the same activity
// continue behind the writes of a lost worker. They are deleted once the activity's result is in history.
type Noted int

const (
	// NotNoted says that there are no entries.
	NotNoted Noted = iota
	// NotedOnce says that there are entries of an activity that was delivered once.
	NotedOnce
	// NotedAgain says that there are entries of an activity that was delivered more than once. The first worker may be frozen
	// and not lost: when it wakes it must find that its rows were written. So entries are emptied and not deleted.
	NotedAgain
)

// ForgetInput is the argument of ForgetActivity. It does not travel.
type ForgetInput struct {
	Task  Task
	Calls []Snapshot // that have ended
	Again bool       // NotedAgain, of one of them
}

// Mark is a point of a call to which its host can return.
type Mark struct{ restarts, collected, seen int }

// Mark is the current point of the call.
func (v View) Mark() Mark {
	return Mark{restarts: v.state.Restarts, collected: v.state.Pages.Count(), seen: len(v.state.Seen)}
}

// LedgerEntry is the entry of the write that is due, for its ledger: how
// the call continues once the sink has written. since is the state of the call at
// the entry before, or when its host loaded it; noted is what its ledgers hold then, and warnings are those of the sink's call. It is an
// error where there is more to enter than MaxContinuation. given is what the sink is given: what its destination makes of that is not known
// yet.
func (c *Call) LedgerEntry(since Mark, noted Noted, warnings []string, given *interpreter.Rows, now time.Time) (interpreter.LedgerEntry, error) {
	after := *c
	after.SetNoted(noted)
	after.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess, Warnings: warnings, Meta: interpreter.CallMeta{Rows: given}}, now)
	next := continuation{State: after.View().Snapshot()}
	state := &next.State
	if after.Finished() {
		next.State = State{Todo: state.Todo, Written: state.Written, Noted: state.Noted, Ledger: state.Ledger}
	} else if since.restarts == state.Restarts {
		next.Seen = state.Requests.Leave(c.state.Seen[:since.seen])
		if state.Pages.Cut(c.config.collectingOf(), since.collected) {
			next.Collected = &since.collected
		}
	} else { // nothing of what was there at since is left
		state.Pages.Whole()
	}
	entry := interpreter.LedgerEntry{Call: c.newReader().ledgerKey(), Written: state.Written}
	var err error
	entry.Continuation, err = next.packState()
	return entry, err
}

// Warnings are the warnings of the call so far.
func (v View) Warnings() []string { return v.state.Warnings }

// SetNoted records whether ledgers hold entries of the call.
func (c *Call) SetNoted(noted Noted) { c.state.Noted = max(c.state.Noted, noted) }

// Recalled reports that the ledgers' entries of the call were read.
func (c *Call) Recalled() { c.state.Recalls = false }

// Resume restores the call as it was right after a write, from the continuation in the write's ledger entry.
func (c *Call) Resume(noted []byte) error {
	var next continuation
	if err := next.unpackState(noted); err != nil {
		return err
	}
	state := next.State
	if len(state.Todo) == 0 {
		return fmt.Errorf("the note of write %d does not say how the call continues", state.Written)
	}
	if state.nextTodo().End == nil {
		if next.Seen > len(c.state.Seen) || next.Collected != nil && !state.Pages.Complete(&c.state.Pages, *next.Collected) {
			return fmt.Errorf("the note of write %d does not belong to this call", state.Written)
		}
		state.Requests.Prepend(c.state.Seen[:next.Seen])
	}
	c.state = state
	return nil
}

// ledgerKey names the call in ledgers: by its own key, unless it continues one that an earlier run has begun.
func (r reader) ledgerKey() string { return cmp.Or(r.state.Ledger, r.config.LedgerKey()) }

// Ledgers returns where entries of this call may be, as inputs for queries: one for each sink
// whose target does not depend on results of attempts.
func (v View) Ledgers(now time.Time) []interpreter.ToolInput {
	var inputs []interpreter.ToolInput
	for _, sink := range v.config.All() {
		if input, fixed := v.config.Target(sink, now); fixed {
			input.Note = &interpreter.LedgerEntry{Call: v.ledgerKey(), Written: v.state.Written}
			inputs = append(inputs, input)
		}
	}
	return inputs
}

// Fixed reports whether the target of the sink that is due, which could be
// rendered, is among Ledgers.
func (v View) Fixed() bool {
	due := v.config.Chosen(v.state.nextTodo().Sink.Choice)
	return v.config.Step.FixedPlace(v.config.Book.Resolve(due.Action))
}
