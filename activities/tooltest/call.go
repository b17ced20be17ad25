package tooltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

func Value(v any) *expression.Value {
	wrapped := expression.Of(v)
	return &wrapped
}

func Input(fields map[string]any) func(*testing.T) interpreter.ToolInput {
	return func(*testing.T) interpreter.ToolInput {
		return interpreter.ToolInput{Fields: Fields(fields)}
	}
}

func Call(t *testing.T, c *activities.Catalogue, name, tool string, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()

	for _, activity := range c.Activities() {
		if activity.Name == name {
			return activity.Run(t.Context(), Complete(in, tool))
		}
	}

	require.Failf(t, "no activity", "%s", name)
	return interpreter.ToolResult{}, nil
}

func CallHTTP(t *testing.T, c *activities.Catalogue, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return Call(t, c, "http", "http", in)
}
