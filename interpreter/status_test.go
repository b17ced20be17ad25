package interpreter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// constantsOf are the values of the constants of a type that a file declares.
func constantsOf(t *testing.T, file, typeName string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Type == nil || len(spec.Values) != 1 {
			return true
		}
		literal, isText := spec.Values[0].(*ast.BasicLit)
		if name, ok := spec.Type.(*ast.Ident); ok && isText && name.Name == typeName {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	return values
}

// TestEachStatusHasARow: what a new status needs is in its row, and whoever shows, counts
// or filters statuses reads rows.
func TestEachStatusHasARow(t *testing.T) {
	t.Parallel()
	constants := constantsOf(t, "status.go", "Status")
	for _, name := range constants {
		info, known := interpreter.Status(name).Info()
		require.True(t, known, "the status %q has no row in the table of interpreter/status.go", name)
		require.NotZero(t, info.Of, "whose status is %q?", name)
		require.NotEmpty(t, info.Doc, "what does %q mean?", name)
		require.Regexp(t, "^#[0-9a-f]{6}$", info.Colour.Fill, "the colour of %q", name)
		require.Regexp(t, "^#[0-9a-f]{6}$", info.Colour.Ink, "the colour of %q", name)
		require.Regexp(t, "^#[0-9a-f]{6}$", info.Colour.DarkInk, "the colour of %q", name)
		require.NotZero(t, info.Colour.Tone, "the tone of %q at a terminal", name)
		require.Equal(t, info.Of&interpreter.OfIteration != 0, info.Tally != interpreter.TallyNone,
			"a status of iterations, and no other, has a figure of the loop that counts it: %q", name)
		require.Equal(t, info.Of&interpreter.OfRun != 0, len(info.List.Executions) > 0,
			"a status of runs, and no other, has an entry for the list: %q", name)
	}
	require.Len(t, interpreter.Statuses(), len(constants), "each row has a constant of its own")
}

// TestTestsExpectEachEnd: a test of a playbook may expect each status with which a run ends, and no other.
func TestTestsExpectEachEnd(t *testing.T) {
	t.Parallel()
	var ends []string
	for _, status := range interpreter.StatusesOf(interpreter.OfRun) {
		if status.Ended() {
			ends = append(ends, string(status))
		}
	}
	require.ElementsMatch(t, ends, playbook.EndStatuses)
}

// TestTalliesFitEndings: what has ended is in a figure of what has ended.
func TestTalliesFitEndings(t *testing.T) {
	t.Parallel()
	for _, status := range interpreter.StatusesOf(interpreter.OfIteration) {
		info, _ := status.Info()
		switch info.Tally {
		case interpreter.TallySuccess:
			require.Contains(t, []interpreter.Ending{interpreter.Good, interpreter.Mixed}, info.Ending, status)
		case interpreter.TallyFailed, interpreter.TallyCancelled:
			require.Equal(t, interpreter.Bad, info.Ending, status)
		default:
			require.Equal(t, interpreter.Open, info.Ending, status)
		}
	}
	require.Equal(t, interpreter.TallyRunning, interpreter.Status("of another build").LoopTally(), "it is counted")
}

// TestEachReasonHasARow: a reason to wait says which status what waits has.
func TestEachReasonHasARow(t *testing.T) {
	t.Parallel()
	for _, name := range constantsOf(t, "reason.go", "Reason") {
		require.True(t, interpreter.Reason(name).IsKnown(), "the reason %q has no row in the table of interpreter/reason.go", name)
		require.False(t, interpreter.Reason(name).Status().Ended(), name)
	}
}

// TestStatusesOfRuns: Temporal's status and the search attribute tell that of a run.
func TestStatusesOfRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		execution string
		attribute interpreter.Status
		want      interpreter.Status
	}{
		{"Running", "", interpreter.Running},
		{"Running", interpreter.Paused, interpreter.Paused},
		{"Running", interpreter.Queued, interpreter.Queued},
		{"Running", interpreter.Awaiting, interpreter.Awaiting},
		{"Running", interpreter.RetryPending, interpreter.RetryPending},
		{"Completed", interpreter.Awaiting, interpreter.Completed},
		{"Running", interpreter.Completed, interpreter.Running},
		{"Paused", "", interpreter.Running},
		{"Completed", "", interpreter.Completed},
		{"Completed", interpreter.Partial, interpreter.Partial},
		{"Completed", interpreter.Skipped, interpreter.Skipped},
		{"Failed", interpreter.Paused, interpreter.Failed},
		{"Terminated", interpreter.Running, interpreter.Failed},
		{"TimedOut", "", interpreter.Failed},
		{"Canceled", interpreter.Running, interpreter.Cancelled},
	} {
		require.Equal(t, row.want, interpreter.RunStatus(row.execution, row.attribute), "%v", row)
	}
}
