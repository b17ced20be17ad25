package incremental

import (
	"bytes"
	"slices"
	"strings"
)

// Moves are writes to states that are kept in one workflow, or in one destination. Kept in workflow history.
type Moves struct {
	// Group is the group of states in Temporal; "" for a destination.
	Group  string       `json:"group,omitempty"`
	Writes []StateWrite `json:"writes"`
}

// JoinMoves merges moves into those of all, sorted by group. It changes all, and shares no list with more.
func JoinMoves(all, more []Moves) []Moves {
	for _, moves := range more {
		at, found := slices.BinarySearchFunc(all, moves.Group, func(m Moves, group string) int { return strings.Compare(m.Group, group) })
		if !found {
			all = slices.Insert(all, at, Moves{Group: moves.Group})
		}
		all[at].Writes = append(all[at].Writes, moves.Writes...)
	}
	return all
}

// WithoutLater returns all without moves of states that later also moves: they come from an earlier visit, which
// does not hold these states any more.
func WithoutLater(all, later []Moves) []Moves {
	type state struct{ group, name string }
	moved := map[state]bool{}
	for _, moves := range later {
		for _, write := range moves.Writes {
			moved[state{moves.Group, write.Name}] = true
		}
	}
	var left []Moves
	for _, moves := range all {
		writes := slices.DeleteFunc(slices.Clone(moves.Writes), func(write StateWrite) bool { return moved[state{moves.Group, write.Name}] })
		if len(writes) > 0 {
			left = append(left, Moves{Group: moves.Group, Writes: writes})
		}
	}
	return left
}

// LowestWatermark returns the lowest watermark that the moves set.
func LowestWatermark(moves []Moves) (lowest Cursor) {
	for _, of := range moves {
		for _, write := range of.Writes {
			if write.Move == nil {
				continue
			}
			if to := write.Move.To; lowest.IsZero() || bytes.Compare(to.Position, lowest.Position) < 0 {
				lowest = to
			}
		}
	}
	return lowest
}

// Bounds of the moves in one activity. A group is an update of a workflow, and a write takes some 200 bytes of it.
const (
	writesAtOnce = 1000
	groupsAtOnce = 100
)

// MoveChunks splits moves into parts, each for one activity.
func MoveChunks(all []Moves) (chunks [][]Moves) {
	var chunk []Moves
	writes := 0
	for _, moves := range all {
		for part := range slices.Chunk(moves.Writes, writesAtOnce) {
			if writes+len(part) > writesAtOnce || len(chunk) == groupsAtOnce {
				chunks, chunk, writes = append(chunks, chunk), nil, 0
			}
			chunk, writes = append(chunk, Moves{Group: moves.Group, Writes: part}), writes+len(part)
		}
	}
	if len(chunk) > 0 {
		chunks = append(chunks, chunk)
	}
	return chunks
}
