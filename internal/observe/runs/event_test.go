package runs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
)

// TestEachKindHasARow: what a new kind of events needs is in its row, and whoever filters,
// documents or sums up events reads rows.
func TestEachKindHasARow(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	require.NoError(t, err)
	var constants []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Type != nil || len(spec.Values) != 1 {
			return true
		}
		if literal, isText := spec.Values[0].(*ast.BasicLit); isText && literal.Kind == token.STRING {
			name, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			constants = append(constants, name)
		}
		return true
	})
	require.ElementsMatch(t, constants, runs.KindNames(), "each kind of events has a row in the table of internal/observe/runs/event.go")
	for _, kind := range runs.EventKinds() {
		require.NotEmpty(t, kind.Doc, "when is there an event %q?", kind.Name)
		require.Equal(t, kind, runs.Event{Event: kind.Name}.Kind())
	}
}
