package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/cost"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

func decoded(t *testing.T, steps string) *playbook.Playbook {
	t.Helper()
	text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\nworkload: {ids: []}\nworkflow:\n" + steps
	book, found := playbook.Decode(source.NewFile("test.yaml", []byte(text)))
	require.False(t, found.HasErrors(), "%v", found)
	return book
}

// TestForetold: the expectations are what a server has counted (TestCostOfRuns), where a table of the documentation
// has it.
func TestForetold(t *testing.T) {
	t.Parallel()
	const get = "  - step: a\n    tool: http\n    url: http://localhost/a\n"
	loop := func(words string) string { return get + "    loop: {in: \"{{ ids }}\", iterator: id, " + words + "}\n" }
	for name, test := range map[string]struct {
		steps   string
		assumed cost.Assumption
		actions int
		flows   int
		notes   []string
	}{
		"step":                    {get, cost.Assumption{}, 4, 1, nil},
		"loop of 1000, batch 50":  {loop("batch: 50"), cost.Assumption{Elements: 1000}, 65, 22, nil},
		"loop of 1000, batch 1":   {loop("batch: 1, mode: parallel"), cost.Assumption{Elements: 1000}, 3031, 1005, nil},
		"sequential, batch 1":     {loop("batch: 1"), cost.Assumption{Elements: 1000}, 3011, 1005, nil},
		"loop of 5001":            {loop("batch: auto"), cost.Assumption{Elements: 5001}, 310, 104, nil},
		"nothing to do":           {loop("batch: auto"), cost.Assumption{}, 5, 2, nil},
		"elements in the file":    {get + "    loop: {in: [1, 2, 3], iterator: id, batch: 1}\n", cost.Assumption{Elements: 1000}, 14, 5, nil},
		"sink":                    {loop("batch: 10, sink: {tool: http, url: http://localhost/b}"), cost.Assumption{Elements: 50}, 71, 7, nil},
		"sink of a parallel loop": {loop("batch: 10, mode: parallel, sink: {tool: http, url: http://localhost/b}"), cost.Assumption{Elements: 50}, 26, 7, nil},
		"sink that is a table":    {loop("batch: 10, sink: {tool: sqlite, auth: db, table: t}"), cost.Assumption{Elements: 50}, 21, 7, nil},
		"approval":                {"  - {step: a, tool: approval, message: Go}\n", cost.Assumption{}, 8, 1, nil},
		"another playbook":        {"  - {step: a, tool: playbook, path: b.yaml}\n", cost.Assumption{}, 6, 2, []string{"a runs another playbook, whose steps are not counted; estimate that one by itself"}},
		"rate limit":              {get + "    rate_limit: {requests: 1, per: 1s}\n", cost.Assumption{}, 4, 1, []string{"rate_limit of a is not counted"}},
		"retries within a policy": {get + "    retry: [{when: error is defined, then: {max_attempts: 2}}]\n", cost.Assumption{Attempts: 9}, 6, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cost.Foretell(decoded(t, test.steps), test.assumed)
			require.Equal(t, test.actions, f.Actions)
			require.Equal(t, test.flows, f.Workflows)
			require.Equal(t, test.notes, f.Notes)
			require.Positive(t, f.HistoryBytes)
			require.Len(t, f.Steps, 1)
		})
	}
}
