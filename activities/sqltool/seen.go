package sqltool

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// seenChunk is how many rows are looked up at once.
const seenChunk = 10_000

// planState decides what the write does to a state. Of rows that occur twice, the first is
// written.
func (w *TableWrite) planState(in interpreter.ToolInput) error {
	w.State = in.State
	if w.State == nil || w.State.Rows == nil || w.upsert {
		return nil
	}
	pages, paired := w.pairedWith(in.ContributedRows())
	if !paired {
		return FinalError(incremental.TypeRows, "the sink of table %q makes %d rows out of the %d of its page, so rows that were read before cannot be recognized. "+
			"Write one row for each in the same order, drop some and keep the others unchanged (`args: \"{{ filter(result, …) }}\"`), or use mode upsert",
			w.Shown, len(w.Rows), len(pages))
	}
	if err := w.checkKeys(pages, in.Args != nil); err != nil {
		return err
	}
	w.known = make([][]byte, len(pages))
	encode := w.knownRowEncoder(w.Shown, len(pages))
	increasing := true // as the rows of an ordered source are, unless they share their cursors
	for i, row := range w.State.Rows.IdentifyRows(pages, func(i int) any { return w.Rows[i] }) {
		w.known[i] = encode(row)
		increasing = increasing && (i == 0 || bytes.Compare(w.known[i-1], w.known[i]) < 0)
	}
	switch w.inOrder = increasing; {
	case w.State.Rows.IsCounted():
		w.firsts = slices.Clone(w.known)
		w.numberEqual(nil)
	case !increasing:
		*w = *w.withoutRows(repeatedRows(w.known))
	}
	return nil
}

// pairedWith matches the rows of the write with the rows of the page from which they were made: each of them or, if
// args drop some, the matching ones.
func (w *TableWrite) pairedWith(pages []any) (rows []any, paired bool) {
	if len(pages) <= len(w.Rows) {
		return pages, len(pages) == len(w.Rows)
	}
	for _, row := range pages {
		if next := len(rows); next < len(w.Rows) && reflect.DeepEqual(row, any(w.Rows[next])) {
			rows = append(rows, row)
		}
	}
	if len(rows) < len(w.Rows) {
		return pages, false
	}
	return rows, true
}

// knownTo returns the end of the write's rows that have a cursor; nil where none has.
func (k *stateRows) knownTo() (end []byte) {
	for _, row := range slices.Backward(k.known) {
		if row[stateBytes] != withCursor {
			continue
		}
		if position := positionOf(row); bytes.Compare(position, end) > 0 {
			end = position
		}
		if k.inOrder && ordersKnownRows(k.State.Rows.Type) {
			break
		}
	}
	return end
}

// repeatedRows marks the rows that are among those before them.
func repeatedRows(rows [][]byte) []bool {
	twice, seen := make([]bool, len(rows)), make(map[string]bool, len(rows))
	for i, row := range rows {
		twice[i], seen[string(row)] = seen[string(row)], true
	}
	return twice
}

// checkKeys refuses rows that could be mistaken for others: rows without the key, and rows that
// args have reordered.
func (w *TableWrite) checkKeys(pages []any, given bool) error {
	for i, row := range pages {
		if column, lacks := w.State.Rows.LacksColumn(row); lacks {
			return FinalError(incremental.TypeRows, "row %d of the page has no %q, the key by which table %q recognizes rows that are read again. "+
				"Set `key` in incremental to columns that each row has, before args change it", i+1, column, w.Shown)
		}
	}
	if given && w.isReordered(pages) {
		return FinalError(incremental.TypeRows, "the args of table %q have the rows of the page in another order, so rows that were read before cannot be recognized. "+
			"Write one row for each in the same order, or use mode upsert", w.Shown)
	}
	return nil
}

// isReordered reports whether the rows are those of the page in another order, compared by the
// columns of the key that they have.
func (w *TableWrite) isReordered(pages []any) bool {
	read, written := make([]string, len(pages)), make([]string, len(pages))
	for i, row := range pages {
		read[i], written[i] = w.State.Rows.KeyText(row), w.State.Rows.KeyText(w.Rows[i])
	}
	if slices.Equal(read, written) {
		return false
	}
	slices.Sort(read)
	slices.Sort(written)
	return slices.Equal(read, written)
}

// The known rows of all states are stored in one column, sorted by state, then by position:
// half the work of three columns. A position is preceded by the first bytes of a hash of the
// state's name, and a byte that says whether the rows have a cursor.
const (
	stateBytes         = 8
	withoutCursor byte = 0
	withCursor    byte = 1
	behindRows    byte = 2 // and where the counts of rows begin that a call has met, see counted.go
	behindCounts  byte = 3
)

// statePrefix returns where the known rows of a state begin: the rows without a cursor, the rows with one, or the
// rows of the next state.
func statePrefix(name string, begin byte) []byte {
	return append(expression.DigestBytes(name)[:stateBytes:stateBytes], begin)
}

// belowRows is where known rows with this cursor position or a larger one begin.
func belowRows(name string, position []byte) []byte {
	return append(statePrefix(name, withCursor), position...)
}

// knownRowEncoder returns the function that computes what the state records of each of count rows. It distinguishes a row
// from the same row of another table: a call may write to several tables of the database that stores its state.
func (k *stateRows) knownRowEncoder(shown string, count int) func(incremental.KnownRow) []byte {
	table, without, with := expression.DigestBytes(cmp.Or(k.State.Rows.KnownAs, shown)), statePrefix(k.State.Name, withoutCursor), statePrefix(k.State.Name, withCursor)
	const usual = 16 // bytes of a position
	all := make([]byte, 0, count*(len(with)+usual+1+incremental.HashLength))
	return func(row incremental.KnownRow) []byte {
		known := all[len(all):]
		if row.Position == nil {
			known = append(known, without...)
		} else {
			const behindText byte = 0 // or "a" with its hash could be behind "ab"
			known = append(append(append(known, with...), row.Position...), behindText)
		}
		for i, b := range row.Hash {
			known = append(known, b^table[i])
		}
		if len(all)+len(known) <= cap(all) {
			all = all[:len(all)+len(known)]
		}
		return slices.Clip(known)
	}
}

// OriginalNumber returns the number of a row in the original write, from 1.
func (s *rowSet) OriginalNumber(i int) int {
	if s.numbers == nil {
		return i + 1
	}
	return s.numbers[i]
}

// WithoutKnown returns the write without rows that are known.
func (w *TableWrite) WithoutKnown(known map[string]bool) *TableWrite {
	return w.withoutRows(lists.Map(w.known, func(row []byte) bool { return known[string(row)] }))
}

// WithoutState returns the write without moving a state; only the ledger applies.
func (w *TableWrite) WithoutState() *TableWrite {
	without := *w
	without.State, without.known, without.firsts, without.counts = nil, nil, nil, nil
	return &without
}

// RowLookup is a chunk of rows that a write looks up among the known rows, and adds to them.
type RowLookup struct {
	State string
	// Recurring are rows that may be read again; Below are rows below Floor, which cannot.
	Recurring, Below [][]byte
	Floor            []byte
	// From and To are the least and largest positions of rows with a cursor, nil without any.
	From, To []byte
	// Tied are hashes of the rows at From if the page before has ended at that position: its block may contain some
	// of them.
	Tied [][]byte
	// Block stores most of Recurring as one value, nil if that does not pay. Rest are the remaining ones.
	Block *Block
	Rest  [][]byte
	// Sweep says that known rows below Floor are to be deleted, once all chunks have been
	// looked up.
	Sweep bool
	// Follows says that all rows with a cursor are past what the call had reached, because its source is ordered.
	// Then most of what the state knows is before From.
	Follows bool
	// reached is the position that the call has reached, nil before its first row.
	reached []byte
}

// LookupChunks returns the chunks of a write, at least one where rows are distinguished at all.
func (k *stateRows) LookupChunks() (chunks []RowLookup) {
	if k.State == nil || k.State.Rows == nil || k.unneeded {
		return nil
	}
	if k.chunks != nil {
		return k.chunks
	}
	sorted := k.known
	if !k.inOrder { // in the order of the index many rows are much quicker to add
		sorted = slices.SortedFunc(slices.Values(k.known), bytes.Compare)
	}
	for rows := sorted; ; {
		used := min(len(rows), seenChunk)
		chunk := newSeen(k.State, rows[:used])
		if k.State.Rows.Ordered && len(sorted) <= seenChunk {
			chunk.makeBlock(k.State.Rows)
		}
		rows = rows[used:]
		chunk.Sweep = len(rows) == 0 && k.State.Rows.Sweep
		chunks = append(chunks, chunk)
		if len(rows) == 0 {
			return chunks
		}
	}
}

// newSeen makes a chunk of sorted rows: first those without a cursor, then those below the floor.
func newSeen(w *incremental.StateWrite, rows [][]byte) RowLookup {
	seen := RowLookup{State: w.Name, Floor: belowRows(w.Name, w.Rows.Floor)}
	first, _ := slices.BinarySearchFunc(rows, statePrefix(w.Name, withCursor), bytes.Compare)
	floor, _ := slices.BinarySearchFunc(rows, seen.Floor, bytes.Compare)
	seen.Below, seen.Recurring = rows[first:floor], rows[floor:]
	if first > 0 {
		seen.Recurring = slices.Concat(rows[:first], rows[floor:])
	}
	dated := rows[first:]
	if len(dated) > 1 && ordersKnownRows(w.Rows.Type) {
		dated = [][]byte{dated[0], dated[len(dated)-1]}
	}
	for _, row := range dated {
		seen.extendTo(positionOf(row))
	}
	if w.Rows.Reached != nil {
		seen.reached = append(belowRows(w.Name, w.Rows.Reached), 0)
	}
	seen.Follows = w.Rows.Ordered && bytes.Compare(seen.From, seen.reached) > 0
	return seen
}

// extendTo extends the positions of a chunk to include that of a row.
func (s *RowLookup) extendTo(position []byte) {
	if s.From == nil || bytes.Compare(position, s.From) < 0 {
		s.From = position
	}
	if s.To == nil || bytes.Compare(position, s.To) > 0 {
		s.To = position
	}
}

// positionOf returns the beginning of a known row, up to the end of its position.
func positionOf(row []byte) []byte {
	end := len(row) - incremental.HashLength
	return row[:end:end]
}

// Block stores rows of one page by their hashes only. Blocks of a state have no position in common: rows at the last
// position of the page before are stored individually.
type Block struct {
	First, Last []byte // positions
	Behind      []byte // is larger than all known rows with the position Last
	Hashes      []byte
}

// leastBlock is from how many rows on a block pays.
const leastBlock = 16

// makeBlock puts rows that may be read again into a block. Pages with only one position get none, because later pages
// may have the same position.
func (s *RowLookup) makeBlock(of *incremental.RowIdentity) {
	s.findTied()
	hashes := make([]byte, 0, len(s.Recurring)*incremental.HashLength)
	rest, block := [][]byte(nil), &Block{}
	for _, row := range s.Recurring {
		position := positionOf(row)
		switch {
		case row[stateBytes] != withCursor, len(s.Tied) > 0 && bytes.Equal(position, s.From):
			rest = append(rest, row)
			continue
		case !ordersKnownRows(of.Type) && hasNUL(position):
			return
		case block.First == nil:
			block.First = position
		}
		block.Last, hashes = position, append(hashes, hashIn(row)...)
	}
	if len(hashes) < leastBlock*incremental.HashLength || bytes.Equal(block.First, block.Last) {
		return
	}
	block.Behind, block.Hashes = slices.Clone(block.Last), hashes
	block.Behind[len(block.Behind)-1]++ // a position ends with 0
	s.Block, s.Rest = block, rest
}

// findTied finds the rows that the block of the page before may contain.
func (s *RowLookup) findTied() {
	if s.reached == nil || !bytes.Equal(s.From, s.reached) {
		return
	}
	for _, rows := range [][][]byte{s.Recurring, s.Below} {
		for _, row := range rows {
			if row[stateBytes] == withCursor && bytes.Equal(positionOf(row), s.From) {
				s.Tied = append(s.Tied, hashIn(row))
			}
		}
	}
}

// ordersKnownRows reports whether known rows are sorted by position. Positions end with a NUL, which texts may
// contain too, so rows with such texts may be out of order.
func ordersKnownRows(of incremental.CursorType) bool { return of != incremental.Text }

// hasNUL reports whether the text of a position has a NUL.
func hasNUL(position []byte) bool {
	return bytes.IndexByte(position[stateBytes+1:], 0) < len(position)-stateBytes-2
}

// hashIn returns the end of a known row.
func hashIn(row []byte) []byte { return row[len(row)-incremental.HashLength:] }

// InBlocks adds to known the rows of the chunk that are in blocks.
func (s *RowLookup) InBlocks(hashes []byte, known map[string]bool) {
	has := make(map[string]bool, len(hashes)/incremental.HashLength)
	for one := range slices.Chunk(hashes, incremental.HashLength) {
		has[string(one)] = true
	}
	for _, rows := range [][][]byte{s.Recurring, s.Below} {
		for _, row := range rows {
			if row[stateBytes] == withCursor && has[string(hashIn(row))] {
				known[string(row)] = true
			}
		}
	}
}

// Statements about blocks. Each finds its first row by an index, and reads no more than it needs after
// it.
const (
	// BlocksStatement gives the hashes of blocks that have positions from $1 to $2.
	BlocksStatement = "SELECT hashes FROM " + BlocksTable + " WHERE last_position >= $1 AND last_position <= $2 UNION ALL " +
		"SELECT hashes FROM (SELECT first_position, hashes FROM " + BlocksTable + " WHERE last_position > $2 ORDER BY last_position LIMIT 1) AS behind " +
		"WHERE first_position <= $2"
	// noBlock is the condition that no block overlaps the positions from $1 to $2. The operator is >= if a block may not end at
	// $1 either, and > if it may.
	noBlock = "coalesce((SELECT first_position FROM " + BlocksTable + " WHERE last_position %s $1 ORDER BY last_position LIMIT 1) > $2, true)"
	// addBlock inserts the block of the positions from $3 to $4 with the hashes $5, if noBlock holds and no row that is known by
	// itself lies between $3 and $6, the end of that range (Behind).
	addBlock = "INSERT INTO " + BlocksTable + " (first_position, last_position, hashes) SELECT CAST($3 AS %[1]s), CAST($4 AS %[1]s), CAST($5 AS %[1]s) WHERE %[2]s" +
		" AND coalesce((SELECT known FROM " + SeenTable + " WHERE known >= CAST($3 AS %[1]s) ORDER BY known LIMIT 1) >= CAST($6 AS %[1]s), true)"
)

// OutsideBlocksCondition returns the SQL condition that no other block overlaps the positions of the chunk's rows.
// A block that ends exactly where these begin is allowed if one of the rows is Tied.
func (s *RowLookup) OutsideBlocksCondition() (condition string, args []any) {
	from := ">="
	if len(s.Tied) > 0 {
		from = ">"
	}
	return fmt.Sprintf(noBlock, from), []any{s.From, s.To}
}

// InsertBlock adds a block of the positions from $1 to $2 with the hashes $3.
const InsertBlock = "INSERT INTO " + BlocksTable + " (first_position, last_position, hashes) VALUES ($1, $2, $3)"

// AddBlock returns the statement that adds the block if OutsideBlocksCondition holds, with its arguments.
func (s *RowLookup) AddBlock(d *Dialect) (statement string, args []any) {
	condition, args := s.OutsideBlocksCondition()
	return fmt.Sprintf(addBlock, d.Bytes, condition), append(args, s.Block.First, s.Block.Last, s.Block.Hashes, s.Block.Behind)
}

// ParseTarget returns the table of a call that writes nothing yet.
func ParseTarget(in interpreter.ToolInput) (*TableWrite, error) {
	shown, err := tool.RequiredText(in, "table")
	if err != nil {
		return nil, err
	}
	w := &TableWrite{target: in.Table()}
	if w.TableName, err = NameOf(shown); err != nil {
		return nil, tool.ConfigErrorf("step %q: table is %q; write a name, or schema.name", in.Step, shown)
	}
	return w, nil
}

// NameOf reads the name of a table.
func NameOf(shown string) (name TableName, err error) {
	name.Shown = shown
	name.Table, err = splitName(shown)
	return name, err
}
