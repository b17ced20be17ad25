package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestSuggestionsOfLargeWorkloads passes mostSuggested: among more names none is looked for.
func TestSuggestionsOfLargeWorkloads(t *testing.T) {
	t.Parallel()
	const mostSuggested = 1000
	for keys, want := range map[int]bool{mostSuggested: true, mostSuggested + 1: false} {
		var workload strings.Builder
		for i := range keys {
			fmt.Fprintf(&workload, "  customer_%d: x\n", i)
		}
		text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: p}\nworkload:\n" + workload.String() +
			"workflow:\n  - {step: fetch, tool: http, url: \"http://x/{{ customr_7 }}\"}\n"
		_, found := check.Validate(source.NewFile("p.yaml", []byte(text)), activities.DefaultCatalogue(), check.Options{})
		require.Contains(t, found.Error(), `unknown name "customr_7"`)
		require.Equal(t, want, strings.Contains(found.Error(), "did you mean"), keys)
	}
}
