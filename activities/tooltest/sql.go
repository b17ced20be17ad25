package tooltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// SQL calls one SQL tool of a catalogue on one database.
type SQL struct {
	Catalogue *activities.Catalogue
	Name      string
	Auth      string
}

// StatementInput returns a statement with its values rendered, as the interpreter sends it.
func (s SQL) StatementInput(t *testing.T, source string, scope map[string]any) interpreter.ToolInput {
	t.Helper()
	parsed, problems := statement.Parse(source, statement.Dialect(s.Name))
	for _, problem := range problems {
		require.True(t, problem.Warning, "%s: %s", source, problem.Message)
	}
	values, err := parsed.Render(expression.MapScope(scope), expression.NewBudget(expression.DecisionLimits, time.Time{}))
	require.NoError(t, err)
	in := interpreter.ToolInput{Auth: s.Auth, Fields: Fields(map[string]any{"statement": source})}
	for _, v := range values {
		in.Params = append(in.Params, expression.Of(v))
	}
	return in
}

// TableInput returns a write in table mode.
func (s SQL) TableInput(fields map[string]any, args any) interpreter.ToolInput {
	return interpreter.ToolInput{Auth: s.Auth, Fields: Fields(fields), Args: Value(args)}
}

// MakeAttempt makes an attempt.
func (s SQL) MakeAttempt(t testing.TB, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return Call(t, s.Catalogue, s.Name, s.Name, in)
}

// RunStatement runs a statement that must succeed and gives its data.
func (s SQL) RunStatement(t *testing.T, source string, scope map[string]any) any {
	t.Helper()
	result, err := s.MakeAttempt(t, s.StatementInput(t, source, scope))
	require.NoError(t, err, source)
	return result.Data.Data
}

// FailingCall makes a call that must fail and gives its error.
func (s SQL) FailingCall(t *testing.T, in interpreter.ToolInput) interpreter.ErrorObject {
	t.Helper()
	_, err := s.MakeAttempt(t, in)
	require.Error(t, err)
	return ErrorObject(t, err)
}

// AffectedResult returns the result of a write of n rows.
func AffectedResult(n int) map[string]any { return map[string]any{"rows_affected": n} }

// Nasty are texts that pasting into SQL would break or change.
var Nasty = []string{
	"", "it's", `a "b" c`, `back\slash\'`, "$$", "$1", "$q$x$q$", "-- x", "/* x", "{{ x }}", "{% x %}", "'; DROP TABLE t; --",
	"line\nbreak\r\n\ttab", "ünï😀", "NULL", "null", "007", "%_", "?1", ":name", "{1,2}", "[1]", " padded ", "''", `\x41`, "{", "}}",
}

// RawInput sends a statement in words of the test, as they are, without validation.
func (s SQL) RawInput(statement string) interpreter.ToolInput {
	return s.TableInput(map[string]any{"statement": statement}, nil)
}
