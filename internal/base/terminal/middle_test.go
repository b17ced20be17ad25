package terminal_test

import (
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
)

// TestMiddle: an identifier keeps its beginning and its end, whatever its letters are wide.
func TestMiddle(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "…", 1: "…", 2: "n…", 3: "n…c", 9: "nigh…wr4c", 17: "nightly-…-us-wr4c", 18: "nightly-e…-us-wr4c", 20: "nightly-east-us-wr4c", 80: "nightly-east-us-wr4c",
	} {
		require.Equal(t, want, terminal.Middle("nightly-east-us-wr4c", width), width)
	}
	for width := 1; width < 20; width++ {
		cut := terminal.Middle("夜間の取り込み-東京-7x2k", width)
		require.LessOrEqual(t, text.StringWidth(cut), width, cut)
	}
	require.Equal(t, "夜間…7x2k", terminal.Middle("夜間の取り込み-東京-7x2k", 9))
}

// TestMiddleAll: identifiers that differ in their middle alone can be told apart.
func TestMiddleAll(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"nightl…east-hospital", "nightl…west-hospital", "short", "nightly-im…asia-7x2k"}, terminal.MiddleAll([]string{
		"nightly-import-of-all-patients-from-the-east-hospital", "nightly-import-of-all-patients-from-the-west-hospital", "short", "nightly-import-asia-7x2k",
	}, 20))
	require.Equal(t, []string{"nig…east-…", "nig…west-…"}, terminal.MiddleAll([]string{
		"nightly-import-from-the-east-hospital-of-the-town", "nightly-import-from-the-west-hospital-of-the-town",
	}, 10))
	require.Equal(t, []string{"nightl…e-same", "nightl…e-same"}, terminal.MiddleAll([]string{"nightly-always-the-same", "nightly-always-the-same"}, 13))
}
