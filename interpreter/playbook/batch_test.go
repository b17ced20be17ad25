package playbook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// TestBatchesGrow up to maxAutoBatch, and further where nothing is kept of the results.
func TestBatchesGrow(t *testing.T) {
	t.Parallel()
	const maxAutoBatch = 50
	loop := playbook.Loop{AutoBatch: true}
	for n, want := range map[int]int{1: 1, 100: 1, 101: 3, 400: 10, 40 * maxAutoBatch: maxAutoBatch, 100_000: maxAutoBatch} {
		require.Equal(t, want, loop.BatchSize(n), n)
	}
	loop.StatsOnly = true
	require.Equal(t, playbook.MaxBatch, loop.BatchSize(10_000_000))
}
