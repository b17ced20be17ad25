package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/protocol"
)

// TestAutoBatch: a loop, its shards and a reprocess of some of its iterations have
// batches of one size, which follows from that of the collection.
func TestAutoBatch(t *testing.T) {
	t.Parallel()
	step := &playbook.Step{Name: "each", Loop: &playbook.Loop{AutoBatch: true, Batch: 1}}
	for n, want := range map[int]int{0: 1, 1: 1, 99: 1, 100: 1, 101: 3, 200: 5, 201: 6, 1000: 25, 1960: 49, 1961: 50, 5001: 50, 1_000_000: 50} {
		require.Equal(t, want, step.Loop.BatchSize(n), "%d elements", n)
	}
	stats := playbook.Loop{AutoBatch: true, StatsOnly: true}
	for n, want := range map[int]int{100: 1, 101: 3, 5001: 50, 10_199: 50, 10_200: 51, 100_000: 500, 1_000_000: 500} {
		require.Equal(t, want, stats.BatchSize(n), "%d elements whose results are not kept", n)
	}
	some := make([]expression.Value, 7)
	for name, input := range map[string]protocol.LoopInput{
		"the loop":    {Elements: make([]expression.Value, 1190)},
		"a shard":     {Elements: some, Shard: &protocol.Shard{First: 600, Size: 1190}},
		"a reprocess": {Elements: some, Chosen: &protocol.Subset{Indexes: []int{1, 5, 9, 100, 800, 801, 1189}, Size: 1190}},
		"a shard of a reprocess": {
			Elements: some, Shard: &protocol.Shard{First: 1, Size: 400},
			Chosen: &protocol.Subset{Indexes: []int{1, 5, 9, 100, 800, 801, 1189}, Size: 1190},
		},
	} {
		require.Equal(t, 30, newLoop(input, step, &control.Controls{}).batchSize(), name)
	}
	step.Loop.AutoBatch, step.Loop.Batch = false, 7
	require.Equal(t, 7, newLoop(protocol.LoopInput{Elements: some}, step, &control.Controls{}).batchSize())
}
