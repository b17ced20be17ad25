package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundsOfWorkers passes mostMissing and mostReserved.
func TestBoundsOfWorkers(t *testing.T) {
	t.Parallel()
	all := make([]string, mostMissing+7)
	all[0] = "2024-01-01"
	keys, more := keysOfRun(all)
	require.Equal(t, all[:mostMissing], keys)
	require.Equal(t, 7, more)
	keys, more = keysOfRun(all[:3])
	require.Len(t, keys, 3)
	require.Zero(t, more)

	unset := func(string) (string, bool) { return "", false }
	require.EqualValues(t, mostReserved, reservedBytes(unset, 1<<40))
	require.EqualValues(t, mostReserved/2, reservedBytes(unset, mostReserved/2*reservedShare))
}
