package playbook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestBoundsOfPlaybooks goes one above each bound of what an author may write.
func TestBoundsOfPlaybooks(t *testing.T) {
	t.Parallel()
	step := func(text string) string { return "workflow:\n  - step: a\n    tool: http\n    url: http://x\n" + text }
	for bound, test := range map[string]struct{ book, want string }{
		"MaxFileBytes":        {"#" + strings.Repeat("x", playbook.MaxFileBytes), "a playbook may have 1048576 (1 MiB)"},
		"MaxSteps":            {"workflow:\n" + lines(501, "  - {step: s@, tool: http, url: http://x}\n"), "the workflow has 501 steps; at most 500 are allowed"},
		"maxName":             {strings.Replace(step(""), "step: a", "step: "+strings.Repeat("a", 65), 1), "has 65 characters; at most 64 are allowed"},
		"maxPlaybookName":     {"metadata: {name: " + strings.Repeat("n", 201) + "}\n" + step(""), "must be one line of at most 200 bytes"},
		"maxStateName":        {step("    incremental: {state: " + strings.Repeat("s", 501) + ", cursor: id}\n"), "incremental.state has 501 bytes; at most 500 are allowed"},
		"maxDays":             {step("    incremental: {cursor_path: day, initial_value: \"2024-01-01\", lag: 1000001d}\n"), "1000001d"},
		"maxPartitionKey":     {"partitions: [" + strings.Repeat("p", 201) + "]\n" + step(""), "an entry of partitions must be one line of at most 200 bytes"},
		"MaxConcurrencyRuns":  {"concurrency: {key: k, limit: 1001}\n" + step(""), "1000"},
		"MaxConcurrencyLimit": {step("    loop: {collection: \"{{ [1] }}\", mode: parallel, max_concurrency: 501}\n"), "500"},
		"MaxBatch":            {step("    loop: {collection: \"{{ [1] }}\", mode: parallel, batch: 501}\n"), "500"},
		"maxPagesPerActivity": {step("    retry:\n      - when: \"{{ true }}\"\n        then: {next_call: {params: {page: 2}}, collect: {strategy: append, path: x}, pages_per_activity: 1001}\n"), "1000"},
		"maxCron":             {"metadata: {name: n, schedule: {cron: [" + lines(101, "\"@ 0 * * *\", ") + "]}}\n" + step(""), "has 101 entries; at most 100 are read"},
		"maxStatement": {
			"workflow:\n  - step: a\n    tool: postgres\n    auth: pg\n    statement: SELECT '" + strings.Repeat("x", 64<<10) + "'\n",
			"write rows with table instead of statement, and put long values into templates",
		},
		"MaxDepth": {"workload: {a: " + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}\n" + step(""), "64"},
	} {
		_, found := check.Validate(source.NewFile("bounds.yaml", []byte(test.book)), testTools, check.Options{Limits: testLimits})
		require.True(t, found.HasErrors(), bound)
		require.Contains(t, found.Error(), test.want, bound)
	}
}

// TestBoundsOfTestFiles passes maxTests and maxTestItems.
func TestBoundsOfTestFiles(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"a file may have at most 1000 tests, not 1001": "tests:\n" + lines(1001, "  - {name: t@, expect: {status: completed}}\n"),
		"a has 10001 entries; at most 10000 are read":  "tests:\n  - name: t\n    answers: {a: [" + strings.Repeat("{}, ", 10_001) + "]}\n    expect: {status: completed}\n",
	} {
		_, found := playbook.DecodeTests(source.NewFile("bounds.test.yaml", []byte("playbook: a.yaml\n"+text)))
		require.Contains(t, found.Error(), want)
	}
}

// TestBoundsOfFiles passes maxFiles and maxFilesSize of the files that a run has beside its playbook.
func TestBoundsOfFiles(t *testing.T) {
	t.Parallel()
	child := "workflow: [{step: a, tool: http, url: http://x}]\n"
	for want, test := range map[string]struct {
		files int
		text  string
	}{
		"a run can have at most 100 files": {101, child}, "the files of a run may have at most 1048576 bytes (1 MiB) together": {2, child + "#" + strings.Repeat("x", 600_000)},
	} {
		book := "workflow:\n" + lines(test.files, "  - {step: s@, tool: playbook, path: p@.yaml}\n")
		files := check.NewFiles(func(string) ([]byte, error) { return []byte(test.text), nil })
		_, found := check.Validate(source.NewFile("bounds.yaml", []byte(book)), testTools, check.Options{Limits: testLimits, Files: files})
		require.Contains(t, found.Error(), want)
	}
}

// TestBoundsOfApprovals passes maxApprovalMessage, maxApprovalItems, maxApprovalOption, maxApprovalText and mostFaults.
func TestBoundsOfApprovals(t *testing.T) {
	t.Parallel()
	form := map[string]any{}
	for i := range 51 {
		form[fmt.Sprintf("f%d", i)] = "number"
	}
	for want, fields := range map[string]map[string]any{
		"message may have at most 16384 bytes, not 16385":       {"message": strings.Repeat("m", 16<<10+1)},
		"form may have at most 50 fields, not 51":               {"message": "m", "form": form},
		"a text of options may have at most 500 bytes, not 501": {"message": "m", "options": []any{strings.Repeat("o", 501)}},
	} {
		_, err := playbook.ParseApproval(fields)
		require.ErrorContains(t, err, want)
	}
	delete(form, "f50")
	form["f0"] = "text"
	approval, err := playbook.ParseApproval(map[string]any{"message": "m", "form": form})
	require.NoError(t, err)
	given := map[string]any{"f0": strings.Repeat("x", 4<<10+1)}
	for i := 1; i < 50; i++ {
		given[fmt.Sprintf("f%d", i)] = "none"
	}
	_, err = approval.FillForm(given, false)
	require.ErrorContains(t, err, "f0 must be text")
	require.ErrorContains(t, err, "and 30 more")
}
