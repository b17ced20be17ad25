package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// TestSharedFalls: what a shard uses is told again in few steps, and never for nothing.
func TestSharedFalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uses, told SharedWindow
		width      int
		want       bool
	}{
		{SharedWindow{5, 40}, SharedWindow{5, 40}, 10, false},
		{SharedWindow{1, 1}, SharedWindow{1, 1}, 10, false},
		{SharedWindow{4, 40}, SharedWindow{5, 40}, 10, true},
		{SharedWindow{90, 400}, SharedWindow{99, 400}, 100, false},
		{SharedWindow{89, 400}, SharedWindow{99, 400}, 100, true},
		{SharedWindow{2, 400}, SharedWindow{5, 400}, 100, true},
		{SharedWindow{80, 351}, SharedWindow{80, 400}, 100, false},
		{SharedWindow{80, 350}, SharedWindow{80, 400}, 100, true},
		{SharedWindow{1, 2}, SharedWindow{1, 3}, 100, false},
		{SharedWindow{1, 1}, SharedWindow{1, 3}, 100, true},
	} {
		require.Equal(t, c.want, c.uses.FallsEnough(c.told, c.width), "%+v", c)
	}
}

// TestSharedWindowsOfLoops passes MaxOpen: more than any loop has is refused.
func TestSharedWindowsOfLoops(t *testing.T) {
	t.Parallel()
	require.NoError(t, SharedWindow{MaxOpen, MaxOpen}.Check())
	for _, window := range []SharedWindow{{MaxOpen + 1, 0}, {0, MaxOpen + 1}, {-1, 0}} {
		require.Error(t, window.Check())
	}
}

// TestDescriptionsAreShort passes MaxText with names that clients may send.
func TestDescriptionsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 2*MaxText)
	text := DescribeRun(&playbook.Playbook{Name: long, Hash: strings.Repeat("0", 64)})
	require.Less(t, utf8.RuneCountInString(text), MaxText+60)
	require.Contains(t, text, strings.Repeat("ä", MaxText/2))
}
