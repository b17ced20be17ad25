package incremental

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/lists"
)

// SourceIdentity identifies the source of a state. A state that has moved belongs to one source. Kept with the
// state.
type SourceIdentity struct {
	CursorPath string     `json:"cursor_path,omitempty"`
	Type       CursorType `json:"type"`
	// Fingerprint is a digest of where the rows come from: the first request's url without its query, its auth, and
	// the fields that use workload or the element.
	Fingerprint string `json:"fingerprint"`
}

// Claim requests to hold a state, which a call does before its first request, until another call claims it. Kept in
// workflow history.
type Claim struct {
	Name   string         `json:"name"`
	Holder string         `json:"holder"` // key of the call; a repeated claim gets the same result
	Run    string         `json:"run"`    // workflow ID of its run, for display
	Source SourceIdentity `json:"source"`
	// Full says that the call reads everything again: a state whose table has no rows then starts anew, while other
	// claims are refused.
	Full bool `json:"full,omitempty"`
	// Tables are the other tables that the call writes to, as named in its playbook, besides the table that the
	// state belongs to. Nil means unknown.
	Tables []string `json:"tables,omitzero"`
	// Inserts says that the call's sink skips rows that were written before, and Key identifies these, as in
	// RowIdentity.
	Inserts bool     `json:"inserts,omitempty"`
	Key     []string `json:"key,omitempty"`
	// Format is the format of the source's cursors, as in Form.
	Format string `json:"format,omitempty"`
}

// CursorForm returns the form of the source's cursors.
func (c Claim) CursorForm() Form { return Form{Type: c.Source.Type, Format: c.Format} }

// ClaimedState is the result of a claim; kept in workflow history.
type ClaimedState struct {
	// Watermark is the watermark when the holder first claimed the state; zero if it has never moved.
	Watermark Cursor `json:"watermark,omitzero"`
	// KnownFrom is the position before which written rows are no longer known; nil if there is none, or if the
	// claim's sink does not insert.
	KnownFrom []byte `json:"known_from,omitempty"`
	// KnownAs is as in RowIdentity; "" if it equals the table's name, or if the claim's sink does not insert.
	KnownAs string `json:"known_as,omitempty"`
	// KnownTo is the end of the known rows; nil if the claim's sink does not insert.
	KnownTo []byte `json:"known_to,omitempty"`
	// Refused says why the call cannot have the state; nil if it has it.
	Refused *Refusal `json:"refused,omitempty"`
}

// Refusal says why a call cannot have a state. It becomes a final error of kind incremental.
type Refusal struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The types of errors of kind incremental.
const (
	// TypeOfAnother means that the state belongs to another source, or to another table.
	TypeOfAnother = "state_of_another"
	// TypeWithoutTable means that the state has moved, but its table was just created or is empty.
	TypeWithoutTable = "state_without_table"
	// TypeMoved means that the writing call does not hold the state any more, or that its write is out of order.
	TypeMoved = "state_moved"
	// TypeOrder means that a row is below those of an earlier page, although the playbook says `row_order: asc`.
	TypeOrder = "order"
	// TypeCursor means that a cursor has another type.
	TypeCursor = "type"
	// TypeMissing means that a row has no cursor.
	TypeMissing = "missing"
	// TypeRows means that a sink does not write exactly one row for each row of the page.
	TypeRows = "rows"
	// TypeConflict means that another run holds the state, with `on_conflict: fail`.
	TypeConflict = "conflict"
	// TypeFull means that Temporal cannot keep a further state of the step.
	TypeFull = "too_many_states"
)

// StateWrite is the effect of a call's write on its state, in the transaction of its rows. The transaction is
// rolled back (TypeMoved) unless Holder holds the state and the number of its last write is Number or the one
// before. Kept in workflow history.
type StateWrite struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Run    string `json:"run,omitempty"` // workflow ID of the call's run
	Number int    `json:"number"`        // number of the call's write to its state, from 1
	// Move is the new watermark; nil leaves it unchanged.
	Move *Move `json:"move,omitempty"`
	// Rows identifies rows that may be read again; nil if the mode overwrites them anyway.
	Rows *RowIdentity `json:"rows,omitempty"`
}

// Move is a new watermark. It is never below the present one, unless Back is set. Kept in workflow history.
type Move struct {
	To   Cursor `json:"to"`
	Back bool   `json:"back,omitempty"` // to the watermark that the call found; To may be zero
	// Rows is the number of rows that the call has written so far, for display.
	Rows int `json:"rows,omitempty"`
}

// RowIdentity says how rows that are read again are recognized. Kept in workflow history.
type RowIdentity struct {
	CursorPath string     `json:"cursor_path"`
	Type       CursorType `json:"type"`
	Format     string     `json:"format,omitempty"` // as in Form
	Key        []string   `json:"key,omitempty"`    // columns, or dotted paths; nil means the whole row
	// Floor is the watermark after the write minus the lag: rows from there on may be read again.
	Floor []byte `json:"floor,omitempty"`
	// Sweep forgets the known rows below Floor, because the call ends with this write and reads nothing again.
	Sweep bool `json:"sweep,omitempty"`
	// Ordered says that the source returns rows in the order of their cursors, so that those of a page are stored
	// together.
	Ordered bool `json:"ordered,omitempty"`
	// Reached is, for an ordered source, the watermark before the write: the first rows of a page may have the
	// cursor of the last rows of the previous page.
	Reached []byte `json:"reached,omitempty"`
	// KnownAs is the name under which the known rows of the table are stored, if the table's name was spelled
	// differently, or if the table has lost them.
	KnownAs string `json:"known_as,omitempty"`
	// KnownTo comes from the claim, and Round counts the restarts since. With them, rows without a key are counted:
	// everything known beyond KnownTo was written in this round. Nil if an older build claimed the state.
	KnownTo []byte `json:"known_to,omitempty"`
	Round   int    `json:"round,omitempty"`
}

// CursorField is the field by which rows are ordered at their source. Kept in workflow history.
type CursorField struct {
	Path   string     `json:"path"`
	Type   CursorType `json:"type"`
	Format string     `json:"format,omitempty"` // as in Form
	// Behind says that the rows at hand are those of a page that has older rows than an earlier page of its call.
	Behind bool `json:"behind,omitempty"`
}

// State is a state as shown to people.
type State struct {
	Name      string         `json:"name"`
	Watermark Cursor         `json:"watermark,omitzero"`
	Source    SourceIdentity `json:"source"`
	Run       string         `json:"run,omitempty"` // the last run that claimed it, which may hold it
	MovedAt   time.Time      `json:"moved_at,omitzero"`
	// ClaimedAt is when Run claimed it; zero if no run has since a person has set it, or if an older build did.
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	Rows      int64     `json:"rows,omitempty"` // number of rows that its last call has written
	// Table is the canonical name of the table that it is kept for; "" if Temporal keeps it, or if a person has set
	// it since.
	Table string `json:"table,omitempty"`
	// Tables are digests of the other tables of its last claim; nil if unknown, for example because a person has
	// set it since.
	Tables []string `json:"tables,omitzero"`
	// Emptied says that the last rows written with it left the table empty.
	Emptied bool `json:"emptied,omitempty"`
	// KnownFrom is ClaimedState.KnownFrom for the sink of the last claim.
	KnownFrom []byte `json:"known_from,omitempty"`
}

// ReadsFrom returns the cursor from which the next call of a step with the lag reads; zero if the state has not
// moved.
func (s State) ReadsFrom(as Form, lag Lag) Cursor {
	return as.NotBelow(as.BeforeLag(s.Watermark, lag), s.KnownFrom)
}

// UsedAt returns when a run or a person last used the state: a claim counts even if it moves nothing. It is zero if that
// is unknown, because an older build claimed the state last.
func (s State) UsedAt() time.Time {
	if s.Run != "" && s.ClaimedAt.IsZero() {
		return time.Time{}
	}
	if s.ClaimedAt.After(s.MovedAt) {
		return s.ClaimedAt
	}
	return s.MovedAt
}

// ListedState returns the state as a Removal names it.
func (s State) ListedState() ListedState {
	return ListedState{Name: s.Name, Run: s.Run, ClaimedAt: s.ClaimedAt, MovedAt: s.MovedAt}
}

// ListedState is a state as it was listed: one that a call has claimed or moved since, or a person has set, is another.
type ListedState struct {
	Name      string    `json:"name"`
	Run       string    `json:"run,omitempty"`
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	MovedAt   time.Time `json:"moved_at,omitzero"`
}

// IsUnchanged reports whether the state is still as it was listed.
func (l ListedState) IsUnchanged(now State) bool {
	return l.Run == now.Run && l.ClaimedAt.Equal(now.ClaimedAt) && l.MovedAt.Equal(now.MovedAt)
}

// Removal is a person's request to forget states whose elements are gone. States that have been used since they were
// listed stay. Kept in workflow history.
type Removal struct {
	States []ListedState `json:"states"`
	By     string        `json:"by"`
	Note   string        `json:"note,omitempty"`
}

// ChangeOf returns the change that forgets one of the states.
func (r Removal) ChangeOf(listed ListedState) StateChange {
	return StateChange{Name: listed.Name, By: r.By, Note: r.Note}
}

// StateChange is one change of a state, in its history.
type StateChange struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	By   string    `json:"by"` // workflow ID of a run, or name of a person
	From Cursor    `json:"from,omitzero"`
	To   Cursor    `json:"to,omitzero"`
	Note string    `json:"note,omitempty"`
}

// RefuseOtherSource returns a refusal if a claim is for another source; otherwise nil. A state that has not moved, or was
// set by a person, does not belong to a source yet.
func RefuseOtherSource(state State, source SourceIdentity) *Refusal {
	known := state.Source
	if state.Watermark.IsZero() || known == (SourceIdentity{}) || known == source {
		return nil
	}
	differs := "rows come from another source: its url, its auth, or a field that uses the workload or the element has changed"
	switch {
	case known.CursorPath != source.CursorPath:
		differs = fmt.Sprintf("its cursor is %s, and the step's is %s", known.cursorPath(), source.cursorPath())
	case known.Type != source.Type:
		differs = fmt.Sprintf("its cursor has type %s, and the step's has type %s", known.Type, source.Type)
	}
	last := ""
	if state.Run != "" { // a person has not set it since
		last = fmt.Sprintf(", last of run %q,", state.Run)
	}
	return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
		"the state %q%s belongs to another source (%s). Set `state` for the step, for example as a template "+
			"of what differs, or forget this state with `starter state reset`", state.Name, last, differs)}
}

// TableDigests returns digests of the tables, as the state stores them; nil if unknown.
func (c Claim) TableDigests() []string {
	if c.Tables == nil {
		return nil
	}
	return lists.Map(c.Tables, digestText)
}

// WithoutTables returns a refusal if a claim writes to a table that earlier calls did not write to, besides the one
// that keeps the state: it would lack the rows up to the watermark. It returns nil for other claims.
func WithoutTables(state State, claim Claim) *Refusal {
	if state.Watermark.IsZero() || state.Tables == nil {
		return nil
	}
	for i, digest := range claim.TableDigests() {
		if slices.Contains(state.Tables, digest) {
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

// Table is the destination table of a call.
type Table struct {
	// Name is the canonical name of the table, the same for each spelling; Shown is the author's spelling.
	Name, Shown    string
	Exists, HasRow bool
}

// LacksRows reports whether a table lacks the rows up to the watermark: the state is kept for another table, or
// others have emptied it.
func (s State) LacksRows(table Table) bool {
	return s.isOfAnother(table) || !table.HasRow && !s.Emptied
}

func (s State) isOfAnother(table Table) bool { return s.Table != "" && s.Table != table.Name }

// WithoutRows returns a refusal if a claim's table lacks the rows up to the watermark; otherwise nil.
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

// WithoutRowsBelow returns a refusal if a claim's child table had rows and is empty now; otherwise nil.
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

// RefuseOtherKey returns the refusal of a claim whose key identifies rows differently from the known rows of the
// state.
func RefuseOtherKey(state string, former, claimed []string) *Refusal {
	return &Refusal{Type: TypeOfAnother, Message: fmt.Sprintf(
		"the state %q identifies rows by %s, and the step by %s: rows that are read again would be inserted twice. Use the former key, "+
			"or mode: upsert. If rows may be inserted twice, accept the new key by setting the state to its value with `starter state set`",
		state, shownKey(former), shownKey(claimed))}
}

func shownKey(key []string) string {
	if len(key) == 0 {
		return "the whole row"
	}
	return "key " + strings.Join(key, ", ")
}

func (s SourceIdentity) cursorPath() string { return cmp.Or(s.CursorPath, "a token") }
