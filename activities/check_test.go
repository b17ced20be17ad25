package activities_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

const head = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: p}\n"

func checkAtTheDoor(t *testing.T, source string, workload any) interpreter.CheckResult {
	t.Helper()
	return activities.CheckPlaybook(activities.DefaultCatalogue(), interpreter.CheckInput{
		Name: "p.yaml", Source: source, Workload: expression.Of(workload),
	})
}

func TestCheckAcceptsAGoodPlaybook(t *testing.T) {
	t.Parallel()

	result := checkAtTheDoor(t, head+"workflow:\n  - step: start\n    tool: http\n    url: \"{{ api }}/x\"\n",
		map[string]any{"api": "http://localhost"})

	require.Equal(t, interpreter.CheckResult{
		Limits: interpreter.RunLimits{MaxPayload: interpreter.MaxInlinePayload, RetriesTables: true, MapsRows: true, CollectsRows: true, StagesFiles: true},
	}, result)
}

func TestCheckGivesAllProblemsWithTheirPlace(t *testing.T) {
	t.Parallel()

	result := checkAtTheDoor(t, head+"workflow:\n  - step: start\n    tool: htpp\n    url: x\n    next: nowhere\n", nil)

	require.Equal(t, 2, result.Count)
	require.Contains(t, result.Problems, "p.yaml:6:11: ")
	require.Contains(t, result.Problems, "p.yaml:8:11: ")
	require.Contains(t, result.Problems, "    tool: htpp\n")
	require.Contains(t, result.Problems, "^")
}

// TestWarningsOfValidationAreApart: they are no warnings of the run's result, which would change with each warning that
// validation learns. Whoever shows one says that it is one.
func TestWarningsOfValidationAreApart(t *testing.T) {
	t.Parallel()

	result := checkAtTheDoor(t, head+"workflow:\n  - {step: start, tool: http, url: x, retry: {max_attempts: 2, retry_when: error.status == 503}}\n", nil)

	require.Empty(t, result.Problems)
	require.Empty(t, result.Warnings)
	require.NotEmpty(t, result.ValidationWarnings)
	require.Regexp(t, `^p\.yaml:5:\d+: this is an older form of retry`, result.ValidationWarnings[0])
}

func TestCheckRefusesAWorkloadThatIsNoMap(t *testing.T) {
	t.Parallel()

	result := checkAtTheDoor(t, head+"workflow:\n  - step: start\n    tool: http\n    url: x\n", []any{1})

	require.Equal(t, 1, result.Count)
	require.Equal(t, "p.yaml: the workload is a list; it must be a map", result.Problems)
}

// TestResultsOfChecksAreBounded passes maxWarnings, maxProblems and maxRecorded: a CheckResult is in the history of each run.
func TestResultsOfChecksAreBounded(t *testing.T) {
	t.Parallel()
	const maxWarnings = 100
	var steps strings.Builder
	for i := range maxWarnings + 20 {
		fmt.Fprintf(&steps, "  - {step: s%d, tool: http, url: x, retry: {max_attempts: 2, retry_when: error.status == 503}}\n", i)
	}
	require.Len(t, checkAtTheDoor(t, head+"workflow:\n"+steps.String(), nil).ValidationWarnings, maxWarnings)
	const maxProblems, maxRecorded = 64 << 10, 1_500_000
	var wrong strings.Builder
	for i := range 100 {
		fmt.Fprintf(&wrong, "  - {step: s%d, tool: http, url: x, %s: 1}\n", i, strings.Repeat("😀", 300))
	}
	result := checkAtTheDoor(t, head+"workflow:\n"+wrong.String(), nil)
	require.Equal(t, 100, result.Count)
	require.LessOrEqual(t, len(result.Problems), maxProblems)
	require.Greater(t, len(result.Problems), maxProblems-10)
	folder := t.TempDir()
	large := head + "workflow:\n  - {step: get, tool: http, url: http://x}\n#" + strings.Repeat(`"`, maxRecorded/2) // two bytes each in JSON
	require.NoError(t, os.WriteFile(filepath.Join(folder, "large.yaml"), []byte(large), 0o600))
	catalogue := activities.NewCatalogue(activities.Resources{Playbooks: folder})
	result = activities.CheckPlaybook(catalogue, interpreter.CheckInput{Name: "p.yaml", Source: head + "workflow:\n  - {step: below, tool: playbook, name: large}\n"})
	require.Contains(t, result.Problems, "and a run can record 1500000; run the largest one by path")
	require.Empty(t, result.Files)
}
