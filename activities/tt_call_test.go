package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

func value(v any) *expression.Value {
	wrapped := expression.Of(v)
	return &wrapped
}

func httpInput(fields map[string]any) func(*testing.T) interpreter.ToolInput {
	return func(*testing.T) interpreter.ToolInput {
		return interpreter.ToolInput{Fields: tooltest.Fields(fields)}
	}
}

func runTool(t *testing.T, c *activities.Catalogue, name, tool string, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()

	for _, activity := range c.Activities() {
		if activity.Name == name {
			return activity.Run(t.Context(), tooltest.Complete(in, tool))
		}
	}

	require.Failf(t, "no activity", "%s", name)
	return interpreter.ToolResult{}, nil
}

func callHTTP(t *testing.T, c *activities.Catalogue, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	t.Helper()
	return runTool(t, c, "http", "http", in)
}
