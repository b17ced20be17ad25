package tooltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// States are the cases of a tool that keeps states between runs, on an empty database.
type States struct {
	Keeper tool.StateStore
	Tool   string
	Auth   string
}

// Source is where the rows of the cases come from.
var Source = incremental.SourceIdentity{CursorPath: "at", Type: incremental.Integer, Fingerprint: "here"}

// Run runs the cases.
func (s States) Run(t *testing.T) {
	t.Helper()
	states, err := s.Keeper.States(t.Context(), s.input("nothing"), "")
	require.NoError(t, err)
	require.Empty(t, states)
	history, err := s.Keeper.StateHistory(t.Context(), s.input("nothing"), "orders")
	require.NoError(t, err)
	require.Empty(t, history)
	require.NoError(t, s.Keeper.SetState(t.Context(), s.input("nothing"), incremental.StateChange{Name: "orders"}))
	require.Empty(t, s.tables(t), "whoever looks makes nothing")
	for name, run := range map[string]func(*StateTest){
		"claim": stateIsClaimed, "another source": stateOfAnother, "another table": stateOfAnotherTable, "other tables": stateOfOtherTables, "without table": stateWithoutTable, "without tables of children": stateWithoutChildren, "emptied": emptiedByItsRows, "claims at once": statesClaimedAtOnce,
		"move": stateMoves, "fence": stateIsFenced, "rows again": rowsComeAgain, "rows below": rowsBelow, "args": argsForRows, "keys": keysOfRows,
		"written again": writtenAgain, "note and key": noteAndKey, "failed": failedWriteMovesNothing, "many": manyRows,
		"set": stateIsSet, "reset": stateIsReset, "removed": unusedStatesAreRemoved, "history": stateHasHistory, "list": statesAreListed, "token": tokenMoves,
		"order of positions": positionsAreOrdered, "missing": rowsWithoutCursor, "of its own": stateOfItsOwn,
		"watermark behind rows": watermarkIsBehindRows, "model": statesFollowTheModel, "as in memory": statesAreAsInMemory, "blocks": rowsInBlocks, "ordered pages": orderedPages,
		"tied pages": tiedPages, "known when claimed": knownWhenClaimed, "known from": rowsKnownFrom, "another key": rowsOfAnotherKey, "known in another table": knownInAnotherTable,
		"counted": rowsAreCounted, "counted as written": rowsAreCountedAsWritten, "counted again": rowsAreCountedAgain, "counted at random": countsFollowTheSource,
	} {
		t.Run(name, func(t *testing.T) { run(s.Test(t)) })
	}
}

func (s States) input(table string) interpreter.ToolInput {
	in := CompleteInput(interpreter.ToolInput{Auth: s.Auth, Place: "sink", Fields: Fields(map[string]any{"table": table})}, s.Tool)
	in.OperationKey, in.RunID = "", "run" // which keeps its session
	return in
}

func (s States) tables(t testing.TB) any {
	t.Helper()
	from := "sqlite_master WHERE"
	if s.Tool == "postgres" {
		from = "(SELECT relname AS name FROM pg_class) AS c WHERE"
	}
	return s.query(t, "SELECT name FROM "+from+" name LIKE 'reprise%' ORDER BY name")
}

func (s States) query(t testing.TB, statement string) any {
	t.Helper()
	in := s.input("")
	in.Fields = Fields(map[string]any{"statement": statement})
	result, err := s.Keeper.Run(t.Context(), in)
	require.NoError(t, err, statement)
	return result.Data.Data
}

// StateTest is a state with a table of its own.
type StateTest struct {
	States
	testing.TB
	State, Table string
	keys         int
}

// Test makes an empty table for rows of id and at, and a name for its state.
func (s States) Test(t testing.TB) *StateTest {
	t.Helper()
	table := "t" + expression.ShortDigest(t.Name())
	s.query(t, "CREATE TABLE "+table+" (id bigint, at bigint, page bigint, UNIQUE (id, at))")
	return &StateTest{States: s, TB: t, State: "state of " + t.Name(), Table: table}
}

// At returns the cursor with a number.
func At(n int) incremental.Cursor {
	c, err := incremental.Parse(incremental.Integer, n)
	if err != nil {
		panic(err)
	}
	return c
}

// Row returns a row of the table.
func Row(id, at int) any { return map[string]any{"id": id, "at": at} }

// WriteInput returns the input of a call's write.
func (s *StateTest) WriteInput(rows ...any) interpreter.ToolInput {
	in := s.input(s.Table)
	s.keys++
	in.OperationKey = fmt.Sprintf("%s %d", s.State, s.keys)
	in.Fingerprint = expression.Digest(rows)
	in.Result = Value(rows)
	return in
}

// ClaimState has a call hold the state.
func (s *StateTest) ClaimState(holder string) incremental.ClaimedState {
	s.Helper()
	claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), s.claim(holder))
	require.NoError(s, err)
	return claimed
}

func (s *StateTest) claim(holder string) incremental.Claim {
	return incremental.Claim{Name: s.State, Holder: holder, Run: "run of " + holder, Source: Source}
}

// StateWrite is what a write of a call does to the state.
func (s *StateTest) StateWrite(holder string, number int, move *incremental.Move, floor []byte) *incremental.StateWrite {
	return &incremental.StateWrite{
		Name: s.State, Holder: holder, Number: number, Move: move,
		Rows: &incremental.RowIdentity{CursorPath: "at", Type: incremental.Integer, Key: []string{"id"}, Floor: floor, Sweep: move != nil && !move.Back},
	}
}

// MoveTo returns the move of a watermark to the cursor n, after n rows.
func MoveTo(n int) *incremental.Move { return &incremental.Move{To: At(n), Rows: n} }

// Write writes.
func (s *StateTest) Write(in interpreter.ToolInput, state *incremental.StateWrite) (int, error) {
	in.State = state
	result, err := s.Keeper.Write(s.Context(), in)
	if err != nil {
		return 0, err
	}
	return result.Data.Data.(map[string]any)["rows_affected"].(int), nil
}

// MustWrite writes rows, and gives how many were written.
func (s *StateTest) MustWrite(state *incremental.StateWrite, rows ...any) int {
	s.Helper()
	n, err := s.Write(s.WriteInput(rows...), state)
	require.NoError(s, err)
	return n
}

// Watermark returns the watermark of the state.
func (s *StateTest) Watermark() any {
	s.Helper()
	states, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	if len(states) == 0 {
		return nil
	}
	return states[0].Watermark.Value.Data
}

// WrittenRows returns the table's rows, as id and at.
func (s *StateTest) WrittenRows() (rows []string) {
	s.Helper()
	for _, row := range s.query(s, "SELECT id, at FROM "+s.Table+" ORDER BY id, at").([]any) {
		row := row.(map[string]any)
		rows = append(rows, fmt.Sprintf("%v@%v", row["id"], row["at"]))
	}
	return rows
}

// CountKnown is how many rows of the state are known.
func (s *StateTest) CountKnown() int {
	s.Helper()
	return s.count("count(*)", "reprise_seen", "known") + s.SeenInBlocks()
}

// SeenInBlocks is how many of them are in blocks.
func (s *StateTest) SeenInBlocks() int {
	s.Helper()
	return s.count(fmt.Sprintf("coalesce(sum(length(hashes)), 0) / %d", incremental.HashLength), "reprise_seen_blocks", "last_position")
}

// count returns an integer that the expression selects from the rows that a table has of the state.
func (s *StateTest) count(expression, from, column string) int {
	s.Helper()
	query := "SELECT CAST(" + expression + " AS bigint) AS n FROM " + from + " WHERE " + s.ofState(column)
	return s.query(s, query).([]any)[0].(map[string]any)["n"].(int)
}

// ofState returns the condition for known rows of the state.
func (s *StateTest) ofState(column string) string {
	column = map[string]string{"sqlite": "hex(" + column + ")", "postgres": "encode(" + column + ", 'hex')"}[s.Tool]
	return fmt.Sprintf("lower(%s) LIKE '%x%%'", column, expression.DigestBytes(s.State)[:8])
}

// RequireMoved requires the error of a write whose call does not hold the state.
func (s *StateTest) RequireMoved(err error, says string) {
	s.Helper()
	s.requireFinal(err, incremental.TypeMoved, says)
}

func (s *StateTest) requireFinal(err error, kind, says string) {
	s.Helper()
	var own *tool.Error
	require.True(s, errors.As(err, &own), "%v", err)
	require.Equal(s, interpreter.KindIncremental, own.Kind, own.Message)
	require.Equal(s, interpreter.ClassFinal, own.Class)
	require.Equal(s, kind, own.Type)
	require.True(s, own.Final)
	require.Contains(s, own.Message, says)
}

func stateIsClaimed(s *StateTest) {
	require.Zero(s, s.ClaimState("a"))
	require.Equal(s, 1, s.MustWrite(s.StateWrite("a", 1, MoveTo(7), At(7).Position), Row(1, 7)))
	require.Zero(s, s.ClaimState("a"), "the same call gets what it found")
	require.Equal(s, 1, s.MustWrite(s.StateWrite("a", 2, MoveTo(8), At(8).Position), Row(2, 8)), "and nothing is reset")
	require.Equal(s, incremental.ClaimedState{Watermark: At(8)}, s.ClaimState("b"))
	require.Equal(s, 1, s.MustWrite(s.StateWrite("b", 1, MoveTo(9), At(9).Position), Row(3, 9)))
	require.Equal(s, incremental.ClaimedState{Watermark: At(8)}, s.ClaimState("b"))
}

func stateOfAnother(s *StateTest) {
	for _, other := range []incremental.SourceIdentity{
		{CursorPath: "other", Type: incremental.Integer, Fingerprint: "here"},
		{CursorPath: "at", Type: incremental.Text, Fingerprint: "here"},
		{CursorPath: "at", Type: incremental.Integer, Fingerprint: "there"},
	} {
		s.ClaimState("a")
		claim := s.claim("b")
		claim.Source = other
		claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), claim)
		require.NoError(s, err)
		require.Nil(s, claimed.Refused, "one that has not moved takes the new source")
		s.MustWrite(s.StateWrite("b", 1, MoveTo(1), nil), Row(1, 1))
		refused := s.ClaimState("a").Refused
		require.NotNil(s, refused)
		require.Equal(s, incremental.TypeOfAnother, refused.Type)
		require.Contains(s, refused.Message, "run of b")
		require.Contains(s, refused.Message, "starter state reset")
		s.MustWrite(s.StateWrite("b", 2, nil, nil), Row(2, 1)) // who was refused has changed nothing
		s.query(s, "DELETE FROM "+s.Table)
		s.reset()
	}
}

// stateOfAnotherTable: a state is about the rows of one table, by whatever spelling of its name. Another table lacks those before the
// watermark, whatever rows it has.
func stateOfAnotherTable(s *StateTest) {
	there, other := s.Table, s.Table+"_other"
	s.query(s, "CREATE TABLE "+other+" (id bigint, at bigint, page bigint, UNIQUE (id, at))")
	s.query(s, "INSERT INTO "+other+" VALUES (7, 7, 7)")
	claim := func(holder, table string, full bool) incremental.ClaimedState {
		s.Table = table
		claim := s.claim(holder)
		claim.Full = full
		claimed, err := s.Keeper.ClaimState(s.Context(), s.input(table), claim)
		require.NoError(s, err)
		return claimed
	}
	claim("a", there, false)
	require.Equal(s, 1, s.MustWrite(s.StateWrite("a", 1, MoveTo(5), nil), Row(1, 5)))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("b", s.otherSpelling(there), false))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("c", there, false))
	refused := claim("d", other, false).Refused
	require.NotNil(s, refused, "the other table has rows, and not those before the watermark")
	require.Equal(s, incremental.TypeOfAnother, refused.Type)
	for _, says := range []string{there + ", and the sink writes to ", other + ": ", "starter run --full-refresh", "starter state reset", "starter state set"} {
		require.Contains(s, refused.Message, says)
	}
	require.Equal(s, 1, s.MustWrite(s.StateWrite("c", 1, MoveTo(6), nil), Row(2, 6)), "a claim that is refused changes nothing")
	for range 2 {
		require.Zero(s, claim("e", other, true), "a full refresh begins anew in the other table, also where the same call claims again")
	}
	require.Equal(s, 1, s.MustWrite(s.StateWrite("e", 1, MoveTo(6), nil), Row(1, 5)), "no row is known from before")
	require.Contains(s, fmt.Sprint(s.stateChanges()), "--full-refresh: the sink writes to")
	require.Equal(s, incremental.TypeOfAnother, claim("f", there, false).Refused.Type, "it is that table's now")
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(there), incremental.StateChange{Name: s.State, By: "ann@host", To: At(5)}))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("f", there, false), "who sets a state says that the table has its rows")
	require.Equal(s, incremental.TypeOfAnother, claim("g", other, false).Refused.Type)
	s.reset()
	made := there + "_made"
	claim("h", made, false)
	in := s.WriteInput(Row(1, 5))
	in.Fields = Fields(map[string]any{"table": made, "schema_contract": "evolve"})
	_, err := s.Write(in, s.StateWrite("h", 1, MoveTo(5), nil))
	require.NoError(s, err)
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("i", s.otherSpelling(made), false), "the table that its first write has made")
	require.Equal(s, incremental.TypeOfAnother, claim("j", other, false).Refused.Type)
}

// stateOfOtherTables: the tables to which a call writes beside that of the state have the rows before the watermark too.
func stateOfOtherTables(s *StateTest) {
	claim := func(holder string, full bool, tables ...string) incremental.ClaimedState {
		claim := s.claim(holder)
		claim.Full, claim.Tables = full, tables
		claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), claim)
		require.NoError(s, err)
		return claimed
	}
	none := []string{}
	claim("a", false, "x of here")
	require.Zero(s, claim("b", false, "y of here"), "it has not moved")
	require.Equal(s, 1, s.MustWrite(s.StateWrite("b", 1, MoveTo(5), nil), Row(1, 5)))
	refused := claim("c", false, "x of here", "y of here").Refused
	require.NotNil(s, refused)
	require.Equal(s, incremental.TypeOfAnother, refused.Type)
	for _, says := range []string{"table x of here", "starter run --full-refresh", "starter state reset", "starter state set"} {
		require.Contains(s, refused.Message, says)
	}
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("c", false, "y of here"))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("d", false, none...))
	require.NotNil(s, claim("e", false, "y of here").Refused, "what was written meanwhile is not in it")
	for range 2 {
		require.Zero(s, claim("f", true, "y of here"), "a full refresh begins anew, also where the same call claims again")
	}
	require.Zero(s, claim("g", false, "y of here"), "also where it has failed")
	require.Contains(s, fmt.Sprint(s.stateChanges()), incremental.FullIntoAnother)
	require.Equal(s, 1, s.MustWrite(s.StateWrite("g", 1, MoveTo(6), nil), Row(2, 6)))
	require.NotNil(s, claim("h", false, "z of here").Refused)
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(5)}))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("h", false, "z of here"), "who sets a state says that its tables have its rows")
}

// otherSpelling is another spelling of a table.
func (s *StateTest) otherSpelling(table string) string {
	return map[string]string{"postgres": `public."` + table + `"`, "sqlite": "main." + strings.ToUpper(table)}[s.Tool]
}

// knownInAnotherTable: rows that a call has inserted before it failed are known in their table, by whatever spelling of its name, and
// in no other table, nor in one that others have emptied.
func knownInAnotherTable(s *StateTest) {
	there, other := s.Table, s.Table+"_other"
	s.query(s, "CREATE TABLE "+other+" (id bigint, at bigint, page bigint, UNIQUE (id, at))")
	s.query(s, "INSERT INTO "+other+" VALUES (7, 7, 7)")
	written := func(holder, table string) int {
		s.Helper()
		s.Table = table
		claimed := s.claimToInsert(holder, "id")
		require.Equal(s, claimed, s.claimToInsert(holder, "id"), "the same call gets what it found")
		require.Nil(s, claimed.Refused, "it has not moved")
		write := s.StateWrite(holder, 1, nil, nil)
		write.Rows.KnownAs = claimed.KnownAs
		return s.MustWrite(write, Row(1, 5))
	}
	require.Equal(s, 1, written("a", there))
	require.Zero(s, written("b", there))
	require.Zero(s, written("c", s.otherSpelling(there)))
	require.Zero(s, written("d", there))
	require.Equal(s, 1, written("e", other))
	require.Zero(s, written("f", other))
	s.query(s, "DELETE FROM "+other)
	require.Equal(s, 1, written("g", other))
	require.Zero(s, written("h", other))
	s.Table = there
	require.Equal(s, []string{"1@5"}, s.WrittenRows())
}

// stateChanges returns the changes of the state.
func (s *StateTest) stateChanges() []incremental.StateChange {
	s.Helper()
	changes, err := s.Keeper.StateHistory(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	return changes
}

func (s *StateTest) reset() {
	s.Helper()
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", Note: "anew"}))
}

func stateWithoutTable(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, nil, nil), Row(1, 1))
	s.query(s, "DELETE FROM "+s.Table)
	require.Nil(s, s.ClaimState("b").Refused, "it has not moved")
	s.MustWrite(s.StateWrite("b", 1, MoveTo(5), nil), Row(2, 5))
	require.Nil(s, s.ClaimState("c").Refused)
	for says, statement := range map[string]string{"has no rows": "DELETE FROM ", "does not exist": "ALTER TABLE " + s.Table + " RENAME TO x"} {
		s.query(s, statement+s.Table)
		refused := s.ClaimState("d").Refused
		require.NotNil(s, refused)
		require.Equal(s, incremental.TypeWithoutTable, refused.Type)
		require.Contains(s, refused.Message, says)
		require.Contains(s, refused.Message, "--full-refresh")
		if says == "does not exist" {
			s.query(s, "ALTER TABLE x"+s.Table+" RENAME TO "+s.Table)
		}
	}
	s.query(s, "DELETE FROM "+s.Table)
	full := s.claim("d")
	full.Full = true
	for range 2 {
		claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), full)
		require.NoError(s, err)
		require.Zero(s, claimed, "it begins anew, also where the same call claims again")
	}
	require.Nil(s, s.Watermark())
	require.Equal(s, 1, s.MustWrite(s.StateWrite("d", 1, nil, At(5).Position), Row(2, 5)), "no row is known from before")
	require.Nil(s, s.ClaimState("e").Refused)
	require.Nil(s, s.Watermark(), "a call that fails on the way keeps no watermark above its rows")
	require.Contains(s, fmt.Sprint(s.stateChanges()), "--full-refresh")
	s.MustWrite(s.StateWrite("e", 1, MoveTo(6), nil), Row(3, 6))
	full.Holder = "f"
	claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), full)
	require.NoError(s, err)
	require.Equal(s, incremental.ClaimedState{Watermark: At(6)}, claimed, "over a table with rows the watermark stays")
	s.query(s, "DELETE FROM "+s.Table)
	s.reset()
	require.Zero(s, s.ClaimState("d"))
}

// stateWithoutChildren: a table of children that had rows and that others have dropped, renamed or emptied lacks the rows up to the
// watermark, at any depth, as a table of parents does.
func stateWithoutChildren(s *StateTest) {
	items, parts := s.Table+"_items", s.Table+"_parts"
	fields := map[string]any{
		"table": s.Table, "mode": "upsert", "key": []any{"id", "at"}, "hard_delete": "gone", "schema_contract": "evolve",
		"children": map[string]any{"items": map[string]any{
			"table": items, "key": []any{"id", "at", "line"}, "with": map[string]any{"id": "id", "at": "at"},
			"children": map[string]any{"parts": map[string]any{
				"table": parts, "key": []any{"id", "at", "line", "part"}, "with": map[string]any{"id": "id", "at": "at", "line": "line"},
			}},
		}},
	}
	claim := func(holder string, full bool) incremental.ClaimedState {
		s.Helper()
		in, claim := s.input(s.Table), s.claim(holder)
		in.Fields, claim.Full, claim.Tables = Fields(fields), full, []string{items + " of here", parts + " of here"}
		claimed, err := s.Keeper.ClaimState(s.Context(), in, claim)
		require.NoError(s, err)
		return claimed
	}
	number := map[string]int{}
	write := func(holder string, to int, more map[string]any) {
		s.Helper()
		one := map[string]any{"id": 1, "at": to}
		maps.Copy(one, more)
		in := s.WriteInput(one)
		in.Fields = Fields(fields)
		number[holder]++
		move := s.StateWrite(holder, number[holder], MoveTo(to), nil)
		move.Rows = nil
		_, err := s.Write(in, move)
		require.NoError(s, err)
	}
	below := map[string]any{"items": []any{map[string]any{"line": 1, "parts": []any{map[string]any{"part": 1}}}}}
	claim("a", false)
	write("a", 1, nil)
	require.Nil(s, claim("b", false).Refused, "no row had a list yet")
	write("b", 2, map[string]any{"items": []any{map[string]any{"line": 1}}})
	require.Nil(s, claim("c", false).Refused, "no element had a list yet")
	write("c", 3, below)
	require.Nil(s, claim("d", false).Refused)
	s.refusedWithout(func() *incremental.Refusal { return claim("e", false).Refused }, items, parts)
	require.Nil(s, claim("f", false).Refused)
	write("f", 3, map[string]any{"gone": true})
	require.Nil(s, claim("g", false).Refused, "the source has deleted all that had parts")
	write("g", 4, below)
	s.query(s, "DROP TABLE "+parts)
	require.NotNil(s, claim("h", false).Refused)
	for range 2 {
		require.Zero(s, claim("h", true), "a full refresh begins anew")
	}
	require.Contains(s, fmt.Sprint(s.stateChanges()), "--full-refresh: the table has no rows")
	write("h", 4, map[string]any{"items": nil})
	require.Nil(s, claim("i", false).Refused, "nothing had parts since")
	write("i", 5, below)
	s.query(s, "DROP TABLE "+parts)
	require.NotNil(s, claim("j", false).Refused)
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(5)}))
	require.Equal(s, incremental.ClaimedState{Watermark: At(5)}, claim("j", false), "who sets a state says that its tables have its rows")
}

// refusedWithout: a claim is refused while one of some tables is not there, or has no rows.
func (s *StateTest) refusedWithout(claim func() *incremental.Refusal, tables ...string) {
	s.Helper()
	for _, table := range tables {
		for says, statements := range map[string][2]string{
			"does not exist": {"ALTER TABLE " + table + " RENAME TO x" + table, "ALTER TABLE x" + table + " RENAME TO " + table},
			"has no rows":    {"CREATE TABLE y" + table + " AS SELECT * FROM " + table, "INSERT INTO " + table + " SELECT * FROM y" + table},
		} {
			s.query(s, statements[0])
			if says == "has no rows" {
				s.query(s, "DELETE FROM "+table)
			}
			refused := claim()
			require.NotNil(s, refused, "%s %s", table, says)
			require.Equal(s, incremental.TypeWithoutTable, refused.Type)
			require.Contains(s, refused.Message, fmt.Sprintf("table %q %s", table, says))
			require.Contains(s, refused.Message, "--full-refresh")
			s.query(s, statements[1])
		}
	}
}

// emptiedByItsRows: a table is empty because its rows were deleted as the source says, or rejected, or
// left out. The next call reads on, until somebody else has emptied the table.
func emptiedByItsRows(s *StateTest) {
	deleting := func(gone any, at int) interpreter.ToolInput {
		in := s.WriteInput(map[string]any{"id": 1, "at": at, "gone": gone})
		in.Fields = Fields(map[string]any{"table": s.Table, "mode": "upsert", "key": []any{"id", "at"}, "hard_delete": "gone"})
		return in
	}
	moves := func(holder string, number int, to *incremental.Move) *incremental.StateWrite {
		move := s.StateWrite(holder, number, to, nil)
		move.Rows = nil
		return move
	}
	write := func(in interpreter.ToolInput, state *incremental.StateWrite) {
		_, err := s.Write(in, state)
		require.NoError(s, err)
	}
	s.ClaimState("a")
	write(deleting(nil, 1), moves("a", 1, MoveTo(1)))
	write(deleting(true, 1), moves("a", 2, MoveTo(2)))
	require.Empty(s, s.WrittenRows())
	require.Equal(s, incremental.ClaimedState{Watermark: At(2)}, s.ClaimState("b"))
	write(s.WriteInput(), moves("b", 1, MoveTo(3)))
	require.Nil(s, s.ClaimState("c").Refused, "a write of nothing changes nothing of it")
	write(deleting(nil, 3), moves("c", 1, MoveTo(3)))
	require.NotEmpty(s, s.WrittenRows())
	s.query(s, "DELETE FROM "+s.Table)
	require.Equal(s, incremental.TypeWithoutTable, s.ClaimState("d").Refused.Type, "this is not what was loaded")
	s.reset()
	rejecting := func() interpreter.ToolInput {
		in := s.WriteInput(map[string]any{"id": 1, "at": 1, "page": "no number"})
		in.Fields = Fields(map[string]any{"table": s.Table, "schema_contract": map[string]any{"columns": "discard_row", "data_type": "discard_row"}})
		return in
	}
	s.ClaimState("e")
	write(rejecting(), s.StateWrite("e", 1, MoveTo(4), nil))
	require.Empty(s, s.WrittenRows())
	for _, holder := range []string{"f", "g"} {
		require.Nil(s, s.ClaimState(holder).Refused, "what was left out comes again, and is known")
		write(rejecting(), s.StateWrite(holder, 1, MoveTo(4), nil))
	}
	s.reset()
	s.Table += "_none"
	s.ClaimState("h")
	none := s.WriteInput(Row(1, 1))
	none.Fields = Fields(map[string]any{"table": s.Table, "schema_contract": "discard_row"})
	write(none, s.StateWrite("h", 1, MoveTo(4), nil))
	require.Nil(s, s.ClaimState("i").Refused, "nothing was to be written to the table that is not there")
}

func statesClaimedAtOnce(s *StateTest) {
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			claimed, err := s.Keeper.ClaimState(context.Background(), s.input(s.Table), s.claim(fmt.Sprint(i)))
			if claimed.Refused != nil {
				return errors.New(claimed.Refused.Message)
			}
			return err
		})
	}
	require.NoError(s, group.Wait())
	wrote := 0
	for i := range 8 {
		if _, err := s.Write(s.WriteInput(Row(i, i)), s.StateWrite(fmt.Sprint(i), 1, MoveTo(i), nil)); err == nil {
			wrote++
		}
	}
	require.Equal(s, 1, wrote, "one holds it")
	require.Len(s, s.WrittenRows(), 1)
}

func stateMoves(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, nil, nil), Row(1, 5))
	require.Nil(s, s.Watermark())
	s.MustWrite(s.StateWrite("a", 2, MoveTo(5), nil))
	require.Equal(s, 5, s.Watermark())
	s.MustWrite(s.StateWrite("a", 3, MoveTo(3), nil))
	require.Equal(s, 5, s.Watermark(), "never back")
	s.MustWrite(s.StateWrite("a", 4, &incremental.Move{}, nil))
	require.Equal(s, 5, s.Watermark(), "nothing is no place")
	require.NoError(s, s.Keeper.MoveState(s.Context(), s.input(s.Table), *s.StateWrite("a", 5, MoveTo(6), nil)))
	require.NoError(s, s.Keeper.MoveState(s.Context(), s.input(s.Table), *s.StateWrite("a", 5, MoveTo(6), nil)), "delivered twice")
	require.Equal(s, 6, s.Watermark())
	s.MustWrite(s.StateWrite("a", 6, &incremental.Move{To: At(4), Back: true}, nil))
	require.Equal(s, 4, s.Watermark())
	s.MustWrite(s.StateWrite("a", 7, &incremental.Move{Back: true}, nil))
	require.Nil(s, s.Watermark())
}

func stateIsFenced(s *StateTest) {
	upsert := func(rows ...any) interpreter.ToolInput {
		in := s.WriteInput(rows...)
		in.OperationKey = ""
		in.Fields = Fields(map[string]any{"table": s.Table, "mode": "upsert", "key": []any{"id", "at"}})
		return in
	}
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(1), nil), Row(1, 1))
	frozen := s.WriteInput(Row(2, 2))
	s.ClaimState("b")
	s.MustWrite(s.StateWrite("b", 1, MoveTo(3), nil), Row(3, 3))
	late := s.StateWrite("a", 2, MoveTo(9), nil)
	_, err := s.Write(frozen, late)
	s.RequireMoved(err, `run "run of b" claimed it later and holds it now`)
	noted := frozen
	noted.Note = &interpreter.LedgerEntry{Call: "frozen" + s.Name(), Written: 2, Continuation: []byte("x")}
	_, err = s.Write(noted, late)
	s.RequireMoved(err, `run "run of b" claimed it later and holds it now`)
	late.Rows = nil
	_, err = s.Write(upsert(Row(2, 2)), late)
	s.RequireMoved(err, `run "run of b" claimed it later and holds it now`)
	s.RequireMoved(s.Keeper.MoveState(s.Context(), s.input(s.Table), *late), `run "run of b" claimed it later and holds it now`)
	_, err = s.Write(s.WriteInput(Row(4, 4)), s.StateWrite("b", 3, MoveTo(4), nil))
	s.RequireMoved(err, "this is write 3 of the call, but the last one was write 1")
	require.Equal(s, []string{"1@1", "3@3"}, s.WrittenRows())
	require.Equal(s, 3, s.Watermark())
	require.Equal(s, 2, s.CountKnown())
	_, err = s.Write(upsert(Row(4, 4)), &incremental.StateWrite{Name: s.State, Holder: "b", Number: 2, Move: MoveTo(4)})
	require.NoError(s, err)
	_, err = s.Write(upsert(Row(4, 4)), &incremental.StateWrite{Name: s.State, Holder: "b", Number: 2, Move: MoveTo(4)})
	require.NoError(s, err, "delivered twice")
	_, err = s.Write(upsert(Row(5, 5)), &incremental.StateWrite{Name: "nobody's", Holder: "b", Number: 1})
	s.RequireMoved(err, "since this call claimed it")
}

func rowsComeAgain(s *StateTest) {
	s.ClaimState("a")
	require.Equal(s, 2, s.MustWrite(s.StateWrite("a", 1, nil, nil), Row(1, 1), Row(2, 2), Row(1, 1)), "the second of two is left out")
	s.ClaimState("b") // a was terminated
	require.Equal(s, 2, s.MustWrite(s.StateWrite("b", 1, nil, nil), Row(1, 1), Row(1, 3), Row(2, 2), Row(3, 3)), "a key at another cursor is another row")
	require.Equal(s, 1, s.MustWrite(s.StateWrite("b", 2, MoveTo(4), At(4).Position), Row(3, 3), Row(4, 4)))
	require.Equal(s, []string{"1@1", "1@3", "2@2", "3@3", "4@4"}, s.WrittenRows())
	require.Equal(s, 1, s.CountKnown(), "those below are forgotten")
	s.ClaimState("c")
	require.Equal(s, 1, s.MustWrite(s.StateWrite("c", 1, MoveTo(5), At(4).Position), Row(4, 4), Row(5, 5)))
	require.Equal(s, 2, s.CountKnown())
	require.Equal(s, 0, s.MustWrite(s.StateWrite("c", 2, MoveTo(5), At(4).Position), Row(4, 4), Row(5, 5)))
	require.Equal(s, 2, s.CountKnown())
}

func rowsBelow(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(10), At(8).Position), Row(1, 8), Row(2, 9), Row(3, 7))
	require.Equal(s, 2, s.CountKnown(), "what is below will not come again")
	s.MustWrite(s.StateWrite("a", 2, nil, At(9).Position), Row(4, 10))
	require.Equal(s, 3, s.CountKnown(), "nothing is dropped where nothing moves")
	require.Equal(s, 0, s.MustWrite(s.StateWrite("a", 3, MoveTo(11), At(10).Position), Row(2, 9)), "it is known as long as this page is looked up")
	require.Equal(s, 1, s.CountKnown())
}

func argsForRows(s *StateTest) {
	s.ClaimState("a")
	in := s.WriteInput(Row(1, 1), Row(2, 2), Row(1, 1))
	in.Args = Value([]any{map[string]any{"id": 10, "page": 1}, map[string]any{"id": 20, "page": 1}, map[string]any{"id": 30, "page": 1}})
	n, err := s.Write(in, s.StateWrite("a", 1, MoveTo(2), nil))
	require.NoError(s, err)
	require.Equal(s, 2, n)
	require.Equal(s, []string{"10@<nil>", "20@<nil>"}, s.WrittenRows())
	in.OperationKey += " more"
	in.Args = Value([]any{map[string]any{"id": 1}})
	_, err = s.Write(in, s.StateWrite("a", 2, nil, nil))
	s.requireFinal(err, incremental.TypeRows, "makes 1 rows out of the 3 of its page")
	require.Len(s, s.WrittenRows(), 2)
	in = s.WriteInput(Row(4, 4), Row(2, 2), Row(3, 3), Row(5, 5), Row(3, 3))
	in.Args = Value([]any{Row(2, 2), Row(5, 5), Row(3, 3)})
	n, err = s.Write(in, s.StateWrite("a", 2, MoveTo(5), nil))
	require.NoError(s, err)
	require.Equal(s, 2, n, "of rows that args leave as they are, one comes again")
	in = s.WriteInput(Row(6, 6), Row(5, 5), Row(7, 7))
	in.Args = Value([]any{Row(6, 6), Row(5, 5)})
	n, err = s.Write(in, s.StateWrite("a", 3, MoveTo(7), nil))
	require.NoError(s, err)
	require.Equal(s, 1, n, "one of them comes again")
	in.Args = Value([]any{})
	in.OperationKey += " none"
	n, err = s.Write(in, s.StateWrite("a", 4, MoveTo(7), nil))
	require.NoError(s, err)
	require.Zero(s, n)
	in.Args = Value([]any{Row(7, 7), Row(6, 6)})
	in.OperationKey += " reversed"
	_, err = s.Write(in, s.StateWrite("a", 5, MoveTo(7), nil))
	s.requireFinal(err, incremental.TypeRows, "makes 2 rows out of the 3 of its page")
}

// keysOfRows: a row that would be taken for another is refused, never left out.
func keysOfRows(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(1), nil), Row(1, 1))
	refused := func(in interpreter.ToolInput, key []string, says string) {
		state := s.StateWrite("a", 2, MoveTo(2), nil)
		state.Rows.Key = key
		_, err := s.Write(in, state)
		s.requireFinal(err, incremental.TypeRows, says)
	}
	without, empty := map[string]any{"at": 2, "page": 1}, map[string]any{"id": nil, "at": 2, "page": 1}
	refused(s.WriteInput(Row(2, 2), without), []string{"id"}, `row 2 of the page has no "id"`)
	refused(s.WriteInput(empty), []string{"id"}, `row 1 of the page has no "id"`)
	refused(s.WriteInput(Row(2, 2)), []string{"id", "shop"}, `row 1 of the page has no "shop"`)
	for _, key := range [][]string{{"id"}, {"id", "at"}, nil} {
		reversed := s.WriteInput(Row(1, 1), Row(2, 1))
		reversed.Args = Value([]any{Row(2, 1), Row(1, 1)})
		refused(reversed, key, "have the rows of the page in another order")
	}
	require.Equal(s, []string{"1@1"}, s.WrittenRows())
	composite := s.StateWrite("a", 2, MoveTo(2), nil)
	composite.Rows.Key = []string{"id", "page"}
	n, err := s.Write(s.WriteInput(map[string]any{"id": 2, "page": nil, "at": 2}, map[string]any{"id": 2, "page": 5, "at": 3}), composite)
	require.NoError(s, err)
	require.Equal(s, 2, n, "nil is a value beside others")
}

func writtenAgain(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, nil, nil), Row(1, 1))
	in, state := s.WriteInput(Row(1, 1), Row(2, 2), Row(2, 2), Row(3, 3)), s.StateWrite("a", 2, MoveTo(3), At(3).Position)
	for range 2 {
		n, err := s.Write(in, state)
		require.NoError(s, err)
		require.Equal(s, 2, n)
	}
	s.ClaimState("b")
	s.MustWrite(s.StateWrite("b", 1, MoveTo(4), At(4).Position), Row(4, 4))
	n, err := s.Write(in, state)
	require.NoError(s, err, "what the ledger knows is done, whoever holds the state")
	require.Equal(s, 2, n)
	require.Equal(s, 4, s.Watermark())
	in.Fingerprint = "another"
	_, err = s.Write(in, state)
	var own *tool.Error
	require.ErrorAs(s, err, &own)
	require.Equal(s, "written_before", own.Type)
	require.Contains(s, own.Message, "2 then")
	require.Equal(s, []string{"1@1", "2@2", "3@3", "4@4"}, s.WrittenRows())
}

func noteAndKey(s *StateTest) {
	s.ClaimState("a")
	in, state := s.WriteInput(Row(1, 1), Row(1, 1)), s.StateWrite("a", 1, MoveTo(1), nil)
	n, err := s.Write(in, state)
	require.NoError(s, err)
	require.Equal(s, 1, n)
	s.ClaimState("b")
	in.Note = &interpreter.LedgerEntry{Call: s.Name(), Written: 1, Continuation: []byte("on")}
	n, err = s.Write(in, state)
	require.NoError(s, err, "the key is known, and the note is new")
	require.Equal(s, 1, n)
	in.State = state
	result, err := s.Keeper.Write(s.Context(), in)
	require.NoError(s, err)
	require.Equal(s, "on", string(result.Noted))
	require.Equal(s, []string{"1@1"}, s.WrittenRows())
	s.ClaimState("c")
	both := s.WriteInput(Row(2, 2))
	both.Note = &interpreter.LedgerEntry{Call: s.Name(), Written: 2, Forget: 1, Continuation: []byte("and on")}
	n, err = s.Write(both, s.StateWrite("c", 1, MoveTo(2), nil))
	require.NoError(s, err)
	require.Equal(s, 1, n)
	require.Equal(s, 2, s.Watermark())
}

func failedWriteMovesNothing(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(1), nil), Row(1, 1))
	bad := s.WriteInput(Row(2, 2), map[string]any{"id": "no number", "at": 3})
	if s.Tool == "sqlite" {
		bad.Result = Value([]any{Row(2, 2), map[string]any{"id": 1, "at": 1, "page": 2}})
		s.query(s, "DELETE FROM reprise_seen WHERE "+s.ofState("known"))
	}
	_, err := s.Write(bad, s.StateWrite("a", 2, MoveTo(3), nil))
	require.Error(s, err)
	require.Contains(s, err.Error(), "row 2")
	require.Equal(s, 1, s.Watermark())
	require.Equal(s, []string{"1@1"}, s.WrittenRows())
	require.Equal(s, 1, s.MustWrite(s.StateWrite("a", 2, MoveTo(2), nil), Row(2, 2)), "it was not noted either")
}

func manyRows(s *StateTest) {
	const many = 25_000 // several chunks
	rows := make([]any, many)
	for i := range rows {
		rows[i] = Row(i, 7)
	}
	s.ClaimState("a")
	require.Equal(s, many, s.MustWrite(s.StateWrite("a", 1, MoveTo(7), At(7).Position), rows...))
	require.Equal(s, many, s.CountKnown())
	s.ClaimState("b")
	require.Equal(s, 1, s.MustWrite(s.StateWrite("b", 1, MoveTo(8), At(8).Position), append(rows, Row(1, 8))...))
	require.Equal(s, 1, s.CountKnown())
}

func stateIsSet(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(5), nil), Row(1, 5))
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(2), Note: "lost some"}))
	require.Equal(s, 2, s.Watermark())
	_, err := s.Write(s.WriteInput(Row(6, 6)), s.StateWrite("a", 2, MoveTo(6), nil))
	s.RequireMoved(err, "set or forgotten")
	require.Equal(s, incremental.ClaimedState{Watermark: At(2)}, s.ClaimState("b"))
	other := *s
	other.State += " made"
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: other.State, By: "ann@host", To: At(3)}))
	require.Equal(s, incremental.ClaimedState{Watermark: At(3)}, other.ClaimState("c"), "it takes the source of who claims it first")
}

func stateIsReset(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(5), nil), Row(1, 5))
	s.reset()
	require.Zero(s, s.CountKnown())
	require.Nil(s, s.Watermark())
	_, err := s.Write(s.WriteInput(Row(6, 6)), s.StateWrite("a", 2, MoveTo(6), nil))
	s.RequireMoved(err, "set or forgotten")
	require.Zero(s, s.ClaimState("b"))
	require.Equal(s, 1, s.MustWrite(s.StateWrite("b", 1, MoveTo(6), nil), Row(6, 6)))
}

// unusedStatesAreRemoved removes states with what they know of rows; those that are used after they were listed stay.
func unusedStatesAreRemoved(s *StateTest) {
	before := time.Now().Add(-time.Minute)
	removed, err := s.Keeper.RemoveStates(s.Context(), s.input(s.Table), incremental.Removal{States: []incremental.ListedState{{Name: "none of " + s.State}}, By: "ann"})
	require.NoError(s, err)
	require.Empty(s, removed)
	elements := map[string]*StateTest{}
	for _, name := range []string{"claimed", "gone", "moved", "set"} {
		one := *s
		one.State += "/" + name
		elements[name] = &one
		one.ClaimState("a" + name)
		one.MustWrite(one.StateWrite("a"+name, 1, MoveTo(5), nil), Row(len(elements), 5))
	}
	listed, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State+"/")
	require.NoError(s, err)
	for _, state := range listed {
		require.True(s, state.ClaimedAt.After(before) && state.UsedAt().After(before))
	}
	elements["claimed"].ClaimState("b")
	elements["moved"].MustWrite(elements["moved"].StateWrite("amoved", 2, MoveTo(6), nil), Row(6, 6))
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: elements["set"].State, By: "ann", To: At(2)}))
	removal := incremental.Removal{States: lists.Map(listed, incremental.State.ListedState), By: "ann", Note: "closed"}
	removed, err = s.Keeper.RemoveStates(s.Context(), s.input(s.Table), removal)
	require.NoError(s, err)
	gone := elements["gone"]
	require.Equal(s, []string{gone.State}, removed)
	require.Nil(s, gone.Watermark())
	require.Zero(s, gone.CountKnown())
	require.Equal(s, []string{"run of agone: <nil> -> 5 ", "ann: 5 -> <nil> closed"}, gone.history())
	_, err = gone.Write(gone.WriteInput(Row(7, 7)), gone.StateWrite("agone", 2, MoveTo(7), nil))
	gone.RequireMoved(err, "set or forgotten")
	for name, state := range map[string]int{"claimed": 5, "moved": 6, "set": 2} {
		require.Equal(s, state, elements[name].Watermark(), name)
	}
}

func stateHasHistory(s *StateTest) {
	s.ClaimState("a")
	s.MustWrite(s.StateWrite("a", 1, MoveTo(5), nil), Row(1, 5))
	s.MustWrite(s.StateWrite("a", 2, MoveTo(6), nil), Row(2, 6))
	s.ClaimState("b") // and moves nothing
	s.ClaimState("c")
	s.MustWrite(s.StateWrite("c", 1, MoveTo(7), nil), Row(3, 7))
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(2), Note: "lost some"}))
	s.ClaimState("d")
	s.MustWrite(s.StateWrite("d", 1, MoveTo(8), nil), Row(4, 8))
	changes := s.history()
	require.Equal(s, []string{
		"run of a: <nil> -> 6 ", "run of c: 6 -> 7 ", "ann@host: 7 -> 2 lost some", "run of d: 2 -> 8 ",
	}, changes)
	s.reset()
	s.reset() // of what is not there
	require.Equal(s, append(changes, "ann@host: 8 -> <nil> anew"), s.history())
}

func (s *StateTest) history() (lines []string) {
	s.Helper()
	changes, err := s.Keeper.StateHistory(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	for i, change := range changes {
		require.Equal(s, s.State, change.Name)
		require.False(s, change.At.IsZero())
		require.True(s, i == 0 || !change.At.Before(changes[i-1].At), "%v", changes)
		lines = append(lines, fmt.Sprintf("%s: %v -> %v %s", change.By, change.From.Value.Data, change.To.Value.Data, change.Note))
	}
	return lines
}

func statesAreListed(s *StateTest) {
	for _, name := range []string{"/b", "/a", "/Z", "/ä", "/a%"} {
		one := *s
		one.State += name
		one.ClaimState("x" + name)
	}
	states, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State+"/")
	require.NoError(s, err)
	var names []string
	for _, state := range states {
		names = append(names, state.Name[len(s.State):])
		require.Equal(s, Source, state.Source)
		require.Equal(s, "run of x"+state.Name[len(s.State):], state.Run)
		require.True(s, state.MovedAt.IsZero())
	}
	require.Equal(s, []string{"/Z", "/a", "/a%", "/b", "/ä"}, names)
	states, err = s.Keeper.States(s.Context(), s.input(s.Table), s.State+"/a%")
	require.NoError(s, err)
	require.Len(s, states, 1)
}

func tokenMoves(s *StateTest) {
	s.ClaimState("a")
	for i, token := range []string{"z", "", "b", "b"} {
		s.MustWrite(s.StateWrite("a", i+1, &incremental.Move{To: incremental.Cursor{Value: expression.Of(token)}, Rows: 3}, nil))
		require.Equal(s, token, s.Watermark())
	}
	states, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	require.Equal(s, int64(3), states[0].Rows)
	require.False(s, states[0].MovedAt.IsZero())
}

func rowsWithoutCursor(s *StateTest) {
	s.ClaimState("a")
	without := map[string]any{"id": 1, "page": 4}
	require.Equal(s, 2, s.MustWrite(s.StateWrite("a", 1, MoveTo(5), At(5).Position), without, Row(2, 5)))
	require.Equal(s, 0, s.MustWrite(s.StateWrite("a", 2, MoveTo(6), At(6).Position), without), "it may come again at any time")
	require.Equal(s, 1, s.CountKnown())
}

// stateOfItsOwn: what one state knows is new to another.
func stateOfItsOwn(s *StateTest) {
	other := *s
	other.State += " of another"
	s.ClaimState("a")
	other.ClaimState("b")
	row := map[string]any{"id": 1, "at": 1}
	require.Equal(s, 1, s.MustWrite(s.StateWrite("a", 1, MoveTo(1), nil), row))
	s.query(s, "DELETE FROM "+s.Table)
	require.Equal(s, 1, other.MustWrite(other.StateWrite("b", 1, nil, nil), row))
	require.Nil(s, other.Watermark())
}

// positionsAreOrdered: the database orders positions as the cursors are ordered.
func positionsAreOrdered(s *StateTest) {
	for kind, ordered := range map[incremental.CursorType][]any{
		incremental.Integer: {math.MinInt64, -256, -255, -1, 0, 1, 255, 256, math.MaxInt64},
		incremental.Date:    {"0001-01-01", "1969-12-31", "1970-01-01", "1970-01-02", "9999-12-31"},
		incremental.Time: {
			"0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "2024-01-01T00:00:00.000000001Z",
			"2024-01-01T02:00:00+01:00", "9999-12-31T23:59:59.999999999Z",
		},
		incremental.Text: {"", "A", "AA", "B", "a", "z", "ä", "\uffff", "\U0001f600"},
	} {
		for i, low := range ordered {
			for _, high := range ordered[i+1:] {
				s.requireOrder(kind, low, high)
			}
		}
	}
}

func (s *StateTest) requireOrder(kind incremental.CursorType, low, high any) {
	s.Helper()
	one := *s
	one.State = fmt.Sprint(s.State, kind, low, high)
	one.ClaimState("a")
	for i, value := range []any{low, high, low, high} {
		cursor, err := incremental.Parse(kind, value)
		require.NoError(s, err)
		write := *one.StateWrite("a", i+1, &incremental.Move{To: cursor}, nil)
		require.NoError(s, s.Keeper.MoveState(s.Context(), s.input(s.Table), write))
		want := high
		if i == 0 {
			want = low
		}
		require.Equal(s, want, one.Watermark(), "%v, then %v", low, high)
	}
}
