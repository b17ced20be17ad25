package sqltool

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEachFieldOfATableIsRead: a field that is documented and that nothing reads would be ignored in silence.
func TestEachFieldOfATableIsRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	named := map[string]int{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if function, is := node.(*ast.FuncDecl); is && function.Name.Name == "TableFields" {
				return false
			}
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				named[text]++
			}
			return true
		})
	}
	for _, field := range TableFields() {
		assert.NotZero(t, named[field.Name], "nothing reads the field %s of tables: read it in planWrite (activities/sqltool/table.go)", field.Name)
	}
}
