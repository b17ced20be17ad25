package tooltest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachCaseIsRun: a case of table mode that no tableCases names, or tableCases that Tables.Run does not list, would test nothing.
func TestEachCaseIsRun(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	cases, uses := map[string]token.Position{}, map[string]int{}
	files := token.NewFileSet()
	for _, name := range names {
		file, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				uses[n.Name]++
			case *ast.FuncDecl:
				if n.Recv == nil && isCase(n.Type) {
					cases[n.Name.Name] = files.Position(n.Pos())
				}
			case *ast.ValueSpec:
				if isCases(n) {
					cases[n.Names[0].Name] = files.Position(n.Pos())
				}
			}
			return true
		})
	}
	require.Greater(t, len(cases), 60)
	for name, place := range cases {
		require.Greater(t, uses[name], 1, "%s: nothing runs %s: add a case to the tableCases of its file, and tableCases to Tables.Run (tables.go)", place, name)
	}
}

// isCase reports whether a function has the form of a case.
func isCase(f *ast.FuncType) bool {
	if f.Results != nil || len(f.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := pointer.X.(*ast.Ident)
	return ok && name.Name == "TableTest"
}

// isCases reports whether a variable has cases.
func isCases(v *ast.ValueSpec) bool {
	if len(v.Values) != 1 {
		return false
	}
	literal, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return false
	}
	name, ok := literal.Type.(*ast.Ident)
	return ok && name.Name == "tableCases"
}
