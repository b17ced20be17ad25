package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFunctionsHaveNoBlankLines keeps one hand in all rooms: a function is
// short enough to be read in one go, and its paragraphs are functions of their
// own. Tests may set their parts apart, but not their last line.
func TestFunctionsHaveNoBlankLines(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	require.NoError(t, err)
	files := strings.Fields(string(out))
	require.Greater(t, len(files), 100)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and git does not know yet
		}
		require.NoError(t, err)
		for _, line := range surplusLines(t, name, string(text)) {
			t.Errorf("%s:%d: a blank line inside a function", name, line)
		}
	}
}

func TestSurplusLinesAreFound(t *testing.T) {
	t.Parallel()
	const text = "package p\n\nfunc f() string {\n\ta := `\n\n`\n\n\treturn a\n}\n\nvar g = func() {\n\n\tf()\n}\n"
	require.Equal(t, []int{7, 12}, surplusLines(t, "p.go", text))
	require.Equal(t, []int{7}, surplusLines(t, "p_test.go", text))
}

// surplusLines are the numbers of the blank lines of text that stand inside
// functions; of tests only those before a return or a closing brace.
func surplusLines(t *testing.T, name, text string) []int {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	lines := strings.Split(text, "\n")
	inside, quoted := make([]bool, len(lines)), make([]bool, len(lines))
	mark := func(marks []bool, node ast.Node) {
		for line := set.Position(node.Pos()).Line; line < set.Position(node.End()).Line; line++ {
			marks[line] = true // the line after, counted from 0
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BlockStmt:
			mark(inside, node)
		case *ast.BasicLit:
			mark(quoted, node)
		}
		return true
	})
	test := strings.HasSuffix(name, "_test.go")
	var surplus []int
	for i, line := range lines {
		if !inside[i] || quoted[i] || strings.TrimSpace(line) != "" {
			continue
		}
		next := strings.TrimSpace(lines[i+1])
		if !test || strings.HasPrefix(next, "return") || next == "}" {
			surplus = append(surplus, i+1)
		}
	}
	return surplus
}
