package playbook

import (
	"reprise/interpreter/incremental"
	"reprise/interpreter/source"
)

// Incremental is a step's incremental section: what it keeps between runs.
type Incremental struct {
	Pos    source.Position
	Words  Words // keys the author wrote
	Values Words // places of their values
	// CursorPath is dotted, in each row that a page contributes. Token is in its place for
	// sources that give a token; nil without one.
	CursorPath string
	Token      *Node
	// InitialValue is nil where a Token has none.
	InitialValue any
	Type         incremental.CursorType
	Lag          incremental.Lag
	OpenStart    bool // range_start: open
	Ascending    bool // row_order: asc
	OnMissing    OnMissing
	Key          []string // nil: the sink's
	State        *Node    // nil: the default name
	OnConflict   OnConflict
}

// OnMissing says what becomes of rows without a cursor.
type OnMissing string

// The choices of on_missing; the first is the default.
const (
	MissingFail    OnMissing = "fail"
	MissingInclude OnMissing = "include"
	MissingExclude OnMissing = "exclude"
)

// Initial is the cursor from which a step reads that has no state yet; zero where it reads
// from nothing, by a token.
func (i *Incremental) Initial() incremental.Cursor {
	if i.InitialValue == nil {
		return incremental.Cursor{}
	}
	initial, err := incremental.Parse(i.Type, i.InitialValue)
	if err != nil {
		return incremental.Cursor{} // validation has refused it
	}
	return initial
}
