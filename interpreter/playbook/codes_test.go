package playbook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodesAreNamed: a check names its codes with codeDoc, which adds them to the documents.
func TestCodesAreNamed(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("check/*.go")
	require.NoError(t, err)
	calls := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Errorf" && method.Sel.Name != "Warnf" {
				return true
			}
			calls++
			if literal, ok := call.Args[1].(*ast.BasicLit); ok {
				t.Errorf("%s reports a problem with the code %s: name the code with codeDoc in interpreter/playbook/check/rules.go", name, literal.Value)
			}
			return true
		})
	}
	require.Greater(t, calls, 200)
}
