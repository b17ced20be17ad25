package workflows_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/ratelimit"
)

// files are the package's own, parsed.
func files(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
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
				if selector, ok := node.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "RegisterOptions" {
					registered++
					require.Len(t, node.Elts, 1, name)
					value := node.Elts[0].(*ast.KeyValueExpr).Value // a field by name
					if selector, ok := value.(*ast.SelectorExpr); ok {
						require.Contains(t, []string{"WorkflowName", "MailboxWorkflow", "PlanWorkflow", "StateCommandWorkflow", "TreeWorkflow"}, selector.Sel.Name, "the activities know this name too")
						return true
					}
					identifier, ok := value.(*ast.Ident)
					require.True(t, ok, "%s: the name of a workflow is a constant of names.go", name)
					require.Contains(t, known, identifier.Name, name)
				}
			case *ast.CallExpr:
				function, ok := node.Fun.(*ast.Ident)
				at, names := map[string]int{"toChild": 0, "continueAsNew": 1}[nameOf(function)]
				if !ok || !names {
					return true
				}
				called++
				if selector, ok := node.Args[at].(*ast.SelectorExpr); ok {
					require.Contains(t, []string{"WorkflowName", "MailboxWorkflow", "PlanWorkflow", "StateCommandWorkflow", "TreeWorkflow"}, selector.Sel.Name, "the activities know this name too")
					return true
				}
				identifier, ok := node.Args[at].(*ast.Ident)
				require.True(t, ok, "%s: a workflow is called by name", name)
				require.Contains(t, known, identifier.Name, name)
			}
			return true
		})
	}
	require.GreaterOrEqual(t, registered, 3)
	require.GreaterOrEqual(t, called, 8)
}

func nameOf(identifier *ast.Ident) string {
	if identifier == nil {
		return ""
	}
	return identifier.Name
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
