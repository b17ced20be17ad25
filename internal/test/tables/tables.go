// Package tables has what the tests of interpreter, interpreter/call and interpreter/retry share: short playbooks,
// values as JSON, and test cases that are files in testdata.
package tables

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Update is set if the expected texts in testdata are to be rewritten.
var Update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// Started is the start time of every run in these tests.
var Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Run is the run to which the calls in these tests belong.
var Run = interpreter.RunInfo{WorkflowID: "table", RunID: "run-1", StartedAt: Started, Playbook: "table"}

// DecodeBody parses a playbook without its head; body starts with workload, workbook or workflow.
func DecodeBody(t testing.TB, body string) *playbook.Playbook {
	t.Helper()
	book, found := TryDecode(body)
	require.False(t, found.HasErrors(), "%v\n%s", found, body)
	return book
}

// TryDecode is DecodeBody that also returns the problems.
func TryDecode(body string) (*playbook.Playbook, source.Diagnostics) {
	text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: table}\n" + body
	return playbook.Decode(source.NewFile("table.yaml", []byte(text)))
}

// Value parses JSON as a value of the language.
func Value(t testing.TB, text string) any {
	t.Helper()
	v, err := expression.Decode([]byte(text))
	require.NoError(t, err, "%s", text)
	return v
}

// Encode returns a value as JSON with sorted keys.
func Encode(t testing.TB, v any) string {
	t.Helper()
	text, err := expression.Encode(v)
	require.NoError(t, err)
	return string(text)
}

// NewBudget returns the budget of one decision.
func NewBudget() *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, Started)
}

// Files returns the files in a folder of testdata, of which there must be some.
func Files(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// ReadText returns the content of a file in testdata.
func ReadText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.TrimSpace(string(text)) + "\n"
}

// ParseOutcome parses the outcome of an attempt in the notation of the tables, and the time it took.
func ParseOutcome(t *testing.T, text string) (outcome interpreter.Outcome, passed time.Duration) {
	t.Helper()
	if strings.HasPrefix(text, "+") {
		wait, rest, _ := strings.Cut(text[1:], " ")
		var err error
		passed, err = time.ParseDuration(wait)
		require.NoError(t, err)
		text = rest
	}
	if page, isPage := strings.CutPrefix(text, "ok"); isPage {
		var data any
		var meta interpreter.ToolMeta
		if after, asked := strings.CutPrefix(page, " after "); asked {
			after, page, _ = strings.Cut(after, " ")
			seconds, err := strconv.ParseFloat(after, 64)
			require.NoError(t, err)
			meta.RetryAfter = &seconds
		}
		if page = strings.TrimSpace(page); page != "" {
			var err error
			data, err = expression.Decode([]byte(page))
			require.NoError(t, err)
		}
		return interpreter.Outcome{Data: data, Meta: meta}, passed
	}
	text, after, told := strings.Cut(text, " after ")
	failure := &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Message: text}
	if status, err := strconv.Atoi(text); err == nil {
		failure.Status, failure.Class = status, interpreter.ClassifyHTTP(status, told)
	} else {
		var kind string
		kind, failure.Type, _ = strings.Cut(text, "/")
		failure.Kind = interpreter.Kind(kind)
		failure.Class = interpreter.ClassRetryable
	}
	if told {
		seconds, err := strconv.ParseFloat(after, 64)
		require.NoError(t, err)
		failure.RetryAfter = &seconds
	}
	return interpreter.Outcome{Err: failure}, passed
}
