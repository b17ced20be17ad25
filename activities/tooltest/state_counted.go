package tooltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// countedCall is a call whose sink inserts rows that have no key.
type countedCall struct {
	*StateTest
	known  incremental.RowIdentity
	holder string
	found  incremental.Cursor
	number int
}

// countingTable makes a table that takes equal rows.
func (s *StateTest) countingTable() *StateTest {
	s.query(s, "DROP TABLE "+s.Table)
	s.query(s, "CREATE TABLE "+s.Table+" (id bigint, at bigint, page bigint)")
	return s
}

// claimCall claims the state.
func (s *StateTest) claimCall(holder string, ordered bool) *countedCall {
	s.Helper()
	claim := s.claim(holder)
	claim.Inserts = true
	claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), claim)
	require.NoError(s, err)
	require.Nil(s, claimed.Refused)
	require.NotEmpty(s, claimed.KnownTo)
	return &countedCall{
		StateTest: s, holder: holder, found: claimed.Watermark,
		known: incremental.RowIdentity{CursorPath: "at", Type: incremental.Integer, KnownTo: claimed.KnownTo, Ordered: ordered},
	}
}

// nextWrite returns the next write of a page. to is where the watermark goes, 0 for nowhere; ends says that the call ends with it.
func (c *countedCall) nextWrite(to int, ends bool) *incremental.StateWrite {
	known := c.known
	known.Floor, known.Sweep = c.found.Position, ends
	c.number++
	write := &incremental.StateWrite{Name: c.State, Holder: c.holder, Number: c.number, Rows: &known}
	if to > 0 {
		write.Move = MoveTo(to)
		c.known.Reached = At(to).Position
		if ends {
			known.Floor = At(to).Position
		}
	}
	return write
}

// writePage writes rows, twice as it is delivered.
func (c *countedCall) writePage(to int, ends bool, rows ...any) int {
	c.Helper()
	in, write := c.WriteInput(rows...), c.nextWrite(to, ends)
	written, err := c.Write(in, write)
	require.NoError(c, err)
	_, err = c.Write(in, write)
	require.NoError(c, err, "delivered twice")
	return written
}

// restartCall is the call once it has begun again.
func (c *countedCall) restartCall() {
	c.known.Round++
	c.known.Reached = nil
}

// rowsAreCounted: equal rows of different requests are different rows, and those that were written before are left out as often as they were.
func rowsAreCounted(s *StateTest) {
	a := s.countingTable().claimCall("a", false)
	require.Equal(s, 3, a.writePage(0, false, Row(1, 5), Row(1, 5), Row(2, 5)), "equal rows of one answer")
	require.Equal(s, 2, a.writePage(0, false, Row(1, 5), Row(3, 4)), "and of another one")
	require.Equal(s, 1, a.writePage(5, true, Row(1, 5)))
	four := []string{"1@5", "1@5", "1@5", "1@5", "2@5", "3@4"}
	require.Equal(s, four, s.WrittenRows())
	b := s.claimCall("b", false)
	require.Zero(s, b.writePage(0, false, Row(1, 5), Row(1, 5)), "at the edge they were written before")
	require.Zero(s, b.writePage(0, false, Row(1, 5), Row(2, 5)), "in whatever pages they come")
	require.Equal(s, 1, b.writePage(0, false, Row(1, 5), Row(1, 5)), "one of them is new")
	c := s.claimCall("c", false) // b has failed
	require.Zero(s, c.writePage(0, false, Row(1, 5), Row(1, 5), Row(1, 5), Row(2, 5), Row(1, 5), Row(1, 5)))
	require.Equal(s, 2, c.writePage(6, true, Row(2, 5), Row(9, 6)))
	require.Equal(s, []string{"1@5", "1@5", "1@5", "1@5", "1@5", "2@5", "2@5", "3@4", "9@6"}, s.WrittenRows())
	d := s.claimCall("d", false)
	require.Equal(s, 1, d.writePage(6, true, Row(9, 6), Row(9, 6)))
	require.Equal(s, 3, s.CountKnown(), "both, and that the call has met two of them")
}

// rowsAreCountedAsWritten: rows that args make different are different.
func rowsAreCountedAsWritten(s *StateTest) {
	s.countingTable()
	as := func(page int, rows ...any) (in interpreter.ToolInput) {
		in = s.WriteInput(rows...)
		args := make([]any, len(rows))
		for i, row := range rows {
			args[i] = map[string]any{"id": row.(map[string]any)["id"], "page": page} // without the cursor
		}
		in.Args = Value(args)
		return in
	}
	write := func(c *countedCall, page, to int, ends bool, rows ...any) int {
		s.Helper()
		n, err := s.Write(as(page, rows...), c.nextWrite(to, ends))
		require.NoError(s, err)
		return n
	}
	a := s.claimCall("a", true)
	require.Equal(s, 2, write(a, 1, 5, false, Row(1, 4), Row(1, 5)), "of other cursors, which are not written")
	require.Equal(s, 1, write(a, 2, 5, true, Row(1, 5)))
	b := s.claimCall("b", true)
	require.Zero(s, write(b, 1, 5, false, Row(1, 5)))
	require.Equal(s, 1, write(b, 3, 5, false, Row(1, 5)))
	require.Equal(s, 1, write(b, 2, 6, true, Row(1, 5), Row(1, 6))) // the first was written by a
	require.Equal(s, []any{map[string]any{"n": 6}}, []any{map[string]any{"n": len(s.WrittenRows()) + 1}})
}

// rowsAreCountedAgain: a call that begins again meets what it has written itself.
func rowsAreCountedAgain(s *StateTest) {
	a := s.countingTable().claimCall("a", false)
	missing := map[string]any{"id": 7}
	require.Equal(s, 4, a.writePage(0, false, Row(1, 5), Row(1, 5), missing, missing))
	a.restartCall()
	require.Zero(s, a.writePage(0, false, Row(1, 5), missing))
	require.Zero(s, a.writePage(0, false, Row(1, 5)))
	require.Equal(s, 1, a.writePage(0, false, Row(1, 5)))
	require.Zero(s, a.writePage(0, false, missing))
	a.restartCall()
	require.Equal(s, 2, a.writePage(5, true, Row(1, 5), Row(1, 5), Row(1, 5), Row(1, 5), missing, missing, missing))
	require.Equal(s, 1, s.claimCall("b", false).writePage(5, true, missing, missing, missing, Row(1, 5), Row(1, 5), missing))
}

// countsFollowTheSource: however the pages of calls are cut, fail and come again, the table has each row as often as the source.
func countsFollowTheSource(s *StateTest) {
	for _, ordered := range []bool{false, true} {
		of := *s
		of.State, of.Table = fmt.Sprint(s.State, ordered), fmt.Sprint(s.Table, ordered)
		s.query(s, "CREATE TABLE "+of.Table+" (id bigint, at bigint, page bigint)")
		of.countAtRandom(ordered)
	}
}

func (s *StateTest) countAtRandom(ordered bool) {
	var (
		source []any
		now    = 1
		text   = func(row any) string { return fmt.Sprint(row.(map[string]any)["id"], "@", row.(map[string]any)["at"]) }
		at     = func(row any) int { return row.(map[string]any)["at"].(int) }
	)
	for n := range 25 {
		for range rand.IntN(40) { //nolint:gosec // any will do
			if rand.IntN(6) == 0 { //nolint:gosec // any will do
				now++
			}
			source = append(source, Row(rand.IntN(3), now)) //nolint:gosec // any will do
		}
		if len(source) == 0 {
			continue
		}
		call := s.claimCall(fmt.Sprint("call ", n), ordered)
		read := func() (rows []any) {
			for _, row := range source {
				if call.found.IsZero() || at(row) >= call.found.Value.Data.(int) {
					rows = append(rows, row)
				}
			}
			return rows
		}
		for fails := rand.IntN(3); ; fails-- { //nolint:gosec // any will do
			rest := read()
			if !ordered {
				rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
			}
			largest := slices.MaxFunc(rest, func(a, b any) int { return at(a) - at(b) })
			for len(rest) > 0 {
				page := rest[:min(len(rest), 1+rand.IntN(30))] //nolint:gosec // any will do
				rest = rest[len(page):]
				switch {
				case len(rest) == 0 && fails <= 0:
					call.writePage(at(largest), true, page...)
				case ordered:
					call.writePage(at(page[len(page)-1]), false, page...)
				default:
					call.writePage(0, false, page...)
				}
				if fails > 0 && rand.IntN(4) == 0 { //nolint:gosec // any will do
					break
				}
			}
			if fails <= 0 {
				break
			}
			if fails == 1 { // its run is terminated
				call = s.claimCall(fmt.Sprint("call ", n, " again"), ordered)
				continue
			}
			call.restartCall()
		}
		var expected []string
		for _, row := range source {
			expected = append(expected, text(row))
		}
		slices.SortFunc(expected, strings.Compare)
		written := s.WrittenRows()
		slices.Sort(written)
		require.Equal(s, expected, written, "call %d, ordered %t", n, ordered)
	}
}
