package incremental

import (
	"bytes"
	"slices"
	"time"
)

// StateEntry is a state with the call that holds it. Its methods implement the rules of claims, moves and settings
// for all keepers: the Keeper in memory, and the tables of SQL tools.
type StateEntry struct {
	State
	// Found is the watermark when the holder claimed the state, and Last the number of the holder's last write.
	Found Cursor
	// Holder is the key of the call that holds the state, in the form used by its keeper; "" for none.
	Holder string
	Last   int
}

// ClaimTarget is the destination of a claim's rows, in a database that keeps the state beside them.
type ClaimTarget interface {
	// FindTable returns the table that the call writes to.
	FindTable() (Table, error)
	// FilledChildTables returns the child tables that have had rows with the state.
	FilledChildTables() ([]Table, error)
	// Key returns the columns that identified the rows of earlier claims; false if the previous call did not
	// insert.
	Key() (key []string, inserted bool, err error)
	// KnowsRows reports whether the state has known rows.
	KnowsRows() (bool, error)
}

// ClaimDecision is the decision about a claim.
type ClaimDecision struct {
	// Entry is the resulting state.
	Entry StateEntry
	// Refused says why the call cannot have the state, which is then unchanged.
	Refused *Refusal
	// Repeated says that the call already holds the state, which is then unchanged.
	Repeated bool
	// Anew says that the state starts without a watermark and without known rows.
	Anew bool
	// Lacks says that the table lacks rows up to the watermark.
	Lacks bool
	// Table is the table of the claim; zero without a target.
	Table Table
	// Changes are to be added to the history, oldest first. A change without a time happens now.
	Changes []StateChange
}

// DecideClaim decides a claim whose holder and source are in the form used by the keeper. target is nil if a
// workflow keeps the state.
func (r StateEntry) DecideClaim(claim Claim, target ClaimTarget, now time.Time) (d ClaimDecision, err error) {
	d.Entry = r
	if d.Repeated = r.Holder == claim.Holder; d.Repeated {
		return d, nil
	}
	if d.Refused = RefuseOtherSource(r.State, claim.Source); d.Refused != nil {
		return d, nil
	}
	if target != nil {
		if d.Table, err = target.FindTable(); err != nil {
			return d, err
		}
	}
	refused, note, err := d.refuseMissing(claim, target)
	if err != nil {
		return d, err
	}
	if d.Anew = refused != nil && claim.Full; refused != nil && !d.Anew {
		d.Refused = refused
		return d, nil
	}
	if target != nil && claim.Inserts && !d.Anew {
		if d.Refused, err = refuseOtherKey(r.Name, target, claim.Key); d.Refused != nil || err != nil {
			return d, err
		}
	}
	if moves, moved := r.HolderChange(); moved {
		d.Changes = append(d.Changes, moves)
	}
	next := &d.Entry
	if d.Anew { // a call that fails midway would leave a table with some rows, and the next one would continue from the watermark
		d.Changes = append(d.Changes, StateChange{Name: r.Name, At: now, By: claim.Run, From: r.Watermark, Note: note})
		next.Watermark = Cursor{}
	}
	next.Found, next.Holder, next.Last = next.Watermark, claim.Holder, 0
	next.Run, next.Rows, next.Source, next.Table, next.Tables = claim.Run, 0, claim.Source, d.Table.Name, claim.TableDigests()
	next.ClaimedAt = now
	return d, nil
}

// refuseMissing returns why the tables of a claim lack rows up to the watermark, nil if they lack none. If the
// state starts anew for that reason, it returns a note for the history instead.
func (d *ClaimDecision) refuseMissing(claim Claim, target ClaimTarget) (refused *Refusal, note string, err error) {
	const noRows = "--full-refresh: the table has no rows"
	state := d.Entry.State
	if target != nil {
		state.Emptied = state.Emptied && !claim.Full // all rows are read again
		d.Lacks = state.LacksRows(d.Table)
		if refused = WithoutRows(state, d.Table); refused != nil {
			if refused.Type == TypeOfAnother {
				return refused, "--full-refresh: the sink writes to " + d.Table.Name, nil
			}
			return refused, noRows, nil
		}
	}
	if refused = WithoutTables(state, claim); refused != nil || target == nil {
		return refused, FullIntoAnother, nil
	}
	filled, err := target.FilledChildTables()
	for _, table := range filled {
		if refused = WithoutRowsBelow(state, table); refused != nil {
			break
		}
	}
	return refused, noRows, err
}

// refuseOtherKey returns a refusal if the claimed key would not recognize the known rows of the state; otherwise nil.
func refuseOtherKey(state string, target ClaimTarget, claimed []string) (*Refusal, error) {
	key, inserted, err := target.Key()
	if err != nil || !inserted || (key == nil) == (claimed == nil) && slices.Equal(key, claimed) {
		return nil, err
	}
	known, err := target.KnowsRows()
	if err != nil || !known {
		return nil, err
	}
	return RefuseOtherKey(state, key, claimed), nil
}

// FullIntoAnother is the note of a state that starts anew because everything is read for a table that its call
// writes to for the first time.
const FullIntoAnother = "--full-refresh: the step writes to another table"

// HolderChange returns the change of the watermark that the holder has made; false if it has not moved it.
func (r StateEntry) HolderChange() (StateChange, bool) {
	return StateChange{Name: r.Name, At: r.MovedAt, By: r.Run, From: r.Found, To: r.Watermark}, !r.Watermark.Equal(r.Found)
}

// FenceNumbers returns the two numbers that the holder's last write may have when a write arrives: the one before
// it, or its own if it is a repetition.
func (w StateWrite) FenceNumbers() (before, again int) { return w.Number - 1, w.Number }

// MovesWatermark reports whether the write may change the watermark: back in any case, otherwise only beyond the
// present one.
func (w StateWrite) MovesWatermark() bool {
	return w.Move != nil && (w.Move.Back || !w.Move.To.IsZero())
}

// MovesTo reports whether a watermark moves from there to c: ordered cursors only move forward, others to any
// different value.
func (c Cursor) MovesTo(there Cursor) bool {
	if !c.isOrdered() || !there.isOrdered() {
		return !c.Equal(there)
	}
	return bytes.Compare(c.Position, there.Position) > 0
}

// isOrdered reports whether the cursor has a position; that of an empty text is empty.
func (c Cursor) isOrdered() bool { return c.Position != nil || c.Value.Data == "" }

// Standing is the relation of a write to the state that it changes.
type Standing int

// The relations of a write to its state.
const (
	StandingNext    Standing = iota + 1 // it is the holder's next write
	StandingApplied                     // it was already applied
	StandingBehind                      // later writes of the holder were already applied
	StandingAhead                       // writes before it are missing
	StandingSet                         // nobody holds the state: a person has set it
	StandingSameRun                     // another call of the same run holds the state
	StandingOther                       // a call of another run holds it
)

// CompareWrite returns how a write relates to the state; its holder is in the form of the keeper.
func (r StateEntry) CompareWrite(write StateWrite) Standing {
	before, again := write.FenceNumbers()
	switch {
	case r.Holder == "":
		return StandingSet
	case r.Holder != write.Holder && r.Run == write.Run:
		return StandingSameRun
	case r.Holder != write.Holder:
		return StandingOther
	case r.Last == before:
		return StandingNext
	case r.Last == again:
		return StandingApplied
	case r.Last > again:
		return StandingBehind
	}
	return StandingAhead
}

// ApplyWrite returns the state after the next write of its holder.
func (r StateEntry) ApplyWrite(write StateWrite, now time.Time) StateEntry {
	if r.Last = write.Number; write.Move != nil {
		r.Rows = int64(write.Move.Rows)
	}
	if write.MovesWatermark() && (write.Move.Back || write.Move.To.MovesTo(r.Watermark)) {
		r.Watermark, r.MovedAt = write.Move.To, now
	}
	return r
}

// UndoWrite returns the state without a write of its holder, whether or not it was applied; after that it cannot be
// applied any more.
func (r StateEntry) UndoWrite(write StateWrite, now time.Time) StateEntry {
	if !r.Watermark.Equal(r.Found) {
		r.Watermark, r.MovedAt = r.Found, now
	}
	r.Last, r.Rows = max(r.Last, write.Number), 0
	return r
}

// Set returns the state as a person sets it, without a holder, and the changes for its history. A forgotten state
// has no watermark.
func (r StateEntry) Set(change StateChange, now time.Time) (next StateEntry, changes []StateChange) {
	if moves, moved := r.HolderChange(); moved {
		changes = append(changes, moves)
	}
	change.At, change.From = now, r.Watermark
	r.Watermark, r.Found, r.MovedAt = change.To, change.To, now
	r.Holder, r.Run, r.Last, r.Rows, r.Table, r.Tables, r.ClaimedAt = "", "", 0, 0, "", nil, time.Time{}
	return r, append(changes, change)
}
