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

// larger are the folders and types beyond these bounds, with the number that they may have at most. An
// entry that is no longer needed goes.
var larger = map[string]int{
	"activities/sqltool.TableWrite": 111,
	"internal/observe/runs.Reader":  94,
}

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
	for name := range larger {
		assert.Positive(t, files[name]+methods[name], "%s is gone: take it out of larger", name)
	}
	within(t, "Go files", mostFiles, files, "split the folder by what its files are about")
	within(t, "methods", mostMethods, methods, "make functions of them, or parts of the type")
}

// within reports what is beyond a bound, and entries of larger that need not be there.
func within(t *testing.T, what string, most int, counted map[string]int, instead string) {
	t.Helper()
	for name, n := range counted {
		exception, has := larger[name]
		switch {
		case has && n <= most:
			assert.Fail(t, "small by now", "%s has %d %s: take it out of larger", name, n, what)
		case n > max(most, exception):
			assert.Fail(t, "too large", "%s has %d %s, more than %d: %s", name, n, what, max(most, exception), instead)
		}
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
