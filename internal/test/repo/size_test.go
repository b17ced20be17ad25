package repo_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What a reader can find a way in: files of a folder, tests left out, and methods of a type.
const (
	mostFiles   = 50
	mostMethods = 80
)

func TestFoldersAndTypesAreSmall(t *testing.T) {
	t.Parallel()
	files, methods := map[string]int{}, map[string]int{}
	for _, file := range goSources(t, func(name string) bool { return isCode(name) && !strings.Contains(name, "testdata/") }) {
		if ast.IsGenerated(file.tree) {
			continue
		}
		folder := path.Dir(file.name)
		files[folder]++
		for _, declared := range file.tree.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Recv != nil {
				methods[folder+"."+receiver(function.Recv.List[0].Type)]++
			}
		}
	}
	within(t, "Go files", mostFiles, files, "split the folder by what its files are about")
	within(t, "methods", mostMethods, methods, "make functions of them, or parts of the type")
}

// within reports what is beyond a bound.
func within(t *testing.T, what string, most int, counted map[string]int, instead string) {
	t.Helper()
	for name, n := range counted {
		assert.LessOrEqual(t, n, most, "%s has too many %s: %s", name, what, instead)
	}
}

// receiver is the name of a method's type.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}
