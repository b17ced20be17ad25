package workflows_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// TestIDWithin: an ID that fits is kept as it always was; a longer one is cut,
// never to the ID of another workflow.
func TestIDWithin(t *testing.T) {
	t.Parallel()
	require.Equal(t, "run/fetch#1/7", protocol.SuffixedID("run", "/fetch#1/7"))
	suffix := "/" + strings.Repeat("s", 64) + "#1000/shard-99999-99999"
	ids := map[string]bool{}
	for _, letter := range []string{"a", "é", "語", "😀"} {
		for length := 880; length <= protocol.MaxWorkflowID; length++ {
			id := strings.Repeat(letter, length/len(letter))
			for _, end := range []string{suffix, suffix + "0", ""} {
				within := protocol.SuffixedID(id, end)
				require.LessOrEqual(t, len(within), protocol.MaxWorkflowID)
				require.True(t, utf8.ValidString(within))
				require.True(t, strings.HasSuffix(within, end))
				if len(id)+len(end) <= protocol.MaxWorkflowID {
					require.Equal(t, id+end, within)
				}
				ids[id+"\x00"+end] = true
			}
		}
	}
	unlike := map[string]string{}
	for both := range ids {
		id, end, _ := strings.Cut(both, "\x00")
		within := protocol.SuffixedID(id, end)
		require.Empty(t, unlike[within], "two workflows have one ID")
		unlike[within] = both
	}
}

// TestIterationID: an iteration is in the child that begins with the first one of its
// batch, whatever shard of the loop is asked.
func TestIterationID(t *testing.T) {
	t.Parallel()
	task := protocol.Task{ID: "run", Step: "fetch", Visit: 2}
	chosen := &protocol.Subset{Indexes: []int{3, 8, 40, 41, 77}, Size: 100}
	for name, test := range map[string]struct {
		loop   playbook.Loop
		size   int
		chosen *protocol.Subset
		index  int
		want   string
	}{
		"alone":                     {playbook.Loop{}, 10, nil, 7, "run/fetch#2/7"},
		"within a batch":            {playbook.Loop{Batch: 4}, 10, nil, 7, "run/fetch#2/4"},
		"the last of a batch":       {playbook.Loop{Batch: 4}, 10, nil, 3, "run/fetch#2/0"},
		"a batch of its own":        {playbook.Loop{AutoBatch: true}, 1000, nil, 30, "run/fetch#2/25"},
		"behind the last":           {playbook.Loop{}, 10, nil, 10, ""},
		"before the first":          {playbook.Loop{}, 10, nil, -1, ""},
		"chosen":                    {playbook.Loop{}, 100, chosen, 40, "run/fetch#2/40"},
		"chosen, within a batch":    {playbook.Loop{Batch: 2}, 100, chosen, 41, "run/fetch#2/40"},
		"chosen, alone in a batch":  {playbook.Loop{Batch: 2}, 100, chosen, 77, "run/fetch#2/77"},
		"not chosen":                {playbook.Loop{Batch: 2}, 100, chosen, 4, ""},
		"chosen of a larger loop's": {playbook.Loop{AutoBatch: true}, 300, chosen, 77, "run/fetch#2/3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, found := protocol.IterationID(task, &test.loop, test.size, test.chosen, test.index)
			require.Equal(t, test.want, id)
			require.Equal(t, test.want != "", found)
		})
	}
}
