package sqltool

import (
	"bytes"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// seenChunk is how many rows are looked up at once.
const seenChunk = 10_000

// planState reads what the write does to a state. Of rows that are told apart and come twice
// the first is written.
func (w *Write) planState(in interpreter.ToolInput) error {
	w.State = in.State
	if w.State == nil || w.State.Rows == nil || w.upsert {
		return nil
	}
	pages := w.contributed(in)
	if len(pages) != len(w.Rows) {
		return FinalError(incremental.TypeRows, "the sink of table %q makes %d rows of the %d of its page: which of them come again cannot be told. "+
			"Write a row for each, in the same order, or use mode upsert", w.Shown, len(w.Rows), len(pages))
	}
	w.known = make([]incremental.KnownRow, len(pages))
	twice := make([]bool, len(pages))
	seen := make(map[string]bool, len(pages))
	for i, row := range pages {
		w.known[i] = w.State.Rows.Of(row)
		hash := string(w.known[i].Hash)
		twice[i], seen[hash] = seen[hash], true
	}
	w.leaveOut(twice)
	return nil
}

// contributed are the rows of the page that is written.
func (w *Write) contributed(in interpreter.ToolInput) []any {
	if in.Args != nil && in.Result != nil {
		return incremental.Contributed(in.Result.Data)
	}
	return in.Rows()
}

// leaveOut drops the rows that are marked.
func (w *Write) leaveOut(marked []bool) {
	if !slices.Contains(marked, true) {
		return
	}
	var kept Write
	for i, row := range w.Rows {
		if !marked[i] {
			kept.Rows = append(kept.Rows, row)
			kept.known = append(kept.known, w.known[i])
			kept.numbers = append(kept.numbers, w.Number(i))
		}
	}
	w.Rows, w.known, w.numbers = kept.Rows, kept.known, kept.numbers
}

// Number is the number of a row among those that were to be written, from 1.
func (w *Write) Number(i int) int {
	if w.numbers == nil {
		return i + 1
	}
	return w.numbers[i]
}

// Unseen is the write without rows that are known, by their hashes.
func (w *Write) Unseen(hashes map[string]bool) *Write {
	marked := make([]bool, len(w.Rows))
	for i, row := range w.known {
		marked[i] = hashes[string(row.Hash)]
	}
	unseen := *w
	unseen.leaveOut(marked)
	return &unseen
}

// WithoutState is the write as far as the ledger knows it: it moves no state.
func (w *Write) WithoutState() *Write {
	without := *w
	without.State, without.known = nil, nil
	return &without
}

// Seen is a chunk of what a write looks up among the rows that are known, and adds to them.
type Seen struct {
	State string
	// Kept are the hashes of rows that may come again, and Positions those of their cursors; a
	// row without a cursor has no bytes.
	Kept, Positions [][]byte
	// Below are the rows below Floor.
	Below, BelowPositions [][]byte
	// Floor is the position below which no row comes again; nil is none.
	Floor []byte
	// Sweep says that those below Floor are to be dropped, once all have been looked up.
	Sweep bool
}

// Seen are the chunks of a write, at least one where rows are told apart at all.
func (w *Write) Seen() (chunks []Seen) {
	if w.State == nil || w.State.Rows == nil || w.upsert {
		return nil
	}
	for rows := w.known; ; {
		used := min(len(rows), seenChunk)
		chunk := newSeen(w.State, rows[:used])
		rows = rows[used:]
		chunk.Sweep = len(rows) == 0 && w.State.Rows.Sweep
		chunks = append(chunks, chunk)
		if len(rows) == 0 {
			return chunks
		}
	}
}

func newSeen(w *incremental.Write, rows []incremental.KnownRow) Seen {
	seen := Seen{State: w.Name, Floor: w.Rows.Floor}
	for _, row := range rows {
		if row.Position != nil && bytes.Compare(row.Position, seen.Floor) < 0 {
			seen.Below, seen.BelowPositions = append(seen.Below, row.Hash), append(seen.BelowPositions, row.Position)
		} else {
			seen.Kept, seen.Positions = append(seen.Kept, row.Hash), append(seen.Positions, notNil(row.Position))
		}
	}
	return seen
}

// Target is the table of a call that writes nothing yet.
func Target(in interpreter.ToolInput) (*Write, error) {
	shown, err := tool.RequiredText(in, "table")
	if err != nil {
		return nil, err
	}
	w := &Write{Shown: shown}
	if w.Table, err = splitName(shown); err != nil {
		return nil, tool.ConfigErrorf("step %q: table is %q; write a name, or schema.name", in.Step, shown)
	}
	return w, nil
}
