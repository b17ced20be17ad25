package interpreter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestTextOfALoop: a failed iteration is no completed one, and the figures add up to the size.
func TestTextOfALoop(t *testing.T) {
	t.Parallel()
	for want, stats := range map[string]interpreter.LoopStats{
		"35 completed, 1 failed, 164 to go of 200": {Total: 200, Success: 35, Failed: 1},
		"0 completed, 9 to go of 9":                {Total: 9},
		"0 completed of 0":                         {},
		"198 completed, 2 failed of 200":           {Total: 200, Success: 198, Failed: 2, Truncated: 1},
		"1 completed, 1 failed, 3 cancelled of 5":  {Total: 5, Success: 1, Failed: 1, Cancelled: 3},
		"1 completed, 1 cancelled, 1 to go of 3":   {Total: 3, Success: 1, Cancelled: 1},
	} {
		require.Equal(t, want, stats.ProgressText())
	}
}
