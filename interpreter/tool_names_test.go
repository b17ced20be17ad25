package interpreter_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toolNames are the tools that ship.
var toolNames = []string{"approval", "file", "http", "playbook", "postgres", "python", "sqlite", "webhook"}

// namesTools are files that may compare a tool's name, with the reason.
var namesTools = map[string]string{
	"interpreter/playbook/legacy_seam.go":  "a kind of pagination in the older dialect has a tool's name",
	"interpreter/playbook/legacy_times.go": "what the older dialect meant depends on the tool that it was about",
}

// TestToolsAreKnownByTraits: what the interpreter and the workflows do with a tool depends on its
// traits, and its name stands in their table alone. So a new tool that asks people, or plays a
// playbook, is a row.
func TestToolsAreKnownByTraits(t *testing.T) {
	t.Parallel()
	files := slices.Concat(goFiles(t, "interpreter", true), goFiles(t, "workflows", true))
	constants := toolConstants(files)
	require.Subset(t, constants, []string{"PlaybookTool", "NoticeTool"}, "the names in playbook/tools.go are found")
	for _, file := range files {
		name := path.Join(file.dir, path.Base(file.name))
		if namesTools[name] != "" {
			continue
		}
		ast.Inspect(file.tree, func(n ast.Node) bool {
			for _, operand := range compared(n) {
				require.False(t, namesTool(operand, constants),
					"%s compares a tool's name: ask its Traits, or give them what it needs to know", name)
			}
			return true
		})
	}
}

// toolConstants are constants that are a tool's name; those of a type of their own, such as kinds
// of errors, are not.
func toolConstants(files []sourceFile) []string {
	var names []string
	for _, file := range files {
		ast.Inspect(file.tree, func(n ast.Node) bool {
			spec, isSpec := n.(*ast.ValueSpec)
			if !isSpec || spec.Type != nil {
				return true
			}
			for i, value := range spec.Values {
				if i < len(spec.Names) && strings.Contains(strings.ToLower(spec.Names[i].Name), "tool") && namesTool(value, nil) {
					names = append(names, spec.Names[i].Name)
				}
			}
			return true
		})
	}
	return names
}

// compared are the operands of a comparison, or the cases of a switch.
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		return n.List
	case *ast.CallExpr:
		if called, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && called.Sel.Name == "EqualFold" {
			return n.Args
		}
	}
	return nil
}

// namesTool reports whether an expression is the name of a tool.
func namesTool(e ast.Expr, constants []string) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return err == nil && slices.Contains(toolNames, text)
	case *ast.Ident:
		return slices.Contains(constants, e.Name)
	case *ast.SelectorExpr:
		return slices.Contains(constants, e.Sel.Name)
	}
	return false
}
