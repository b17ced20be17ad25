package tooltest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// ordered is what a write of a source in the order of its cursors does to the state.
func (s *StateTest) ordered(holder string, number int, move *incremental.Move, floor int, sweep bool) *incremental.Write {
	state := s.Move(holder, number, move, At(floor).Position)
	state.Rows.Sweep, state.Rows.Ordered = sweep, true
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

// rowsInBlocks: rows of ordered pages are known together, but for those at the ends of their page, and are found again.
func rowsInBlocks(s *StateTest) {
	s.Claim("a")
	s.query(s, "INSERT INTO "+s.Table+" (id, at) VALUES (-1, -1)")
	write := 0
	page := func(floor int, sweep bool, rows ...any) int {
		write++
		return s.MustWrite(s.ordered("a", write, nil, floor, sweep), rows...)
	}
	for first := 0; first < 200; first += 40 {
		require.Equal(s, 40, page(0, false, rowsFrom(first, 40)...))
	}
	require.Equal(s, 200, s.Seen())
	require.GreaterOrEqual(s, s.SeenInBlocks(), 4*38, "all but the ends; a write that describes the table first may keep each row by itself")
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
	require.Zero(s, s.Seen())
}

// orderedPages reads pages of all sizes again and again, from anywhere, with rows that are late, and with several rows of a cursor.
// Each row is written once, also beside a state of another name.
func orderedPages(s *StateTest) {
	const seed, newest, of = 31, 600, 3
	random := rand.New(rand.NewPCG(seed, seed))
	other := *s
	other.State, other.Table = s.State+" of another", s.Table+"_other"
	s.query(s, "CREATE TABLE "+other.Table+" (id bigint, at bigint, page bigint)") // no constraint says what comes twice
	states := []*StateTest{s, &other}
	written := []map[int]bool{{}, {}}
	for i := range states {
		states[i].Claim("a")
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
		state := states[at].ordered("a", write+1, nil, 0, false)
		states[at].query(s, fmt.Sprintf("UPDATE reprise_state SET last_write = %d WHERE name = '%s'", write, states[at].State))
		require.Equal(s, want, states[at].MustWrite(state, rows...), "write %d", write)
		require.Equal(s, len(written[at]), len(states[at].Written()))
	}
	require.Greater(s, s.SeenInBlocks()+other.SeenInBlocks(), 100)
}
