package incremental

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/lists"
)

// SourceIdentity is what the state of a step is about. A state that has moved belongs to one source.
// Kept with the state.
type SourceIdentity struct {
	CursorPath string     `json:"cursor_path,omitempty"`
	Type       CursorType `json:"type"`
	// Fingerprint is a digest of where the rows come from: the first request's url without its
	// query, its auth, and the fields that name workload or the element.
	Fingerprint string `json:"fingerprint"`
}

// Claim is what a call asks of the state before its first request: to hold it, until
// another call claims it. Kept in workflow history.
type Claim struct {
	Name   string         `json:"name"`
	Holder string         `json:"holder"` // key of the call; one that claims again gets what it got
	Run    string         `json:"run"`    // workflow ID of its run, for people
	Source SourceIdentity `json:"source"`
	// Full says that the call reads everything again: a state whose table has no rows begins
	// anew with it, where another claim is refused.
	Full bool `json:"full,omitempty"`
	// Tables are the other tables that the call writes to, as its playbook names them, beside
	// the table that the state belongs to. Nil means that they are not known.
	Tables []string `json:"tables,omitzero"`
	// Inserts says that the call's sink skips rows that were written before, and Key identifies those, as in
	// RowIdentity.
	Inserts bool     `json:"inserts,omitempty"`
	Key     []string `json:"key,omitempty"`
	// Format is how the cursors of the source are written, as in Form.
	Format string `json:"format,omitempty"`
}

// CursorForm is how the cursors of the source are written.
func (c Claim) CursorForm() Form { return Form{Type: c.Source.Type, Format: c.Format} }

// ClaimedState is the state that a call has claimed; kept in workflow history.
type ClaimedState struct {
	// Watermark is the state's when the holder claimed it first; zero for one that has not
	// moved.
	Watermark Cursor `json:"watermark,omitzero"`
	// KnownFrom is the position before which written rows are no longer remembered; nil if there is none, or if the
	// claim's sink does not insert.
	KnownFrom []byte `json:"known_from,omitempty"`
	// KnownAs is as in RowIdentity; "" if it is the table's name, or if the claim's sink does not insert.
	KnownAs string `json:"known_as,omitempty"`
	// KnownTo is the end of the rows that are known; nil for a claim whose sink does not insert.
	KnownTo []byte `json:"known_to,omitempty"`
	// Refused says why the call cannot have the state; nil if it has it.
	Refused *Refusal `json:"refused,omitempty"`
}

// Refusal is why a call cannot have a state. It becomes a final error of kind incremental.
type Refusal struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The types of errors of kind incremental.
const (
	// TypeOfAnother is a state that belongs to another source, or to another table.
	TypeOfAnother = "state_of_another"
	// TypeWithoutTable is a state that has moved whose table was just made or is empty.
	TypeWithoutTable = "state_without_table"
	// TypeMoved is a write of a call that holds the state no longer, or that comes out of turn.
	TypeMoved = "state_moved"
	// TypeOrder is a row below an earlier page's, of a source that promised `row_order: asc`.
	TypeOrder = "order"
	// TypeCursor is a cursor of another type.
	TypeCursor = "type"
	// TypeMissing is a row without a cursor.
	TypeMissing = "missing"
	// TypeRows is a write of a sink that makes other rows of a page's, and not one of each.
	TypeRows = "rows"
	// TypeConflict is a state that another run holds, with `on_conflict: fail`.
	TypeConflict = "conflict"
	// TypeFull is a state more than Temporal keeps of a step.
	TypeFull = "too_many_states"
)

// StateWrite is what a write of a call does to its state, in the transaction of its rows: it is
// undone as a whole (TypeMoved) unless Holder holds the state and the number of its last
// write is Number or the one before. Kept in workflow history.
type StateWrite struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Run    string `json:"run,omitempty"` // workflow ID of the call's
	Number int    `json:"number"`        // of the call's writes to its state, from 1
	// Move is where the watermark goes; nil leaves it where it is.
	Move *Move `json:"move,omitempty"`
	// Rows identifies rows that may be read again; nil if the mode overwrites them anyway.
	Rows *RowIdentity `json:"rows,omitempty"`
}

// Move is a new watermark. It is never below the one that is there, unless Back says so.
// Kept in workflow history.
type Move struct {
	To   Cursor `json:"to"`
	Back bool   `json:"back,omitempty"` // to where the call found it; To may be zero
	// Rows is how many rows the call has written so far, for people.
	Rows int `json:"rows,omitempty"`
}

// RowIdentity says how rows are distinguished that a source gives again. Kept in workflow history.
type RowIdentity struct {
	CursorPath string     `json:"cursor_path"`
	Type       CursorType `json:"type"`
	Format     string     `json:"format,omitempty"` // that of Form
	Key        []string   `json:"key,omitempty"`    // columns, or dotted paths; nil is the whole row
	// Floor is the watermark after the write minus the lag: rows from there on may be read
	// again.
	Floor []byte `json:"floor,omitempty"`
	// Sweep forgets the rows below Floor: the call ends with this write, and reads nothing again.
	Sweep bool `json:"sweep,omitempty"`
	// Ordered says that the source gives rows in the order of their cursors, so that those of a page are kept together.
	Ordered bool `json:"ordered,omitempty"`
	// Reached is the watermark before the write, of a source with such an order: the first rows of a page may have the cursor
	// of the last ones of the page before.
	Reached []byte `json:"reached,omitempty"`
	// KnownAs is the name under which the table had the state's known rows, where it was spelled differently, or has lost them.
	KnownAs string `json:"known_as,omitempty"`
	// KnownTo comes from the claim, and Round counts the restarts since. With them, rows without a key are counted:
	// everything known past KnownTo was written by this round. Nil for a call claimed by an earlier build.
	KnownTo []byte `json:"known_to,omitempty"`
	Round   int    `json:"round,omitempty"`
}

// CursorField is what rows are ordered by at their source. Kept in workflow history.
type CursorField struct {
	Path   string     `json:"path"`
	Type   CursorType `json:"type"`
	Format string     `json:"format,omitempty"` // that of Form
}

// State is a state as people see it.
type State struct {
	Name      string         `json:"name"`
	Watermark Cursor         `json:"watermark,omitzero"`
	Source    SourceIdentity `json:"source"`
	Run       string         `json:"run,omitempty"` // that claimed it last; it may hold it
	MovedAt   time.Time      `json:"moved_at,omitzero"`
	Rows      int64          `json:"rows,omitempty"` // that its last call has written
	// Table is the table that it is kept for, as its database names it; "" of one that Temporal keeps, or a person has set since.
	Table string `json:"table,omitempty"`
	// Tables are digests of those that its last claim names beside that one; nil is not known, as of one that a person has set since.
	Tables []string `json:"tables,omitzero"`
	// Emptied says that the last rows that were written with it have left the table without any.
	Emptied bool `json:"emptied,omitempty"`
	// KnownFrom is as in Claimed, for the sink of the last claim.
	KnownFrom []byte `json:"known_from,omitempty"`
}

// ReadsFrom is where the next call of a step with the lag reads from; zero for a state that has not moved.
func (s State) ReadsFrom(as Form, lag Lag) Cursor {
	return as.NotBelow(as.Before(s.Watermark, lag), s.KnownFrom)
}

// StateChange is one change of a state, in its history.
type StateChange struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	By   string    `json:"by"` // workflow ID of a run, or a person
	From Cursor    `json:"from,omitzero"`
	To   Cursor    `json:"to,omitzero"`
	Note string    `json:"note,omitempty"`
}

// OfAnother is why a claim of another source is refused, nil for one that is not. A state that
// has not moved, or was set by a person, belongs to no source yet.
func OfAnother(state State, source SourceIdentity) *Refusal {
	kept := state.Source
	if state.Watermark.IsZero() || kept == (SourceIdentity{}) || kept == source {
		return nil
	}
	differs := "rows come from another source: its url, its auth, or a field that uses the workload or the element has changed"
	switch {
	case kept.CursorPath != source.CursorPath:
		differs = fmt.Sprintf("its cursor is %s, and the step's is %s", kept.cursorPath(), source.cursorPath())
	case kept.Type != source.Type:
		differs = fmt.Sprintf("its cursor has type %s, and the step's has type %s", kept.Type, source.Type)
	}
	last := ""
	if state.Run != "" { // or a person has set it since
		last = fmt.Sprintf(", last of run %q,", state.Run)
	}
	return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
		"the state %q%s belongs to another source (%s). Set `state` for the step, for example as a template "+
			"of what differs, or forget this state with `starter state reset`", state.Name, last, differs)}
}

// TableDigests returns digests of the tables, as the state stores them; nil if they are not
// known.
func (c Claim) TableDigests() []string {
	if c.Tables == nil {
		return nil
	}
	return lists.Map(c.Tables, digestText)
}

// WithoutTables refuses a claim that writes to a table that the calls before did not write to, besides the one that
// keeps the state: rows up to the watermark would be missing there. It is nil for other claims.
func WithoutTables(state State, claim Claim) *Refusal {
	if state.Watermark.IsZero() || state.Tables == nil {
		return nil
	}
	for i, kept := range claim.TableDigests() {
		if slices.Contains(state.Tables, kept) {
			continue
		}
		return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
			"the state %q has moved to %s, and the previous call did not write to table %s: earlier rows would never be written there. Read from "+
				"the beginning with `starter run --full-refresh` if no sink inserts, or forget the state with `starter state reset`. If the table "+
				"has these rows, or does not need them, accept that by setting the state to its value with `starter state set`",
			state.Name, state.Watermark.Text(), claim.Tables[i])}
	}
	return nil
}

// Table is the table that a call writes to, as its database has it.
type Table struct {
	// Name is the same for each spelling of the table, which is Shown as the author has it.
	Name, Shown    string
	Exists, HasRow bool
}

// LacksRows reports whether a table lacks the rows up to the watermark: it is not the one that the state is kept for, or others have emptied it.
func (s State) LacksRows(table Table) bool {
	return s.isOfAnother(table) || !table.HasRow && !s.Emptied
}

func (s State) isOfAnother(table Table) bool { return s.Table != "" && s.Table != table.Name }

// WithoutRows is why a claim is refused whose table lacks the rows up to the watermark, nil for one that has them.
func WithoutRows(state State, table Table) *Refusal {
	switch {
	case state.Watermark.IsZero() || !state.LacksRows(table):
		return nil
	case state.isOfAnother(table):
		return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
			"the state %q belongs to table %s, and the sink writes to %s: rows up to its watermark, %s, would never be written there. Read from the "+
				"beginning with `starter run --full-refresh` if the sink does not insert, or forget the state with `starter state reset`. If the table "+
				"was renamed, or has these rows, accept that by setting the state to its value with `starter state set`",
			state.Name, state.Table, table.Name, state.Watermark.Text())}
	}
	return withoutRows(state, table)
}

// WithoutRowsBelow is why a claim is refused whose table of children has had rows and has none, nil for one that has some.
func WithoutRowsBelow(state State, table Table) *Refusal {
	if state.Watermark.IsZero() || table.HasRow {
		return nil
	}
	return withoutRows(state, table)
}

func withoutRows(state State, table Table) *Refusal {
	lacks := "has no rows"
	if !table.Exists {
		lacks = "does not exist"
	}
	return &Refusal{Type: TypeWithoutTable, Message: fmt.Sprintf(
		"the state %q has moved to %s, and table %q %s: earlier rows would never be read again. Forget the state "+
			"with `starter state reset`, or read from the beginning with `starter run --full-refresh` if the sink does not insert; "+
			"it then starts at initial_value",
		state.Name, state.Watermark.Text(), table.Shown, lacks)}
}

// OfAnotherKey is why a claim is refused whose key distinguishes rows in another way than those that the state knows.
func OfAnotherKey(state string, kept, claimed []string) *Refusal {
	return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
		"the state %q identifies rows by %s, and the step by %s: rows that are read again would be inserted twice. Use the former key, "+
			"or mode: upsert. If rows may be inserted twice, accept the new key by setting the state to its value with `starter state set`",
		state, shownKey(kept), shownKey(claimed))}
}

func shownKey(key []string) string {
	if len(key) == 0 {
		return "the whole row"
	}
	return "key " + strings.Join(key, ", ")
}

func (s SourceIdentity) cursorPath() string { return cmp.Or(s.CursorPath, "a token") }
