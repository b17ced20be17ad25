package expression

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"reprise/interpreter/source"
)

// nameOperand returns the error that names, as the author wrote it, the operand that is nil of the operator at the
// offset. It parses the source again, because the extents of the nodes are needed only for errors.
func (p *Program) nameOperand(offset int, missing *nilOperand, scope Scope) *Error {
	text := []rune(p.source)
	parsed, problems := parseExpression(text, true)
	if len(problems) > 0 {
		return &Error{Offset: offset, Message: missing.Error()} // impossible: the source was compiled
	}
	finder := &operandFinder{offset: offset, missing: missing}
	ast.Walk(&parsed.node, finder)
	whole, ok := parsed.spans[finder.operation]
	if !ok {
		return &Error{Offset: offset, Message: missing.Error()}
	}
	operand := parsed.spans[finder.operand]
	name := sourceText(text, operand)
	nothing := "missing (nil)"
	if list := p.listUnder(operand.From, operand.To, scope); list != "" {
		nothing += ", as " + list
	}
	return &Error{Offset: operand.From, Message: fmt.Sprintf(
		"%s is %s, so %q cannot be calculated; if it may be missing, use a default: %s",
		name, nothing, sourceText(text, whole), withDefault(finder.operand, name))}
}

// listUnder names the list whose member the reference at from asks for, because a list has no named members. It
// returns "" if that is not why the reference is nil.
func (p *Program) listUnder(from, to int, scope Scope) string {
	for _, ref := range p.refs {
		if ref.Offset == from && ref.End <= to {
			return ref.ListUnder(scope)
		}
	}
	return ""
}

// ListUnder describes the list that the reference asks for a named member, such as "fetch.rows is a list of 100".
// It returns "" if there is none.
func (r Ref) ListUnder(scope Scope) string {
	value, _ := scope.Lookup(r.Root)
	name := r.Root
	for _, key := range r.Path {
		list, isList := value.([]any)
		switch key := key.(type) {
		case string:
			if isList {
				return fmt.Sprintf("%s is a list of %d", source.CutText(name, 80), len(list))
			}
			members, _ := value.(map[string]any)
			value, name = members[key], name+"."+key
		case int:
			if !isList || key < 0 || key >= len(list) {
				return ""
			}
			value, name = list[key], fmt.Sprintf("%s[%d]", name, key)
		}
	}
	return ""
}

func withDefault(operand ast.Node, name string) string {
	switch operand.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode, *ast.ChainNode:
		return fmt.Sprintf("(%s | default(0))", name)
	default:
		return fmt.Sprintf("default(%s, 0)", name)
	}
}

func sourceText(text []rune, span file.Location) string {
	return source.CutText(string(text[span.From:span.To]), 80)
}

// operandFinder finds the operation at an offset and the operand of it that is nil.
type operandFinder struct {
	offset    int
	missing   *nilOperand
	operation ast.Node
	operand   ast.Node
}

func (f *operandFinder) Visit(node *ast.Node) {
	if (*node).Location().From != f.offset {
		return
	}
	switch n := (*node).(type) {
	case *ast.UnaryNode:
		if n.Operator == f.missing.op {
			f.operation, f.operand = n, n.Node
		}
	case *ast.BinaryNode:
		if n.Operator != f.missing.op && n.Operator != "^" {
			return
		}
		f.operation, f.operand = n, n.Right
		if f.missing.left {
			f.operand = n.Left
		}
	}
}
