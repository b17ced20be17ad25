package playbook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// TestEveryWordIsSaidWhole checks that each entry of a section's table says what
// the word means, what may stand behind it and how it is read, and that the
// meaning names the same words and defaults as the rest of the entry.
func TestEveryWordIsSaidWhole(t *testing.T) {
	t.Parallel()

	// What these mean depends on words beside them, so their section reads them.
	readTogether := []string{
		"step.tool", "sink.tool", "notice.tool", "notify.tool", "workbook entry.tool", "tool.kind", "source.tool", "next entry.when", "next entry.then", "next entry.else",
		"incremental.initial_value", "incremental.format", "incremental.lag", "incremental.step",
	}

	var together []string

	for _, word := range playbook.WordsOfSections() {
		name := word.Section + "." + word.Name
		if !word.Read {
			together = append(together, name)
		}

		require.NotEmpty(t, word.Doc, name)
		require.NotEmpty(t, word.Kind, name)
		require.Equal(t, strings.HasPrefix(word.Kind, "section") || word.Kind == "targets", word.Of != "", "%s: the section that stands there", name)

		for _, accepted := range word.Accepted {
			require.Contains(t, word.Doc, "`"+accepted+"`", name)
		}

		if word.Absent != nil {
			absent := strings.TrimSuffix(strings.TrimSuffix(fmt.Sprint(word.Absent), "0s"), "0m") // 1h0m0s
			said := slices.ContainsFunc([]string{"`" + absent + "` (default)", "default " + absent, "default `" + absent + "`"}, func(text string) bool {
				return strings.Contains(word.Doc, text)
			})
			require.True(t, said, "%s: %q does not say that %s is the default", name, word.Doc, absent)
		}
	}

	require.ElementsMatch(t, readTogether, together)
}

// TestWordsBesideAProblem checks that a problem of one word hides none of
// another in the same section.
func TestWordsBesideAProblem(t *testing.T) {
	t.Parallel()

	_, found := decode(t, head+`workflow:
  - step: a
    tool: http
    url: http://x
    rate_limit: {requests: 0, per: soon}
    loop:
      collection: "{{ [1] }}"
      failure_budget: {rate: x, min_samples: y}
`)
	require.Equal(t, []string{
		"x.yaml:8:28: rate_limit.requests must be at least 1, not 0 [bounds]",
		`x.yaml:8:36: rate_limit.per must be a duration such as 90s or 1m30s, or a number of seconds, not the text "soon" [wrong-type]`,
		`x.yaml:11:30: failure_budget.rate must be a number, not the text "x" [wrong-type]`,
		`x.yaml:11:46: failure_budget.min_samples must be a whole number, not the text "y" [wrong-type]`,
	}, strings.Split(strings.TrimSpace(found.Error()), "\n"))
}
