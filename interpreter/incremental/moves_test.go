package incremental_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// moves are those of some states of a group.
func moves(group string, names ...string) incremental.Moves {
	of := incremental.Moves{Group: group}
	for _, name := range names {
		of.Writes = append(of.Writes, incremental.StateWrite{Name: name, Number: 1})
	}
	return of
}

// TestJoinMoves: moves are joined by group, and what is joined stays as it was.
func TestJoinMoves(t *testing.T) {
	t.Parallel()
	first, second := []incremental.Moves{moves("b", "1")}, []incremental.Moves{moves("c", "2"), moves("a", "3")}
	all := incremental.JoinMoves(incremental.JoinMoves(nil, first), second)
	all = incremental.JoinMoves(all, []incremental.Moves{moves("b", "4", "5")})
	require.Equal(t, []incremental.Moves{moves("a", "3"), moves("b", "1", "4", "5"), moves("c", "2")}, all)
	require.Equal(t, []incremental.Moves{moves("b", "1")}, first)
	all[1].Writes[0].Name = "changed"
	require.Equal(t, "1", first[0].Writes[0].Name)
	left := incremental.WithoutLater(all, []incremental.Moves{moves("b", "4"), moves("c", "2", "1"), moves("d", "3")})
	require.Equal(t, []incremental.Moves{moves("a", "3"), moves("b", "changed", "5")}, left)
	require.Len(t, all[1].Writes, 3)
	require.Empty(t, incremental.WithoutLater(nil, all))
}

// TestChunksOfMoves: an activity moves at most 1,000 states of at most 100 groups, in their order.
func TestChunksOfMoves(t *testing.T) {
	t.Parallel()
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(i))
		}
		return names
	}
	require.Empty(t, incremental.MoveChunks(nil))
	all := []incremental.Moves{moves("a", many(2500)...), moves("b", many(300)...)}
	for i := range 250 {
		all = append(all, moves(fmt.Sprintf("c%03d", i), "x"))
	}
	var joined []incremental.Moves
	var sizes []int
	for _, chunk := range incremental.MoveChunks(all) {
		writes := 0
		for _, of := range chunk {
			writes += len(of.Writes)
		}
		require.LessOrEqual(t, len(chunk), 100)
		sizes = append(sizes, writes)
		joined = incremental.JoinMoves(joined, chunk)
	}
	require.Equal(t, []int{1000, 1000, 898, 100, 52}, sizes)
	require.Equal(t, all, joined)
}
