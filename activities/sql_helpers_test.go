package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// sqlTool calls one SQL tool of a catalogue on one database.
type sqlTool struct {
	catalogue *activities.Catalogue
	name      string
	auth      string
}

// input is a statement with its values rendered, as the interpreter sends it.
func (s sqlTool) input(t *testing.T, source string, scope map[string]any) interpreter.ToolInput {
	t.Helper()

	parsed, problems := statement.Parse(source, statement.Dialect(s.name))
	for _, problem := range problems {
		require.True(t, problem.Warning, "%s: %s", source, problem.Message)
	}

	values, err := parsed.Render(expression.MapScope(scope), expression.NewBudget(expression.DecisionLimits, time.Time{}))
	require.NoError(t, err)

	in := interpreter.ToolInput{Auth: s.auth, Fields: tooltest.Fields(map[string]any{"statement": source})}
	for _, v := range values {
		in.Params = append(in.Params, expression.Of(v))
	}
	return in
}

// rows is a write in table mode.
func (s sqlTool) rows(fields map[string]any, args any) interpreter.ToolInput {
	return interpreter.ToolInput{Auth: s.auth, Fields: tooltest.Fields(fields), Args: value(args)}
}

func (s sqlTool) call(t testing.TB, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()

	for _, a := range s.catalogue.Activities() {
		if a.Name == s.name {
			return a.Run(t.Context(), tooltest.Complete(in, s.name))
		}
	}

	require.Fail(t, "no such tool")
	return interpreter.ToolResult{}, nil
}

// run runs a statement that must succeed and gives its data.
func (s sqlTool) run(t *testing.T, source string, scope map[string]any) any {
	t.Helper()

	result, err := s.call(t, s.input(t, source, scope))
	require.NoError(t, err, source)
	return result.Data.Data
}

// fail makes a call that must fail and gives its error.
func (s sqlTool) fail(t *testing.T, in interpreter.ToolInput) interpreter.ErrorObject {
	t.Helper()

	_, err := s.call(t, in)
	require.Error(t, err)
	return tooltest.ErrorObject(t, err)
}

func affected(n int) map[string]any { return map[string]any{"rows_affected": n} }

// nasty are texts that pasting into SQL would break or change.
var nasty = []string{
	"", "it's", `a "b" c`, `back\slash\'`, "$$", "$1", "$q$x$q$", "-- x", "/* x", "{{ x }}", "{% x %}", "'; DROP TABLE t; --",
	"line\nbreak\r\n\ttab", "ünï😀", "NULL", "null", "007", "%_", "?1", ":name", "{1,2}", "[1]", " padded ", "''", `\x41`, "{", "}}",
}

// as sends a statement in words of the test, without the check of the door.
func (s sqlTool) as(statement string) interpreter.ToolInput {
	return s.rows(map[string]any{"statement": statement}, nil)
}
