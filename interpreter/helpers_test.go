package interpreter_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// started is when every run of these tests begins.
var started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// run is the run that the calls of these tests belong to.
var run = interpreter.RunInfo{WorkflowID: "table", RunID: "run-1", StartedAt: started, Playbook: "table"}

// decode reads a playbook whose head is given; body begins with workload,
// workbook or workflow.
func decode(t testing.TB, body string) *playbook.Playbook {
	t.Helper()
	book, found := tryDecode(body)
	require.False(t, found.HasErrors(), "%v\n%s", found, body)
	return book
}

func tryDecode(body string) (*playbook.Playbook, source.Diagnostics) {
	text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: table}\n" + body
	return playbook.Decode(source.NewFile("table.yaml", []byte(text)))
}

// value reads JSON, as a value of the language.
func value(t testing.TB, text string) any {
	t.Helper()
	v, err := expression.Decode([]byte(text))
	require.NoError(t, err, "%s", text)
	return v
}

// encode is a value as JSON with sorted keys.
func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := expression.Encode(v)
	require.NoError(t, err)
	return string(text)
}

func newBudget() *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, started)
}

// files lists the files of a folder of testdata; there must be some.
func files(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// readText is a file of testdata.
func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.TrimSpace(string(text)) + "\n"
}
