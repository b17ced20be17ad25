package incremental_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// TestRowsAtOtherCursorsAreOthers: with one key, every cursor makes another row.
func TestRowsAtOtherCursorsAreOthers(t *testing.T) {
	t.Parallel()

	rows := &incremental.Rows{CursorPath: "at", Type: incremental.Integer, Key: []string{"id"}}
	seen := map[string]int{}
	for at := range 100_000 {
		hash := string(rows.Of(map[string]any{"id": 1, "at": at}).Hash)
		before, known := seen[hash]
		require.False(t, known, "%d is taken for %d", at, before)
		seen[hash] = at
	}
}
