package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
		require.Equal(t, c.want, c.uses.Falls(c.told, c.width), "%+v", c)
	}
}
