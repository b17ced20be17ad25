package playbook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook"
)

// TestLargeFilesAreReadInTime reads texts of the largest size that are meant to
// take long. The validation runs within an activity's seconds.
func TestLargeFilesAreReadInTime(t *testing.T) {
	t.Parallel()

	const size = 1<<20 - 1000

	repeat := func(text string) string { return strings.Repeat(text, size/len(text)) }
	step := head + "workflow:\n  - step: a\n    tool: x\n    url: "

	for name, text := range map[string]string{
		"one bad template many times": step + `"` + repeat("{{ 1 + }}") + `"`,
		"many bad templates":          step + "\n" + repeat("      - {{ 1 + }}x\n"),
		"a bracket left open":         head + "workload: [" + repeat("a,\n  ") + "\nb: 1\n",
		"a mistake at the end":        head + "workload:\n" + repeat("  - a\n") + "  b: 1\n",
		"brackets":                    head + "workload: " + repeat("["),
		"braces":                      head + "workload: " + repeat("{"),
		"lists in lists":              head + "workload:\n  " + repeat("- "),
		"comments":                    head + repeat("# a\n") + "workload: {",
		"comments between":            head + "workload:\n" + repeat("  # a\n  - b\n"),
		"keys":                        head + "workload: {" + repeat("a,") + "}\n",
		"anchors":                     head + "workload:\n" + repeat("  - &a b\n"),
		"unknown alias":               head + "workload:\n" + repeat("  - a\n") + "  - *b\n",
		"digits":                      head + "workload: " + repeat("1"),
		"quotes":                      head + "workload: '" + repeat("''") + "'\n",
		"escapes":                     head + `workload: "` + repeat(`\u0041`) + "\"\n",
		"replacement characters":      head + "workload: \"" + repeat("\ufffd") + "\"\n",
		"tabs":                        head + repeat("\t\n"),
		"question marks":              head + "workload:\n  " + repeat("? "),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, found := decode(t, text)

			t.Logf("%d problems after %s", len(found), time.Since(began).Round(time.Millisecond))
			require.LessOrEqual(t, len(found), playbook.MaxProblems+1)
			require.Less(t, time.Since(began), testenv.Within(20*time.Second))
		})
	}
}
