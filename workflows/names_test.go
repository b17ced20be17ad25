package workflows_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/ratelimit"
)

// files are those of this package and of the ones below it, parsed.
func files(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	below, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	names = append(names, below...)
	parsed := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
	}
	require.NotEmpty(t, parsed)
	return parsed
}

// constants are those of the package whose values are string literals.
func constants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range files(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, isValue := node.(*ast.ValueSpec)
			if !isValue {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					continue
				}
				if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					found[name.Name] = text
				}
			}
			return true
		})
	}
	return found
}

// TestNamesNeverChange: they are in every history. Each is a literal, so that
// renaming a function cannot rename a workflow.
func TestNamesNeverChange(t *testing.T) {
	t.Parallel()
	found := constants(t)
	for name, want := range map[string]string{
		"PlaybookWorkflowName": "PlaybookWorkflow",
		"LoopWorkflowName":     "LoopWorkflow",
		"CallsWorkflowName":    "CallsWorkflow",
		"ProgressQuery":        "progress",
	} {
		require.Equal(t, want, found[name], "constant %s", name)
	}
	require.Equal(t, "RateLimitWorkflow", ratelimit.WorkflowName)
}

// registeredNames are the names by which a literal registers workflows: options with one, or workflows by their names.
func registeredNames(literal *ast.CompositeLit) (names []ast.Expr) {
	selector, isOptions := literal.Type.(*ast.SelectorExpr)
	_, isMap := literal.Type.(*ast.MapType)
	isOptions = isOptions && selector.Sel.Name == "RegisterOptions"
	for _, element := range literal.Elts {
		entry, isEntry := element.(*ast.KeyValueExpr)
		switch {
		case !isEntry:
		case isMap && strings.HasSuffix(nameOf(entry.Value), "Workflow"):
			names = append(names, entry.Key)
		case isOptions && nameOf(entry.Key) == "Name":
			if local, isLocal := entry.Value.(*ast.Ident); !isLocal || local.Name != "name" { // those of a map are found there
				names = append(names, entry.Value)
			}
		}
	}
	return names
}

// TestRegisteredNamesAreConstants: every workflow is registered, and every
// child and activity called, by name.
func TestRegisteredNamesAreConstants(t *testing.T) {
	t.Parallel()
	known := constants(t)
	registered, called := 0, 0
	for name, file := range files(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CompositeLit:
				for _, registers := range registeredNames(node) {
					registered++
					requireKnown(t, known, registers, name)
				}
			case *ast.CallExpr:
				at, names := map[string]int{"ToChild": 0, "ContinueAsNew": 1}[nameOf(node.Fun)]
				if !names {
					return true
				}
				called++
				requireKnown(t, known, node.Args[at], name)
			}
			return true
		})
	}
	require.GreaterOrEqual(t, registered, 12)
	require.GreaterOrEqual(t, called, 8)
}

// requireKnown: a workflow is named by a constant, of package protocol or of those that the activities share.
func requireKnown(t *testing.T, known map[string]string, value ast.Expr, file string) {
	t.Helper()
	shared := []string{"WorkflowName", "MailboxWorkflow", "PlanWorkflow", "StateCommandWorkflow", "TreeWorkflow"}
	name := nameOf(value)
	if !slices.Contains(shared, name) {
		require.Contains(t, known, name, file)
	}
}

// nameOf is the name of a function or a constant, with or without its package.
func nameOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.IndexExpr: // of a generic function
		return nameOf(of.X)
	}
	return ""
}

// TestNoToolIsPartOfAReplay: what package workflows reaches, however far, is
// neither a tool nor a database.
func TestNoToolIsPartOfAReplay(t *testing.T) {
	t.Parallel()
	command := exec.Command("go", "list", "-deps", "reprise/workflows")
	output, err := command.Output()
	require.NoError(t, err)
	reached := strings.Fields(string(output))
	require.Contains(t, reached, "reprise/interpreter/playbook")
	for _, path := range reached {
		require.NotEqual(t, "database/sql", path)
		if path == "reprise/internal/base/meter" { // names of what is counted
			continue
		}
		for _, refused := range []string{
			"reprise/activities", "reprise/internal/", "reprise/starter", "reprise/worker", "github.com/jackc/", "modernc.org/",
		} {
			require.False(t, strings.HasPrefix(path, refused),
				"workflows reaches %s: workflows call tools by name, so that no tool's code is part of what a replay runs", path)
		}
	}
}

// floors are the packages below this one, lowest first.
var floors = []string{"protocol", "gate", "keeper", "control", "drive", "loop", "run"}

// TestFloors: each package imports only those before it, so that a reader finds below what a name stands on.
func TestFloors(t *testing.T) {
	t.Parallel()
	const prefix = "reprise/workflows/"
	found := map[string]bool{}
	for name, file := range files(t) {
		floor := filepath.Dir(name)
		if floor == "." {
			continue
		}
		at := slices.Index(floors, floor)
		require.GreaterOrEqual(t, at, 0, "%s: name the package among floors, at its place", name)
		found[floor] = true
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.NotEqual(t, "reprise/workflows", path, "%s imports the package that puts them together", name)
			if below, is := strings.CutPrefix(path, prefix); is {
				require.Less(t, slices.Index(floors, below), at, "%s imports %s, which stands above or beside it", name, below)
			}
		}
	}
	require.Len(t, found, len(floors))
}

// TestTypesAreSmall: a type with more methods is made of parts, each with its own fields.
func TestTypesAreSmall(t *testing.T) {
	t.Parallel()
	const most = 60
	methods := map[string]int{}
	for name, file := range files(t) {
		for _, decl := range file.Decls {
			method, is := decl.(*ast.FuncDecl)
			if !is || method.Recv == nil {
				continue
			}
			of := method.Recv.List[0].Type
			if star, is := of.(*ast.StarExpr); is {
				of = star.X
			}
			methods[filepath.Dir(name)+"."+nameOf(of)]++
		}
	}
	require.Contains(t, methods, "run.run")
	for name, n := range methods {
		require.LessOrEqual(t, n, most, "%s has %d methods: give what belongs together a type of its own", name, n)
	}
}
