package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/playtest"
	"reprise/internal/test/docs"
)

// TestTestingPage runs the tests of docs/how-to/test-a-playbook.md, which stand behind their playbook, and makes the
// mistake whose message it shows.
//
//nolint:paralleltest // it changes the directory
func TestTestingPage(t *testing.T) {
	var book, tests, message string
	for _, example := range docs.FencedBlocks("docs/how-to/test-a-playbook.md", read(t, "docs/how-to/test-a-playbook.md")) {
		switch {
		case example.Is("yaml") && example.Whole():
			book = example.Text
		case example.Is("yaml"):
			tests = example.Text
		case example.Is("text"):
			message = example.Text
		}
	}
	t.Chdir(t.TempDir()) // files are named as people name them
	require.Empty(t, failures(t, book, tests))
	wrong := strings.Replace(tests, "waits: {fetch: [1s, 30s]}", "waits: {fetch: [2s, 30s]}", 1)
	require.NotEqual(t, tests, wrong)
	require.Equal(t, message, failures(t, book, wrong))
}

// failures are what starter test prints of those that fail.
func failures(t *testing.T, book, tests string) string {
	t.Helper()
	require.NoError(t, os.WriteFile("users.yaml", []byte(book), 0o600))
	require.NoError(t, os.WriteFile("users_test.yaml", []byte(tests), 0o600))
	suite, err := playtest.Load("users_test.yaml")
	require.NoError(t, err)
	var b strings.Builder
	for _, test := range suite.Tests.Tests {
		report := suite.Run(test, playtest.Options{})
		if !report.Passed() {
			b.WriteString("failed  users_test.yaml: " + test.Name + "\n")
		}
		for _, failure := range report.Failures {
			b.WriteString("  " + strings.ReplaceAll(failure.Text(suite.Path), "\n", "\n  ") + "\n")
		}
	}
	return b.String()
}
