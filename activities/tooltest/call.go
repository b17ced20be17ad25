package tooltest

import (
	"testing"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Value is a value as an input has it.
func Value(v any) *expression.Value {
	wrapped := expression.Of(v)
	return &wrapped
}

// Input makes inputs with these fields.
func Input(fields map[string]any) func(*testing.T) interpreter.ToolInput {
	return func(*testing.T) interpreter.ToolInput {
		return interpreter.ToolInput{Fields: Fields(fields)}
	}
}

// Call makes an attempt of a tool by the activity of a name.
func Call(t testing.TB, c *activities.Catalogue, name, tool string, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return Activity(t, c, name)(t.Context(), Complete(in, tool))
}

// CallHTTP makes an attempt of the tool http.
func CallHTTP(t testing.TB, c *activities.Catalogue, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return Call(t, c, "http", "http", in)
}
