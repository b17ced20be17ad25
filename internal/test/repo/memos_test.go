package repo_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEachMemoIsWritten: what lists read from a memo, somebody writes. Tests of lists have memos of their own.
func TestEachMemoIsWritten(t *testing.T) {
	t.Parallel()
	declared, written := map[string]bool{}, map[string]bool{}
	for _, file := range goSources(t, func(name string) bool { return isCode(name) && !strings.HasSuffix(name, "_test.go") }) {
		ast.Inspect(file.tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				if strings.HasPrefix(file.name, "workflows/protocol/") {
					for _, name := range node.Names {
						if strings.HasSuffix(name.Name, "Memo") {
							declared[name.Name] = true
						}
					}
				}
			case *ast.KeyValueExpr:
				written[constantOf(node.Key)] = true
			case *ast.AssignStmt:
				for _, to := range node.Lhs {
					if at, ok := to.(*ast.IndexExpr); ok {
						written[constantOf(at.Index)] = true
					}
				}
			}
			return true
		})
	}
	require.NotEmpty(t, declared)
	for name := range declared {
		assert.True(t, written[name], "nothing writes protocol.%s, so lists never show it: an open run writes its memo in workflows/run/status_open.go, a start in internal/program/start/plan.go", name)
	}
}

// constantOf is the name of a constant of package protocol, "" for anything else.
func constantOf(expr ast.Expr) string {
	if selected, ok := expr.(*ast.SelectorExpr); ok {
		if of, ok := selected.X.(*ast.Ident); ok && of.Name == "protocol" {
			return selected.Sel.Name
		}
	}
	return ""
}
