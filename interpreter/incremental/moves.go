package incremental

import (
	"bytes"
	"slices"
	"strings"
)

// Moves are writes to states that one workflow keeps, or one destination. Kept in workflow history.
type Moves struct {
	// Group is the name of the workflow; "" for a destination.
	Group  string       `json:"group,omitempty"`
	Writes []StateWrite `json:"writes"`
}

// JoinMoves adds moves to those of all, in the order of their groups. It changes all, and shares no
// list with more.
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

// WithoutLater is all but the moves of states that later ones move as well: those of an earlier visit,
// which holds these states no longer.
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

// LowestWatermark is the lowest watermark to which moves bring states.
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

// Bounds of what one activity moves. A group is an update of a workflow, and a write some 200
// bytes of it.
const (
	writesAtOnce = 1000
	groupsAtOnce = 100
)

// MoveChunks are moves in pieces that one activity each sends.
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
