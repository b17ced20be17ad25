package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// TestAutoBatch: a loop, its shards and a reprocess of some of its iterations have
// batches of one size, which follows from that of the collection.
func TestAutoBatch(t *testing.T) {
	t.Parallel()
	step := &playbook.Step{Name: "each", Loop: &playbook.Loop{AutoBatch: true, Batch: 1}}
	for n, want := range map[int]int{0: 1, 1: 1, 99: 1, 100: 1, 101: 3, 200: 5, 201: 6, 1000: 25, 1960: 49, 1961: 50, 5001: 50, 1_000_000: 50} {
		require.Equal(t, want, step.Loop.BatchOf(n), "%d elements", n)
	}
	stats := playbook.Loop{AutoBatch: true, StatsOnly: true}
	for n, want := range map[int]int{100: 1, 101: 3, 5001: 50, 10_199: 50, 10_200: 51, 100_000: 500, 1_000_000: 500} {
		require.Equal(t, want, stats.BatchOf(n), "%d elements whose results are not kept", n)
	}
	some := make([]expression.Value, 7)
	for name, input := range map[string]LoopInput{
		"the loop":    {Elements: make([]expression.Value, 1190)},
		"a shard":     {Elements: some, Shard: &Shard{First: 600, Size: 1190}},
		"a reprocess": {Elements: some, Chosen: &Chosen{Indexes: []int{1, 5, 9, 100, 800, 801, 1189}, Size: 1190}},
		"a shard of a reprocess": {
			Elements: some, Shard: &Shard{First: 1, Size: 400},
			Chosen: &Chosen{Indexes: []int{1, 5, 9, 100, 800, 801, 1189}, Size: 1190},
		},
	} {
		require.Equal(t, 30, newLoop(input, step, &controls{}).batchSize(), name)
	}
	step.Loop.AutoBatch, step.Loop.Batch = false, 7
	require.Equal(t, 7, newLoop(LoopInput{Elements: some}, step, &controls{}).batchSize())
}

// TestSharedFalls: what a shard uses is told again in few steps, and never for nothing.
func TestSharedFalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uses, told Shared
		width      int
		want       bool
	}{
		{Shared{5, 40}, Shared{5, 40}, 10, false},
		{Shared{1, 1}, Shared{1, 1}, 10, false},
		{Shared{4, 40}, Shared{5, 40}, 10, true},
		{Shared{90, 400}, Shared{99, 400}, 100, false},
		{Shared{89, 400}, Shared{99, 400}, 100, true},
		{Shared{2, 400}, Shared{5, 400}, 100, true},
		{Shared{80, 351}, Shared{80, 400}, 100, false},
		{Shared{80, 350}, Shared{80, 400}, 100, true},
		{Shared{1, 2}, Shared{1, 3}, 100, false},
		{Shared{1, 1}, Shared{1, 3}, 100, true},
	} {
		require.Equal(t, c.want, c.uses.falls(c.told, c.width), "%+v", c)
	}
}
