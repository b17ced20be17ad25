package workflows_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/workflows"
)

// TestIDWithin: an ID that fits is kept as it always was; a longer one is cut,
// never to the ID of another workflow.
func TestIDWithin(t *testing.T) {
	t.Parallel()
	require.Equal(t, "run/fetch#1/7", workflows.IDWithin("run", "/fetch#1/7"))
	suffix := "/" + strings.Repeat("s", 64) + "#1000/part-99999-99999"
	ids := map[string]bool{}
	for _, letter := range []string{"a", "é", "語", "😀"} {
		for length := 880; length <= workflows.MaxWorkflowID; length++ {
			id := strings.Repeat(letter, length/len(letter))
			for _, end := range []string{suffix, suffix + "0", ""} {
				within := workflows.IDWithin(id, end)
				require.LessOrEqual(t, len(within), workflows.MaxWorkflowID)
				require.True(t, utf8.ValidString(within))
				require.True(t, strings.HasSuffix(within, end))
				if len(id)+len(end) <= workflows.MaxWorkflowID {
					require.Equal(t, id+end, within)
				}
				ids[id+"\x00"+end] = true
			}
		}
	}
	unlike := map[string]string{}
	for both := range ids {
		id, end, _ := strings.Cut(both, "\x00")
		within := workflows.IDWithin(id, end)
		require.Empty(t, unlike[within], "two workflows have one ID")
		unlike[within] = both
	}
}
