package expression_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// anyOrder is the comment that allows a range over a map. It stands on the
// line of the range and gives the reason.
const anyOrder = "// any order: "

// Expressions are evaluated by workflows, so a replay must give the same
// result: no clock, no random numbers, no goroutines, no order of maps.
func TestPackageIsDeterministic(t *testing.T) {
	t.Parallel()

	files, set := sources(t, ".")
	require.NotEmpty(t, files)
	require.Empty(t, impurities(set, files))
}

// The check itself finds what it forbids.
func TestDeterminismCheckFinds(t *testing.T) {
	t.Parallel()

	for source, finding := range map[string]string{
		`import "time"; var x = time.Now()`:                                                   "time.Now",
		`import "time"; var x = time.Since(time.Time{})`:                                      "time.Since",
		`import "math/rand"; var x = rand.Int()`:                                              "math/rand",
		`func f() { go f() }`:                                                                 "go statement",
		`func f(m map[string]int) { for range m {} }`:                                         "range over a map",
		`type m map[string]int; func f(x m) { for k := range x { _ = k } }`:                   "range over a map",
		`import "maps"; func f(m map[string]int) { for k := range maps.Keys(m) {_ = k} }`:     "maps.Keys",
		"func f(m map[string]int) { select {} }":                                              "select statement",
		"func f(m map[string]int) { for range m { // any order: counts\n} }":                  "",
		`import ("maps"; "slices"); func f(m map[string]int) { slices.Sorted(maps.Keys(m)) }`: "",
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package x; "+source, parser.ParseComments)
		require.NoError(t, err, source)

		found := strings.Join(impurities(set, []*ast.File{file}), "\n")
		if finding == "" {
			require.Empty(t, found, source)
		} else {
			require.Contains(t, found, finding, source)
		}
	}
}

func sources(t *testing.T, folder string) ([]*ast.File, *token.FileSet) {
	t.Helper()

	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)

	var files []*ast.File

	set := token.NewFileSet()

	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		text, err := os.ReadFile(name)
		require.NoError(t, err)

		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		require.NoError(t, err)

		files = append(files, file)
	}
	return files, set
}

// forbidden are functions and packages whose result is not a function of the
// arguments. maps.Keys and maps.Values are allowed inside slices.Sorted.
var forbidden = []string{
	"time.Now", "time.Since", "time.Until", "time.After", "time.Sleep", "time.Tick", "time.NewTimer", "time.LoadLocation",
	"time.Local", "os.Getenv", "os.Getpid",
}

func impurities(set *token.FileSet, files []*ast.File) []string {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil), Error: func(error) {}}
	_, _ = config.Check("x", set, files, info) // types of other packages may be missing; maps are known without

	var found []string

	for _, file := range files {
		allowed := allowedLines(set, file)
		sorted := map[ast.Node]bool{}

		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(path, "math/rand") || path == "crypto/rand" {
				found = append(found, set.Position(spec.Pos()).String()+": "+path)
			}
		}

		ast.Inspect(file, func(node ast.Node) bool {
			if what := impurity(info, node, sorted); what != "" && !allowed[set.Position(node.Pos()).Line] {
				found = append(found, set.Position(node.Pos()).String()+": "+what)
			}
			return true
		})
	}
	return found
}

func allowedLines(set *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}

	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, anyOrder) && len(comment.Text) > len(anyOrder) {
				lines[set.Position(comment.Pos()).Line] = true
			}
		}
	}
	return lines
}

func impurity(info *types.Info, node ast.Node, sorted map[ast.Node]bool) string {
	switch n := node.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.SelectStmt:
		return "select statement"
	case *ast.RangeStmt:
		if t := info.Types[n.X].Type; t != nil {
			if _, ok := t.Underlying().(*types.Map); ok {
				return "range over a map without a comment " + anyOrder
			}
		}
	case *ast.CallExpr:
		if name := selector(n.Fun); name == "slices.Sorted" || name == "slices.SortedFunc" {
			sorted[n.Args[0]] = true
		}

		if name := selector(n.Fun); (name == "maps.Keys" || name == "maps.Values" || name == "maps.All") && !sorted[n] {
			return name + " outside slices.Sorted"
		}
	case *ast.SelectorExpr:
		for _, name := range forbidden {
			if selector(n) == name {
				return name
			}
		}
	}
	return ""
}

func selector(node ast.Expr) string {
	s, ok := node.(*ast.SelectorExpr)
	if !ok {
		return ""
	}

	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}
