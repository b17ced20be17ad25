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
	named := textsOf(t, "*.go")
	for _, field := range TableFields() {
		assert.NotZero(t, named[field.Name], "nothing reads the field %s of tables: read it in planWrite (activities/sqltool/table.go)", field.Name)
	}
}

// TestEachFieldOfATableHasACase: a field that is read and not obeyed is noticed only by a write that has it.
func TestEachFieldOfATableHasACase(t *testing.T) {
	t.Parallel()
	named := textsOf(t, "../tooltest/*.go")
	for _, field := range TableFields() {
		assert.NotZero(t, named[field.Name],
			"no case writes with the field %s: write one as a function in a file of activities/tooltest, and add it to the tableCases of that file", field.Name)
	}
}

// textsOf counts the texts of files, but for those of tests and of the table of fields.
func textsOf(t *testing.T, pattern string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
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
	return named
}
