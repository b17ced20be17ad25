package load

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestManyKeysThatNothingReads cost little, and little is said of them.
func TestManyKeysThatNothingReads(t *testing.T) {
	t.Parallel()
	var steps strings.Builder
	for i := range 200 {
		fmt.Fprintf(&steps, "  - step: s%d\n    tool: http\n    url: \"{{ api }}/x%d?q={{ customer_%d }}\"\n", i, i, i)
		if i < 199 {
			fmt.Fprintf(&steps, "    next: s%d\n", i+1)
		}
	}
	file := source.NewFile("wide.yaml", []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: wide}\nworkload: {api: x}\nworkflow:\n"+steps.String()))
	workload := map[string]any{}
	for i := range 200 {
		workload[fmt.Sprint("customer_", i)] = 1
	}
	const unknown = 70_000
	for i := range unknown {
		workload[fmt.Sprintf("custmer_%d", i)] = 1
	}
	began := time.Now()
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Workload: workload})
	require.Empty(t, found)
	checked := time.Since(began)
	warnings := UnreadKeys(book, workload)
	t.Logf("the check took %s, all %s, and %d bytes are said", checked, time.Since(began), len(strings.Join(warnings, "\n")))
	require.Less(t, len(strings.Join(warnings, "\n")), 16<<10)
	require.Contains(t, warnings[0], `did you mean "customer_0"?`)
	require.Contains(t, warnings[len(warnings)-1], fmt.Sprintf("%d more", unknown-len(warnings)+1))
	require.Less(t, time.Since(began), testenv.Within(5*time.Second))
}

// TestKeysThatAreNotNamed: of many keys that nothing reads the first are named, and the others counted.
func TestKeysThatAreNotNamed(t *testing.T) {
	t.Parallel()
	file := source.NewFile("none.yaml", []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: none}\nworkflow:\n  - step: a\n"))
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
	require.Empty(t, found)
	for more, want := range map[int]string{1: "1 more key of the workload is not read", 2: "2 more keys of the workload are not read"} {
		workload := map[string]any{}
		for i := range shownUnread + more {
			workload[fmt.Sprint("custom_", i)] = 1
		}
		warnings := UnreadKeys(book, workload)
		require.Len(t, warnings, shownUnread+1)
		require.Equal(t, want, warnings[shownUnread])
	}
}
