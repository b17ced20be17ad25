package tooltest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// OrderedWrite returns the state of a write whose source returns rows in the order of their cursors, up to the cursor
// reached. Its sink forgets nothing from the cursor floor on.
func (s *StateTest) OrderedWrite(holder string, number, reached, floor int, sweep bool) *incremental.StateWrite {
	state := s.StateWrite(holder, number, nil, At(floor).Position)
	state.Rows.Sweep, state.Rows.Ordered, state.Rows.Reached = sweep, true, At(reached).Position
	return state
}

// rowsFrom are rows whose cursors follow each other.
func rowsFrom(first, count int) []any {
	rows := make([]any, count)
	for i := range rows {
		rows[i] = Row(first+i, first+i)
	}
	return rows
}

// rowsInBlocks: rows of ordered pages are known together, and are found again.
func rowsInBlocks(s *StateTest) {
	s.ClaimState("a")
	s.query(s, "INSERT INTO "+s.Table+" (id, at) VALUES (-1, -1)")
	write := 0
	page := func(floor int, sweep bool, rows ...any) int {
		write++
		return s.MustWrite(s.OrderedWrite("a", write, -1, floor, sweep), rows...)
	}
	for first := 0; first < 200; first += 40 {
		require.Equal(s, 40, page(0, false, rowsFrom(first, 40)...))
	}
	require.Equal(s, 200, s.CountKnown())
	require.GreaterOrEqual(s, s.SeenInBlocks(), 4*40, "a write that describes the table first may keep each row by itself")
	for first := 0; first < 200; first += 25 {
		require.Zero(s, page(0, false, rowsFrom(first, 25)...), "pages of another size")
	}
	late := append(rowsFrom(60, 40), Row(1000, 70), Row(1001, 99))
	require.Equal(s, 2, page(0, false, late...))
	require.Zero(s, page(0, false, late...))
	require.Zero(s, page(0, false, Row(1000, 70)))
	require.Equal(s, 1, page(0, false, Row(1000, 71)), "the same key and another cursor")
	require.Zero(s, page(150, true, rowsFrom(0, 200)...), "what is below is looked up, and then forgotten")
	require.Zero(s, page(150, false, rowsFrom(150, 50)...))
	require.Equal(s, 30, page(150, false, append(rowsFrom(150, 50), rowsFrom(200, 30)...)...))
	s.reset()
	require.Zero(s, s.CountKnown())
}

// knownWhenClaimed: a claim finds the end of the rows that are known, whatever the state says of it.
func knownWhenClaimed(s *StateTest) {
	s.Table += "_plain"
	s.query(s, "CREATE TABLE "+s.Table+" (id bigint, at bigint, page bigint)") // no constraint says what comes twice
	for i, end := range []string{"known_to", "NULL"} {                         // after the second, the session looks for known rows anyway
		begin, holder := i*1000, string(rune('a'+2*i))
		s.ClaimState(holder)
		for page := range 5 {
			require.Equal(s, 40, s.MustWrite(s.OrderedWrite(holder, page+1, begin-1, 0, false), rowsFrom(begin+page*40, 40)...))
		}
		s.query(s, fmt.Sprintf("UPDATE reprise_state SET known_to = %s WHERE name = '%s'", end, s.State))
		require.Equal(s, 40, s.MustWrite(s.OrderedWrite(holder, 6, begin-1, 0, false), rowsFrom(begin+200, 40)...))
		s.query(s, fmt.Sprintf("UPDATE reprise_state SET known_to = %s WHERE name = '%s'", end, s.State))
		holder += "'"
		s.ClaimState(holder)
		for page := range 6 {
			require.Zero(s, s.MustWrite(s.OrderedWrite(holder, page+1, begin-1, 0, false), rowsFrom(begin+page*40, 40)...), "page %d", page)
		}
		require.Equal(s, 40, s.MustWrite(s.OrderedWrite(holder, 7, begin-1, 0, false), rowsFrom(begin+240, 40)...))
	}
}

// tiedPages: pages begin with rows of the cursor with which the page before has ended, all of which come again in other pages.
func tiedPages(s *StateTest) {
	const of, size = 7, 40
	at := func(id int) int { return id / of }
	rowsOf := func(first, count int) (rows []any) {
		for id := first; id < first+count; id++ {
			rows = append(rows, Row(id, at(id)))
		}
		return rows
	}
	s.Table += "_tied"
	s.query(s, "CREATE TABLE "+s.Table+" (id bigint, at bigint, page bigint)") // no constraint says what comes twice
	write := 0
	page := func(holder string, reached int, rows []any) int {
		write++
		return s.MustWrite(s.OrderedWrite(holder, write, reached, 0, false), rows...)
	}
	s.ClaimState("a")
	read := 0
	for ; read < 10*size; read += size {
		require.Equal(s, size, page("a", at(max(read, 1)-1), rowsOf(read, size)))
	}
	require.Equal(s, read, s.CountKnown())
	require.GreaterOrEqual(s, s.SeenInBlocks(), 9*(size-of), "all but those of the cursor before; a write that describes the table first keeps each row by itself")
	last := at(read - 1)
	tied := slices.DeleteFunc(rowsOf(read-of, of), func(row any) bool { return row.(map[string]any)["at"] != last })
	s.ClaimState("b")
	write = 0
	require.Zero(s, page("b", 0, rowsOf(0, 1)), "and the session describes the table")
	require.Zero(s, page("b", last, tied), "they are in the block of the last page")
	require.Equal(s, size, page("b", last, append(tied, rowsOf(read, size)...)), "beside rows that are new")
	require.Zero(s, page("b", last, rowsOf(read, size)))
	for first := 0; first < read; first += 13 {
		require.Zero(s, page("b", at(first), rowsOf(first, 29)))
	}
	require.Len(s, s.WrittenRows(), read+size)
}

// orderedPages reads pages of all sizes again and again, from anywhere, with rows that are late, and with several rows of a cursor.
// Each row is written once, also beside a state of another name.
func orderedPages(s *StateTest) {
	const seed, newest, of = 31, 600, 3
	random, hints := rand.New(rand.NewPCG(seed, seed)), rand.New(rand.NewPCG(seed, 0))
	other := *s
	other.State, other.Table = s.State+" of another", s.Table+"_other"
	s.query(s, "CREATE TABLE "+other.Table+" (id bigint, at bigint, page bigint)") // no constraint says what comes twice
	states := []*StateTest{s, &other}
	written := []map[int]bool{{}, {}}
	for i := range states {
		states[i].ClaimState("a")
	}
	for write := range 250 {
		at := random.IntN(2)
		first, count := random.IntN(newest), 1+random.IntN(120)
		if random.IntN(3) > 0 { // mostly behind what was read
			first = min(len(written[at]), newest)
		}
		var rows []any
		want := 0
		for id := first; id < first+count; id++ {
			if random.IntN(20) == 0 { // late
				continue
			}
			rows = append(rows, Row(id, id/(1+at*of)))
			if !written[at][id] {
				written[at][id] = true
				want++
			}
		}
		if random.IntN(10) == 0 {
			slices.Reverse(rows)
		}
		reached := hints.IntN(newest) // mostly wrong, which must not matter
		if len(rows) > 0 && hints.IntN(3) > 0 {
			reached = rows[0].(map[string]any)["at"].(int)
		}
		state := states[at].OrderedWrite("a", write+1, reached, 0, false)
		states[at].query(s, fmt.Sprintf("UPDATE reprise_state SET last_write = %d WHERE name = '%s'", write, states[at].State))
		require.Equal(s, want, states[at].MustWrite(state, rows...), "write %d", write)
		require.Equal(s, len(written[at]), len(states[at].WrittenRows()))
	}
	require.Greater(s, s.SeenInBlocks()+other.SeenInBlocks(), 100)
}
