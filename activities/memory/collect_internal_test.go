package memory

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCollectSooner: garbage is collected sooner as long as anyone wants it, and the percentage that an operator has set stays. It is not parallel: there is
// one percentage for the process.
func TestCollectSooner(t *testing.T) {
	percent := func() int {
		found := debug.SetGCPercent(usualPercent)
		debug.SetGCPercent(found)
		return found
	}
	defer debug.SetGCPercent(debug.SetGCPercent(usualPercent))
	first, second := CollectSooner(PercentBesideParts), CollectSooner(PercentBesideRows)
	require.Equal(t, PercentBesideParts, percent())
	first()
	first()
	require.Equal(t, PercentBesideRows, percent())
	second()
	require.Equal(t, usualPercent, percent())

	const operators = 200
	debug.SetGCPercent(operators)
	release := CollectSooner(PercentBesideRows)
	require.Equal(t, operators, percent())
	release()
	require.Equal(t, operators, percent())
}
