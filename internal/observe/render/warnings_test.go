package render_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/render"
)

// TestWarningsThatDifferOnlyInTheIteration are one line, with their number and the first iterations.
func TestWarningsThatDifferOnlyInTheIteration(t *testing.T) {
	t.Parallel()
	const partial = "step backfill: the run that it started was a partial success"
	of := func(index int, text string) string { return fmt.Sprintf("iteration %d: %s", index, text) }
	child := func(index int) string {
		return of(index, fmt.Sprintf("step backfill: the run that it started has 1 warning: day.backfill-1/backfill#1/%d!1", index))
	}
	day := func(index int, said string) string {
		return of(index, fmt.Sprintf("step backfill, partition 2026-11-%02dT03:00: %s", index+1, said))
	}
	for name, c := range map[string]struct{ warnings, want []string }{
		"none":        {nil, []string{}},
		"one":         {[]string{of(3, partial)}, []string{of(3, partial)}},
		"others":      {[]string{"a", "b", "a"}, []string{"a", "b", "a"}},
		"two":         {[]string{of(3, partial), of(1, partial)}, []string{"2 iterations (1, 3): " + partial}},
		"other texts": {[]string{of(1, "row 1"), of(2, "row 2")}, []string{of(1, "row 1"), of(2, "row 2")}},
		"many, as their runs end, with child runs": {
			[]string{"before", of(3, partial), child(3), of(0, partial), child(0), of(1, partial), child(1), of(2, partial), of(4, partial), of(10, partial), "more warnings"},
			[]string{
				"before", "6 iterations (0, 1, 2, 3, 4, …): " + partial,
				"3 iterations (0, 1, 3): step backfill: the run that it started has 1 warning: day.backfill-1/backfill#1/0!1 for iteration 0, and so on",
				"more warnings",
			},
		},
		"partitions": {
			[]string{
				day(6, "ended"), day(0, "ended"), day(1, "ended"), day(2, "ended"), day(3, "ended"), day(4, "ended"), day(7, "late"),
				day(0, "has 1 warning: a/backfill#1/0!1"), day(1, "has 1 warning: a/backfill#1/1!1"),
			},
			[]string{
				"6 partitions (2026-11-01T03:00, 2026-11-02T03:00, 2026-11-03T03:00, 2026-11-04T03:00, 2026-11-05T03:00, …): step backfill: ended",
				"partition 2026-11-08T03:00: step backfill: late",
				"2 partitions (2026-11-01T03:00, 2026-11-02T03:00): step backfill: has 1 warning: a/backfill#1/0!1 for partition 2026-11-01T03:00, and so on",
			},
		},
		"twice of one iteration": {[]string{of(1, partial), of(1, partial)}, []string{of(1, partial)}},
	} {
		got := render.GroupWarnings(c.warnings)
		require.Equal(t, c.want, got, name)
	}
}
