package sqltool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// The tables of the states that steps keep between runs: docs/concepts/state.md#what-a-run-reads.
const (
	// StateTable holds a row for each state.
	StateTable = "reprise_state"
	// SeenTable stores the identities of rows that may be read again.
	SeenTable = "reprise_seen"
	// BlocksTable stores the identities of rows that arrived together in the order of their
	// cursors.
	BlocksTable = "reprise_seen_blocks"
	// StateHistoryTable records changes of states, except changes of their holders.
	StateHistoryTable = "reprise_state_history"
)

// Dialect is how the databases' SQL differs.
type Dialect struct {
	Name, Bytes, Time, Serial string // types of columns
	Options                   string // behind the table of rows that are known
	Now                       string // expression
	Least, Greatest           string // functions of values
	// BytesList is a table `given` with a column n, of the list of bytes that $1 is as ListOf makes it.
	BytesList string
	ListOf    func([][]byte) any
	// TimeText is an expression for a column of times, as text of RFC 3339.
	TimeText func(column string) string
	// KindOf is the kind of a column's type.
	KindOf func(name string) ColumnKind
	// ReaderOf is how a column of a type reads values.
	ReaderOf func(name string) Reader
	// IsTextual reports whether the values of a type of unknown kind are texts.
	IsTextual func(name string) bool
	// Mismatch is the code of the error of a value that is not of its column's type.
	Mismatch string
	// NotOlder is the condition that an expression is not less than another, as cursors of a type are compared; NULL where one is.
	NotOlder func(given, there string, as incremental.CursorType) string
	// Types are the types of columns that are made, by their kinds.
	Types Types
	// LongNumbers is the kind of column that preserves all digits of numbers; kindOther if there is
	// none.
	LongNumbers ColumnKind
	// Widen is the keyword that changes the type of a column, "" if columns hold any value.
	Widen string
	// IfNotExists is the clause for adding a column only if it does not exist; "" if the database has none.
	IfNotExists string
	// ShareRow and LockRow protect rows that are read from changes, and from all other access; LockFree skips
	// rows that others have locked.
	ShareRow, LockRow, LockFree string
	// Ago returns the SQL for the time a number of seconds ago.
	Ago func(seconds int) string
	// QuoteLiteral reads $1, made of a value by Literal, as a literal of SQL.
	QuoteLiteral string
	Literal      func(value any) any
	// InstantOf is SQL that converts a text to an instant; a text without a zone has the given offset in seconds. The
	// result is NULL if the text is not a time. InstantLiteral is a time in the same form.
	InstantOf      func(text string, offset int) string
	InstantLiteral func(at time.Time) string
	// Differ is the condition that any of the expressions differs from its counterpart, nil counted as a value.
	Differ func(there, given []string) string
	// NameProblem says why a column or table cannot have a name next to the others, "" if it can.
	NameProblem func(name string, others []string) string
	// SearchesByIndex is set if EXISTS reads a whole table for each row unless it has an index.
	SearchesByIndex bool
	// OneCase maps names of tables that are equal to the database to one text; nil if all names
	// differ.
	OneCase func(name string) string
}

// NewTable is a table, and the statements that make it.
type NewTable struct {
	Name   string
	Create []string
}

// StateTables returns the tables that states need.
func (d *Dialect) StateTables() []NewTable {
	return []NewTable{
		{StateTable, []string{
			"CREATE TABLE IF NOT EXISTS " + StateTable + " (name " + d.Name + " PRIMARY KEY, watermark text, position " + d.Bytes +
				", holder text NOT NULL DEFAULT '', run text NOT NULL DEFAULT '', last_write bigint NOT NULL DEFAULT 0, " +
				"found_watermark text, found_position " + d.Bytes + ", cursor_path text NOT NULL DEFAULT '', " +
				"cursor_type text NOT NULL DEFAULT '', fingerprint text NOT NULL DEFAULT '', moved_at " + d.Time +
				", rows_written bigint NOT NULL DEFAULT 0, floor " + d.Bytes + ", floor_before " + d.Bytes + ", emptied boolean NOT NULL DEFAULT false" +
				", known_to " + d.Bytes + ", known_from " + d.Bytes + ", row_key text, target text NOT NULL DEFAULT '', known_as text NOT NULL DEFAULT '', other_tables text)",
		}},
		{SeenTable, []string{
			"CREATE TABLE IF NOT EXISTS " + SeenTable + " (known " + d.Bytes + " PRIMARY KEY)" + d.Options,
		}},
		{BlocksTable, []string{
			"CREATE TABLE IF NOT EXISTS " + BlocksTable + " (last_position " + d.Bytes + " PRIMARY KEY, first_position " + d.Bytes + " NOT NULL, hashes " +
				d.Bytes + " NOT NULL)" + d.Options,
		}},
		{StateHistoryTable, []string{
			"CREATE TABLE IF NOT EXISTS " + StateHistoryTable + " (id " + d.Serial + " PRIMARY KEY, name " + d.Name + " NOT NULL, changed_at " + d.Time +
				" NOT NULL, changed_by text NOT NULL, from_watermark text, from_position " + d.Bytes + ", to_watermark text, to_position " +
				d.Bytes + ", note text NOT NULL DEFAULT '')",
			"CREATE INDEX IF NOT EXISTS " + StateHistoryTable + "_name ON " + StateHistoryTable + " (name, id)",
		}},
	}
}

// StateTx is a transaction in which states are read and changed. Statements number their
// parameters $1, $2 and so on.
type StateTx interface {
	Dialect() *Dialect
	Exec(ctx context.Context, statement string, args ...any) (affected int64, err error)
	// Query calls read for each row, which reads its columns with scan.
	Query(ctx context.Context, statement string, args []any, read func(scan func(...any) error) error) error
	// LookUp finds out which table the name of a write is, and whether it has rows.
	LookUp(ctx context.Context, w *TableWrite) (incremental.Table, error)
}

// storedState is a row of StateTable.
type storedState struct {
	incremental.StateEntry
	// knownFrom is from where on rows are looked up, and key what identifies them; nil for a state that knows no
	// rows, or all.
	knownFrom []byte
	key       *string
	// knownAs is the name under which its known rows are stored, "" before the first claim.
	knownAs string
	// filled are the tables of children that have had rows, as markOf names them.
	filled []string
}

// stateColumns returns the columns that scanState reads.
func stateColumns(d *Dialect) string {
	return "name, watermark, position, found_watermark, found_position, holder, run, last_write, cursor_path, cursor_type, fingerprint, " +
		"rows_written, " + d.TimeText("moved_at") + ", emptied, known_from, row_key, target, known_as, other_tables"
}

func scanState(scan func(...any) error) (s storedState, err error) {
	var (
		watermark, found, movedAt    *string
		otherTables                  *string
		position, foundPosition      []byte
		cursorPath, kind, sourceMark string
	)
	if err := scan(&s.Name, &watermark, &position, &found, &foundPosition, &s.Holder, &s.Run, &s.Last,
		&cursorPath, &kind, &sourceMark, &s.Rows, &movedAt, &s.Emptied, &s.knownFrom, &s.key, &s.Table, &s.knownAs, &otherTables); err != nil {
		return s, err
	}
	if s.knownFrom = bytes.TrimPrefix(s.knownFrom, statePrefix(s.Name, withCursor)); s.key != nil {
		s.KnownFrom = s.knownFrom
	}
	s.Source = incremental.SourceIdentity{CursorPath: cursorPath, Type: incremental.CursorType(kind), Fingerprint: sourceMark}
	if otherTables != nil {
		notes, err := readNotes(*otherTables)
		if err != nil {
			return s, err
		}
		s.Tables, s.filled, s.ClaimedAt = notes.Tables, notes.Filled, notes.ClaimedAt
	}
	if s.MovedAt, err = readTime(movedAt); err != nil {
		return s, err
	}
	if s.Watermark, err = readCursor(watermark, position); err != nil {
		return s, err
	}
	s.Found, err = readCursor(found, foundPosition)
	return s, err
}

func readTime(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, *text)
}

func readCursor(watermark *string, position []byte) (c incremental.Cursor, err error) {
	if watermark == nil {
		return c, nil
	}
	c.Position = position
	return c, json.Unmarshal([]byte(*watermark), &c.Value)
}

// cursorArgs returns a cursor as its two columns have it.
func cursorArgs(c incremental.Cursor) (watermark, position any, err error) {
	if c.IsZero() {
		return nil, nil, nil
	}
	text, err := json.Marshal(c.Value)
	if err != nil {
		return nil, nil, err
	}
	if c.Value.Data == "" {
		return string(text), []byte{}, nil // JSON leaves out its position, which is empty
	}
	return string(text), bytesArg(c.Position), nil
}

// bytesArg is nil for no bytes: a driver may take a nil slice for an empty one.
func bytesArg(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// lockState returns the row of a state, created if it is missing, and locks it until the
// transaction ends.
func lockState(ctx context.Context, tx StateTx, name string) (s storedState, err error) {
	err = tx.Query(ctx, "INSERT INTO "+StateTable+" (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING "+
		stateColumns(tx.Dialect()), []any{name}, func(scan func(...any) error) (err error) {
		s, err = scanState(scan)
		return err
	})
	return s, err
}

// claimState claims a state for a call; the first of the tables is the one that the state is about, the others have its children.
func claimState(ctx context.Context, tx StateTx, claim incremental.Claim, tables []*TableWrite) (claimed incremental.ClaimedState, err error) {
	target := tables[0]
	state, err := lockState(ctx, tx, claim.Name)
	if err != nil {
		return claimed, err
	}
	decision, err := state.DecideClaim(claim, claimTarget{ctx, tx, state, tables}, time.Time{})
	switch {
	case err != nil:
		return claimed, err
	case decision.Refused != nil:
		return incremental.ClaimedState{Refused: decision.Refused}, nil
	case decision.Repeated:
		state.Watermark = state.Found
		return state.claimState(ctx, tx, claim, target.Shown)
	}
	if err := recordChanges(ctx, tx, decision.Changes); err != nil {
		return claimed, err
	}
	if decision.Anew {
		if err := beginAnew(ctx, tx, state.Name); err != nil {
			return claimed, err
		}
		state.knownFrom, state.knownAs, state.filled = nil, "", nil
	}
	if err := forgetCounts(ctx, tx, claim.Name); err != nil {
		return claimed, err
	}
	state.StateEntry = decision.Entry
	switch {
	case state.knownAs == "":
		state.knownAs = decision.Table.Shown
	case decision.Lacks: // what is known was in the other table, or has been deleted
		state.knownAs = decision.Table.Shown + " of " + claim.Holder
	}
	_, err = tx.Exec(ctx, "UPDATE "+StateTable+" SET holder = $2, run = $3, last_write = 0, rows_written = 0, found_watermark = watermark, found_position = position, "+
		"cursor_path = $4, cursor_type = $5, fingerprint = $6, known_to = "+lastKnown(tx.Dialect(), "$7", "$8")+", row_key = $9, target = $10, known_as = $11, other_tables = $12 WHERE name = $1",
		claim.Name, state.Holder, state.Run, state.Source.CursorPath, string(state.Source.Type), state.Source.Fingerprint,
		statePrefix(claim.Name, withCursor), statePrefix(claim.Name, behindRows), rowKey(claim), state.Table, state.knownAs, stateNotes{state.Tables, state.filled, time.Now().UTC()}.columnText())
	if err != nil {
		return claimed, err
	}
	return state.claimState(ctx, tx, claim, target.Shown)
}

// claimTarget is the table that a claim is about, and the rows that its state knows.
type claimTarget struct {
	ctx    context.Context //nolint:containedctx // of one decision
	tx     StateTx
	state  storedState
	tables []*TableWrite // those of its children behind it
}

// FindTable finds the table.
func (t claimTarget) FindTable() (incremental.Table, error) { return t.tx.LookUp(t.ctx, t.tables[0]) }

// FilledChildTables finds the tables of children that have had rows.
func (t claimTarget) FilledChildTables() (filled []incremental.Table, err error) {
	tables := t.tables[1:]
	if t.tables[0].nests {
		tables = slices.Concat(tables, madeTables(t.state.filled))
	}
	for _, write := range tables {
		if !slices.Contains(t.state.filled, markOf(write)) {
			continue
		}
		table, err := t.tx.LookUp(t.ctx, write)
		if err != nil {
			return nil, err
		}
		filled = append(filled, table)
	}
	return filled, nil
}

// Key returns the key of the previous claim; false if that claim did not insert.
func (t claimTarget) Key() (key []string, inserted bool, err error) {
	if t.state.key == nil {
		return nil, false, nil
	}
	return key, true, json.Unmarshal([]byte(*t.state.key), &key)
}

// KnowsRows reports whether the state has known rows.
func (t claimTarget) KnowsRows() (known bool, err error) {
	for _, of := range knownRows {
		err := t.tx.Query(t.ctx, "SELECT 1 FROM "+of.table+" WHERE "+of.column+" >= $1 AND "+of.column+" < $2 LIMIT 1",
			[]any{statePrefix(t.state.Name, withoutCursor), statePrefix(t.state.Name, behindRows)}, func(func(...any) error) error {
				known = true
				return nil
			})
		if known || err != nil {
			return known, err
		}
	}
	return false, nil
}

// claimState returns the state as a claim finds it.
func (s *storedState) claimState(ctx context.Context, tx StateTx, claim incremental.Claim, shown string) (claimed incremental.ClaimedState, err error) {
	claimed.Watermark = s.Watermark
	if !claim.Inserts {
		return claimed, nil
	}
	claimed.KnownFrom = s.knownFrom
	if s.knownAs != shown {
		claimed.KnownAs = s.knownAs
	}
	err = tx.Query(ctx, "SELECT known_to FROM "+StateTable+" WHERE name = $1", []any{claim.Name}, func(scan func(...any) error) error { return scan(&claimed.KnownTo) })
	return claimed, err
}

// rowKey returns the key columns of a claim for storing; nil if the sink does not insert.
func rowKey(claim incremental.Claim) any {
	if !claim.Inserts {
		return nil
	}
	text, _ := json.Marshal(claim.Key) //nolint:errchkjson // texts
	return string(text)
}

// beginAnew removes the watermark and the known rows of a state.
func beginAnew(ctx context.Context, tx StateTx, name string) error {
	if err := forgetRows(ctx, tx, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE "+StateTable+" SET watermark = NULL, position = NULL, floor = NULL, floor_before = NULL, known_from = NULL, row_key = NULL WHERE name = $1", name)
	return err
}

// recordChanges writes changes into the history, the oldest first.
func recordChanges(ctx context.Context, tx StateTx, changes []incremental.StateChange) error {
	for _, change := range changes {
		if err := recordChange(ctx, tx, change); err != nil {
			return err
		}
	}
	return nil
}

// recordChange writes a change into the history; one without a time is made now.
func recordChange(ctx context.Context, tx StateTx, change incremental.StateChange) error {
	from, fromPosition, err := cursorArgs(change.From)
	if err != nil {
		return err
	}
	to, toPosition, err := cursorArgs(change.To)
	if err != nil {
		return err
	}
	args := []any{change.Name, change.By, from, fromPosition, to, toPosition, change.Note}
	at := tx.Dialect().Now
	if !change.At.IsZero() {
		at, args = "$8", append(args, change.At.UTC().Format(time.RFC3339Nano))
	}
	_, err = tx.Exec(ctx, "INSERT INTO "+StateHistoryTable+
		" (name, changed_at, changed_by, from_watermark, from_position, to_watermark, to_position, note) VALUES ($1, "+at+", $2, $3, $4, $5, $6, $7)", args...)
	return err
}

// lastKnown returns an expression for the end of a state's known rows with a cursor, within two values: the first value if
// there are none.
func lastKnown(d *Dialect, from, to string) string {
	from, to = "CAST("+from+" AS "+d.Bytes+")", "CAST("+to+" AS "+d.Bytes+")"
	last := d.Greatest + "(" + from
	for _, of := range knownRows {
		last += ", coalesce((SELECT " + of.column + " FROM " + of.table + " WHERE " + of.column + " >= " + from + " AND " + of.column + " < " + to +
			" ORDER BY " + of.column + " DESC LIMIT 1), " + from + ")"
	}
	return last + ")"
}

// MoveStatement returns the statement of a write that moves the state. It changes one row, or none
// if the call does not hold the state or writes out of order.
func MoveStatement(d *Dialect, write *TableWrite) (statement string, args []any, err error) {
	w := write.State
	shape := moveShape{dialect: d, writesRows: write.WritesRows()}
	before, again := w.FenceNumbers()
	args = append(make([]any, 0, moveArgs), w.Name, w.Holder, int64(before), int64(again))
	if w.Rows != nil {
		shape.floor, shape.sweeps = true, w.Rows.Sweep
		args = append(args, belowRows(w.Name, w.Rows.Floor), statePrefix(w.Name, withCursor))
		if to := write.knownTo(); to != nil {
			shape.known, args = true, append(args, to)
		}
	}
	if w.MovesWatermark() {
		watermark, position, err := cursorArgs(w.Move.To)
		if err != nil {
			return "", nil, err
		}
		shape.moves, shape.back = true, w.Move.Back
		args = append(args, watermark, position, int64(w.Move.Rows))
	}
	text, made := moveStatements.Load(shape)
	if !made {
		text, _ = moveStatements.LoadOrStore(shape, shape.moveStatement())
	}
	return text.(string), args, nil //nolint:forcetypeassert // nothing else is stored
}

// moveArgs is how many arguments a move has, and the condition that may follow it.
const moveArgs = 11

// moveStatements caches the texts of moves by their shapes, of which there are few.
var moveStatements sync.Map

// moveShape determines the text of a move.
type moveShape struct {
	dialect                                       *Dialect
	writesRows, floor, sweeps, known, moves, back bool
}

// moveStatement returns the text of a move, whose parameters are in the order of MoveStatement.
func (s moveShape) moveStatement() string {
	const fence = 4 // parameters: name, holder, and the writes behind which this one may come
	last := fence
	param := func() string {
		last++
		return "$" + strconv.Itoa(last)
	}
	where := " WHERE name = $1 AND holder = $2 AND last_write IN ($3, $4)"
	set := "UPDATE " + StateTable + " SET last_write = $4"
	if s.floor {
		set += s.setFloor(param(), param())
	}
	if s.known {
		set += ", known_to = " + s.dialect.Greatest + "(known_to, " + param() + ")"
	}
	if s.writesRows {
		set += ", emptied = false"
	}
	if !s.moves {
		return set + where
	}
	text, at := param(), param()
	set += ", rows_written = " + param()
	for _, column := range [][2]string{{"watermark", text}, {"position", at}, {"moved_at", s.dialect.Now}} {
		value := column[1]
		if !s.back { // Cursor.Passes
			value = "CASE WHEN (position < " + at + ") IS NOT FALSE THEN " + value + " ELSE " + column[0] + " END"
		}
		set += ", " + column[0] + " = " + value
	}
	return set + where
}

// setFloor keeps the position below which no row is known any more, so that a sweep begins
// there: before it is what earlier ones have left to be vacuumed. begin is where the known rows of the state begin.
func (s moveShape) setFloor(floor, begin string) string {
	least := s.dialect.Least + "(coalesce(floor, " + begin + "), " + floor + ")"
	if !s.sweeps {
		return ", floor = " + least
	}
	return ", floor_before = " + least + ", floor = " + floor + ", known_from = " + s.dialect.Greatest + "(coalesce(known_from, " + floor + "), " + floor + ")"
}

// knownRows are the tables of known rows, in the order in which they are changed, with the columns by which they
// are sorted.
var knownRows = []struct{ table, column string }{{SeenTable, "known"}, {BlocksTable, "last_position"}}

// SweepStatements delete the known rows of a state, $1, below a floor, $2, and blocks that are completely
// below it.
func SweepStatements() []string {
	statements := make([]string, len(knownRows))
	for i, of := range knownRows {
		statements[i] = "DELETE FROM " + of.table + " WHERE " + of.column + " >= (SELECT floor_before FROM " + StateTable +
			" WHERE name = $1) AND " + of.column + " < $2"
	}
	return statements
}

// forgetRows drops all that is known of a state's rows.
func forgetRows(ctx context.Context, tx StateTx, name string) error {
	for _, of := range knownRows {
		_, err := tx.Exec(ctx, "DELETE FROM "+of.table+" WHERE "+of.column+" >= $1 AND "+of.column+" < $2", statePrefix(name, withoutCursor), statePrefix(name, behindRows))
		if err != nil {
			return err
		}
	}
	return forgetCounts(ctx, tx, name)
}

// forgetCounts drops what a call has counted.
func forgetCounts(ctx context.Context, tx StateTx, name string) error {
	_, err := tx.Exec(ctx, "DELETE FROM "+SeenTable+" WHERE known >= $1 AND known < $2", statePrefix(name, behindRows), statePrefix(name, behindCounts))
	return err
}

// recordEmptied records whether a write that has written no row has left its table without any: its rows may all have been
// deleted, rejected or discarded. A table that only they would have made is not there then.
func recordEmptied(ctx context.Context, tx TableTx, w *TableWrite) error {
	columns, err := tx.ReadColumns(ctx, w)
	if err != nil {
		return err
	}
	emptied := "true"
	if len(columns) > 0 {
		emptied = "NOT EXISTS (SELECT 1 FROM " + w.QuotedTable() + ")"
	}
	_, err = tx.Exec(ctx, "UPDATE "+StateTable+" SET emptied = "+emptied+" WHERE name = $1", w.State.Name)
	return err
}

// MoveState moves the state of a write, before its rows are written.
func MoveState(ctx context.Context, tx StateTx, w *TableWrite) error {
	statement, args, err := MoveStatement(tx.Dialect(), w)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, statement, args...)
	if err == nil && n == 0 {
		return NotHeldError(ctx, tx, w.State)
	}
	return err
}

// NotHeldError returns the error of a write whose call does not hold the state, or that is out of order.
func NotHeldError(ctx context.Context, tx StateTx, w *incremental.StateWrite) error {
	state, found, err := findState(ctx, tx, w.Name)
	if err != nil {
		return err
	}
	why := "it has been set or forgotten since this call claimed it"
	switch standing := state.CompareWrite(*w); {
	case !found || standing == incremental.StandingSet:
	case standing == incremental.StandingSameRun:
		why = "another iteration of this run claimed it later: two elements of the loop share this state. Remove duplicate elements, " +
			"or use what distinguishes them in the name of the state"
	case standing == incremental.StandingOther:
		why = fmt.Sprintf("run %q claimed it later and holds it now", state.Run)
	default:
		why = fmt.Sprintf("this is write %d of the call, but the last one was write %d", w.Number, state.Last)
	}
	return FinalError(incremental.TypeMoved, "the state %q no longer belongs to this call: %s. Nothing was written", w.Name, why)
}

// FinalError returns an error of kind incremental, which ends the call.
func FinalError(kind, format string, args ...any) error {
	return &tool.Error{
		Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: kind, Final: true, Message: fmt.Sprintf(format, args...),
	}
}

func findState(ctx context.Context, tx StateTx, name string) (s storedState, found bool, err error) {
	err = tx.Query(ctx, "SELECT "+stateColumns(tx.Dialect())+" FROM "+StateTable+" WHERE name = $1", []any{name},
		func(scan func(...any) error) (err error) {
			s, err = scanState(scan)
			found = true
			return err
		})
	return s, found, err
}

// findStates returns the states whose names have the prefix, sorted by name.
func findStates(ctx context.Context, tx StateTx, prefix string) (states []incremental.State, err error) {
	var all []storedState
	err = tx.Query(ctx, "SELECT "+stateColumns(tx.Dialect())+" FROM "+StateTable+" WHERE substr(name, 1, length(CAST($1 AS text))) = $1", []any{prefix},
		func(scan func(...any) error) error {
			s, err := scanState(scan)
			all = append(all, s)
			return err
		})
	slices.SortFunc(all, func(a, b storedState) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range all {
		states = append(states, s.State)
	}
	return states, err
}

// setState changes a state for a person, or deletes it with its known rows. A write of the call
// that held it is refused from then on.
func setState(ctx context.Context, tx StateTx, change incremental.StateChange) error {
	state, found, err := findAndLock(ctx, tx, change)
	if err != nil || !found {
		return err
	}
	next, changes := state.Set(change, time.Time{})
	if err := recordChanges(ctx, tx, changes); err != nil {
		return err
	}
	if change.To.IsZero() {
		if err := forgetRows(ctx, tx, change.Name); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM "+StateTable+" WHERE name = $1", change.Name)
		return err
	}
	watermark, position, err := cursorArgs(next.Watermark)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE "+StateTable+" SET holder = '', run = '', last_write = 0, watermark = $2, position = $3, "+
		"found_watermark = $2, found_position = $3, rows_written = 0, known_from = NULL, row_key = NULL, target = '', other_tables = NULL, moved_at = "+tx.Dialect().Now+" WHERE name = $1",
		change.Name, watermark, position)
	return err
}

// removeStates forgets states that are unchanged since they were listed, and returns their names.
func removeStates(ctx context.Context, tx StateTx, removal incremental.Removal) (removed []string, err error) {
	for _, listed := range removal.States {
		change := removal.ChangeOf(listed)
		state, found, err := findAndLock(ctx, tx, change)
		switch {
		case err != nil:
			return nil, err
		case !found || !listed.IsUnchanged(state.State):
			continue
		}
		if err := setState(ctx, tx, change); err != nil {
			return nil, err
		}
		removed = append(removed, listed.Name)
	}
	return removed, nil
}

// findAndLock returns and locks the row to be changed. It creates a missing one, unless the
// state is to be forgotten.
func findAndLock(ctx context.Context, tx StateTx, change incremental.StateChange) (s storedState, found bool, err error) {
	if change.To.IsZero() {
		if _, found, err = findState(ctx, tx, change.Name); err != nil || !found {
			return s, found, err
		}
	}
	s, err = lockState(ctx, tx, change.Name)
	return s, true, err
}

// stateHistory returns the changes of a state, the oldest first.
func stateHistory(ctx context.Context, tx StateTx, name string) (changes []incremental.StateChange, err error) {
	d := tx.Dialect()
	err = tx.Query(ctx, "SELECT "+d.TimeText("changed_at")+", changed_by, from_watermark, from_position, to_watermark, to_position, note FROM "+
		StateHistoryTable+" WHERE name = $1 ORDER BY id", []any{name}, func(scan func(...any) error) error {
		change, err := scanChange(scan)
		change.Name = name
		changes = append(changes, change)
		return err
	})
	if err != nil {
		return nil, err
	}
	state, found, err := findState(ctx, tx, name)
	if err != nil || !found {
		return changes, err
	}
	if moves, moved := state.HolderChange(); moved {
		changes = append(changes, moves)
	}
	return changes, nil
}

func scanChange(scan func(...any) error) (c incremental.StateChange, err error) {
	var (
		at, from, to             *string
		fromPosition, toPosition []byte
	)
	if err := scan(&at, &c.By, &from, &fromPosition, &to, &toPosition, &c.Note); err != nil {
		return c, err
	}
	if c.At, err = readTime(at); err != nil {
		return c, err
	}
	if c.From, err = readCursor(from, fromPosition); err != nil {
		return c, err
	}
	c.To, err = readCursor(to, toPosition)
	return c, err
}
