package incremental

import (
	"errors"
	"fmt"
	"slices"
)

// MaxName bounds the name of a state, in bytes: it is part of workflow IDs and of keys of ledgers.
const MaxName = 500

// Check returns an error for a claim that no call can have made; clients can send any.
func (c Claim) Check() error {
	switch {
	case c.Holder == "" || len(c.Holder) > maxText || len(c.Run) > maxText:
		return fmt.Errorf("a holder of %d bytes, of a run of %d", len(c.Holder), len(c.Run))
	case len(c.Source.CursorPath) > maxText || len(c.Source.Fingerprint) > maxText:
		return fmt.Errorf("a source of %d and %d bytes", len(c.Source.CursorPath), len(c.Source.Fingerprint))
	case len(c.Tables) > maxTables || slices.ContainsFunc(c.Tables, func(table string) bool { return len(table) > maxText }):
		return fmt.Errorf("%d tables, or one of more than %d bytes", len(c.Tables), maxText)
	case c.Source.Type != Token && !slices.Contains(Types, string(c.Source.Type)):
		return fmt.Errorf("a cursor of type %q", c.Source.Type)
	}
	return checkName(c.Name)
}

// Bounds of what clients can send.
const (
	// maxText bounds each text of a claim, in bytes. Clients can send claims, and the workflow of a state keeps
	// them in every history.
	maxText = 1000
	// maxCursor bounds a cursor, in bytes: a token is longer than other texts of a claim.
	maxCursor = 8000
	// maxMoves bounds the moves of one command, all of which are made within one workflow task.
	maxMoves = 10_000
	// MaxRemoved bounds the states of a Removal: all of them are removed within one workflow task or transaction, which
	// keeps others waiting.
	MaxRemoved = 500
	// maxTables bounds the tables of a claim, which the workflow of a state keeps.
	maxTables = 1000
)

func checkName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("the name of a state has %d bytes; it may have 1 to %d", len(name), MaxName)
	}
	return nil
}

// CheckWrite returns an error for a write that no call makes.
func (w StateWrite) CheckWrite() error {
	switch {
	case w.Holder == "" || len(w.Holder) > maxText:
		return fmt.Errorf("a holder of %d bytes", len(w.Holder))
	case w.Number < 1:
		return fmt.Errorf("a write with the number %d", w.Number)
	case w.Move == nil:
		return checkName(w.Name)
	case w.Move.Rows < 0:
		return fmt.Errorf("a write of %d rows", w.Move.Rows)
	}
	if err := w.Move.To.checkCursor(); err != nil {
		return err
	}
	return checkName(w.Name)
}

func (c Cursor) checkCursor() error {
	if size := c.byteWeight(); size > maxCursor {
		return fmt.Errorf("a cursor of %d bytes; it may have %d", size, maxCursor)
	}
	return nil
}

// CheckWrites returns an error for a list of writes that no call makes.
func CheckWrites(writes []StateWrite) error {
	if len(writes) == 0 || len(writes) > maxMoves {
		return fmt.Errorf("%d writes at once; 1 to %d go together", len(writes), maxMoves)
	}
	for _, write := range writes {
		if err := write.CheckWrite(); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error for a change that a person cannot make.
func (c StateChange) Check() error {
	if c.By == "" || len(c.By) > maxText || len(c.Note) > maxText {
		return errors.New("a change needs somebody who makes it, and a note of at most 1,000 bytes")
	}
	if err := c.To.checkCursor(); err != nil {
		return err
	}
	return checkName(c.Name)
}

// Check returns an error for a removal that no command makes.
func (r Removal) Check() error {
	if len(r.States) == 0 || len(r.States) > MaxRemoved {
		return fmt.Errorf("%d states to remove at once; 1 to %d go together", len(r.States), MaxRemoved)
	}
	for _, listed := range r.States {
		if err := r.ChangeOf(listed).Check(); err != nil {
			return err
		}
	}
	return nil
}
