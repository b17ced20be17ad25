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

// counting makes a table that takes equal rows.
func (s *StateTest) counting() *StateTest {
	s.query(s, "DROP TABLE "+s.Table)
	s.query(s, "CREATE TABLE "+s.Table+" (id bigint, at bigint, page bigint)")
	return s
}

// call claims the state.
func (s *StateTest) call(holder string, ordered bool) *countedCall {
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

// write is the next write of a page. to is where the watermark goes, 0 for nowhere; ends says that the call ends with it.
func (c *countedCall) write(to int, ends bool) *incremental.StateWrite {
	known := c.known
	known.Floor, known.Sweep = c.found.Position, ends
	c.number++
	write := &incremental.StateWrite{Name: c.State, Holder: c.holder, Number: c.number, Rows: &known}
	if to > 0 {
		write.Move = To(to)
		c.known.Reached = At(to).Position
		if ends {
			known.Floor = At(to).Position
		}
	}
	return write
}

// page writes rows, twice as it is delivered.
func (c *countedCall) page(to int, ends bool, rows ...any) int {
	c.Helper()
	in, write := c.In(rows...), c.write(to, ends)
	written, err := c.Write(in, write)
	require.NoError(c, err)
	_, err = c.Write(in, write)
	require.NoError(c, err, "delivered twice")
	return written
}

// again is the call once it has begun again.
func (c *countedCall) again() {
	c.known.Round++
	c.known.Reached = nil
}

// rowsAreCounted: equal rows of different requests are different rows, and those that were written before are left out as often as they were.
func rowsAreCounted(s *StateTest) {
	a := s.counting().call("a", false)
	require.Equal(s, 3, a.page(0, false, Row(1, 5), Row(1, 5), Row(2, 5)), "equal rows of one answer")
	require.Equal(s, 2, a.page(0, false, Row(1, 5), Row(3, 4)), "and of another one")
	require.Equal(s, 1, a.page(5, true, Row(1, 5)))
	four := []string{"1@5", "1@5", "1@5", "1@5", "2@5", "3@4"}
	require.Equal(s, four, s.Written())
	b := s.call("b", false)
	require.Zero(s, b.page(0, false, Row(1, 5), Row(1, 5)), "at the edge they were written before")
	require.Zero(s, b.page(0, false, Row(1, 5), Row(2, 5)), "in whatever pages they come")
	require.Equal(s, 1, b.page(0, false, Row(1, 5), Row(1, 5)), "one of them is new")
	c := s.call("c", false) // b has failed
	require.Zero(s, c.page(0, false, Row(1, 5), Row(1, 5), Row(1, 5), Row(2, 5), Row(1, 5), Row(1, 5)))
	require.Equal(s, 2, c.page(6, true, Row(2, 5), Row(9, 6)))
	require.Equal(s, []string{"1@5", "1@5", "1@5", "1@5", "1@5", "2@5", "2@5", "3@4", "9@6"}, s.Written())
	d := s.call("d", false)
	require.Equal(s, 1, d.page(6, true, Row(9, 6), Row(9, 6)))
	require.Equal(s, 3, s.Seen(), "both, and that the call has met two of them")
}

// rowsAreCountedAsWritten: rows that args make different are different.
func rowsAreCountedAsWritten(s *StateTest) {
	s.counting()
	as := func(page int, rows ...any) (in interpreter.ToolInput) {
		in = s.In(rows...)
		args := make([]any, len(rows))
		for i, row := range rows {
			args[i] = map[string]any{"id": row.(map[string]any)["id"], "page": page} // without the cursor
		}
		in.Args = Value(args)
		return in
	}
	write := func(c *countedCall, page, to int, ends bool, rows ...any) int {
		s.Helper()
		n, err := s.Write(as(page, rows...), c.write(to, ends))
		require.NoError(s, err)
		return n
	}
	a := s.call("a", true)
	require.Equal(s, 2, write(a, 1, 5, false, Row(1, 4), Row(1, 5)), "of other cursors, which are not written")
	require.Equal(s, 1, write(a, 2, 5, true, Row(1, 5)))
	b := s.call("b", true)
	require.Zero(s, write(b, 1, 5, false, Row(1, 5)))
	require.Equal(s, 1, write(b, 3, 5, false, Row(1, 5)))
	require.Equal(s, 1, write(b, 2, 6, true, Row(1, 5), Row(1, 6))) // the first was written by a
	require.Equal(s, []any{map[string]any{"n": 6}}, []any{map[string]any{"n": len(s.Written()) + 1}})
}

// rowsAreCountedAgain: a call that begins again meets what it has written itself.
func rowsAreCountedAgain(s *StateTest) {
	a := s.counting().call("a", false)
	missing := map[string]any{"id": 7}
	require.Equal(s, 4, a.page(0, false, Row(1, 5), Row(1, 5), missing, missing))
	a.again()
	require.Zero(s, a.page(0, false, Row(1, 5), missing))
	require.Zero(s, a.page(0, false, Row(1, 5)))
	require.Equal(s, 1, a.page(0, false, Row(1, 5)))
	require.Zero(s, a.page(0, false, missing))
	a.again()
	require.Equal(s, 2, a.page(5, true, Row(1, 5), Row(1, 5), Row(1, 5), Row(1, 5), missing, missing, missing))
	require.Equal(s, 1, s.call("b", false).page(5, true, missing, missing, missing, Row(1, 5), Row(1, 5), missing))
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
		call := s.call(fmt.Sprint("call ", n), ordered)
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
					call.page(at(largest), true, page...)
				case ordered:
					call.page(at(page[len(page)-1]), false, page...)
				default:
					call.page(0, false, page...)
				}
				if fails > 0 && rand.IntN(4) == 0 { //nolint:gosec // any will do
					break
				}
			}
			if fails <= 0 {
				break
			}
			if fails == 1 { // its run is terminated
				call = s.call(fmt.Sprint("call ", n, " again"), ordered)
				continue
			}
			call.again()
		}
		var expected []string
		for _, row := range source {
			expected = append(expected, text(row))
		}
		slices.SortFunc(expected, strings.Compare)
		written := s.Written()
		slices.Sort(written)
		require.Equal(s, expected, written, "call %d, ordered %t", n, ordered)
	}
}
