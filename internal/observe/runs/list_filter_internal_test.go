package runs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFiltersStayWithinTheirBrackets(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{
		`WorkflowId = "a"`, `(WorkflowId = 'a)' OR WorkflowId = "b(")`, `WorkflowId != ""`, `a = 'it''s )'`, `a = 'it\'s )'`,
		`StartTime > '2026-11-23T00:00:00Z' AND (a = 1 OR b IN ('x', 'y'))`, "`a)` = 1", `a = '-- /* # ;'`, `a - b = 1`, `a = -1`,
	} {
		require.NoError(t, unclosedError(filter), filter)
	}
	for filter, says := range map[string]string{
		`WorkflowId="a") OR (WorkflowId != ""`: "a bracket that it has not opened", `)`: "not opened", `(`: "is not closed", `a = 'b`: "a quote",
		`a = "b\"`: "a quote", `a = 1 /* ' */ ) OR ( b = 1 /* ' */`: "a comment", `a = 1 -- '`: "a comment", `a = 1 # '`: "a #", `a = 1;`: "a ;",
		"`a\\` = 1) OR (b = `c`": "not opened", `a = '\\') OR (b = ''`: "not opened", `(a = ')') OR b = 1)`: "not opened",
	} {
		require.ErrorContains(t, unclosedError(filter), says, filter)
	}
}
