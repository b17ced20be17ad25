package workflows_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// crosses are the names of the SDK with which something leaves a workflow.
var crosses = regexp.MustCompile(
	`^(Execute[A-Z]\w*|NewContinueAsNewError\w*|SignalExternalWorkflow|RequestCancelExternalWorkflow|NewNexusClient|(Mutable)?SideEffect\w*)$`)

// crossings are the places of a file in which something leaves a workflow: for
// each function the names of the SDK it uses. A name that is only mentioned
// counts, since it may be called under another.
func crossings(file *ast.File) map[string][]string {
	found := map[string][]string{}
	name := ""
	for _, spec := range file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "go.temporal.io/sdk/workflow" {
			name = "workflow"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	for _, declaration := range file.Decls {
		where := "outside functions"
		if function, isFunction := declaration.(*ast.FuncDecl); isFunction {
			where = function.Name.Name
		}
		ast.Inspect(declaration, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				of, isName := node.X.(*ast.Ident)
				if isName && of.Name == name && crosses.MatchString(node.Sel.Name) || node.Sel.Name == "SignalChildWorkflow" {
					found[where] = append(found[where], node.Sel.Name)
				}
			case *ast.Ident:
				if name == "." && crosses.MatchString(node.Name) {
					found[where] = append(found[where], node.Name)
				}
			}
			return true
		})
	}
	return found
}

// TestOneCrossing: everything that leaves a workflow goes through the two functions
// that measure it first. A value that is too large would leave the run hanging.
func TestOneCrossing(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for name, file := range files(t) {
		for where, names := range crossings(file) {
			found[name+": "+where] = slices.Sorted(slices.Values(names))
		}
	}
	require.Equal(t, map[string][]string{
		"gate/send.go: SignalWorkflow": {"SignalExternalWorkflow"}, "gate/send.go: signalChild": {"SignalChildWorkflow"},
		"gate/send.go: Start":         {"ExecuteActivity", "ExecuteChildWorkflow", "ExecuteLocalActivity"},
		"gate/send.go: ContinueAsNew": {"NewContinueAsNewError"}, "gate/send.go: RecordMarker": {"SideEffect"},
	}, found, "use Send and ContinueAsNew of package gate instead: Temporal does not refuse what is too large, it leaves the run hanging")
}

// TestCrossingsAreFound: also under another name, and where one is only mentioned.
func TestCrossingsAreFound(t *testing.T) {
	t.Parallel()
	const body = `
var run = func() { workflow.ExecuteActivity(nil, "x") }
func fine(ctx workflow.Context) { workflow.NewTimer(ctx, 0); workflow.Go(ctx, nil); other.ExecuteActivity() }
func (r *run) attempt(ctx workflow.Context) {
	start := workflow.ExecuteChildWorkflow
	if err := start(ctx, "x").Get(ctx, nil); err != nil { return }
}
func next() error { return workflow.NewContinueAsNewErrorWithOptions(nil, workflow.ContinueAsNewErrorOptions{}, "x") }
func signal(child workflow.ChildWorkflowFuture) { child.SignalChildWorkflow(nil, "x", 1); workflow.SignalExternalWorkflow(nil) }
`
	want := map[string][]string{
		"outside functions": {"ExecuteActivity"}, "attempt": {"ExecuteChildWorkflow"},
		"next": {"NewContinueAsNewErrorWithOptions"}, "signal": {"SignalChildWorkflow", "SignalExternalWorkflow"},
	}
	for alias, renamed := range map[string]string{"": body, "sdk": regexp.MustCompile(`\bworkflow\.`).ReplaceAllString(body, "sdk.")} {
		tree, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport "+alias+` "go.temporal.io/sdk/workflow"`+renamed, 0)
		require.NoError(t, err)
		require.Equal(t, want, crossings(tree), alias)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import . "go.temporal.io/sdk/workflow"
func f() { ExecuteLocalActivity(nil, "x") }`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"f"}, slices.Collect(maps.Keys(crossings(tree))))
}
