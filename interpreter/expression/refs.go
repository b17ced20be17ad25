package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Ref is a use of a name from the scope in an expression.
type Ref struct {
	Root   string // the name itself
	Path   []any  // the longest constant path after it: string keys and int indexes
	Offset int    // start of the name, in runes
	End    int    // end of the name, in runes

	// Bare says that the expression consists only of this reference, so that it just passes a value on.
	Bare bool
}

// noRef is the index for an operand that is not a name from the scope.
const noRef = -1

// addRef records the use of a name and returns its index in p.refs, or noRef for a name bound by let.
func (p *parser) addRef(name token) int {
	if slices.Contains(p.lets, name.text) {
		return noRef
	}
	p.refs = append(p.refs, Ref{Root: name.text, Offset: name.from, End: name.to})
	return len(p.refs) - 1
}

// extendRef appends a constant key to the path of a reference. It returns the reference that further members
// extend, which is noRef after a key that is not constant.
func (p *parser) extendRef(ref int, key ast.Node) int {
	if ref == noRef {
		return noRef
	}
	switch k := key.(type) {
	case *ast.StringNode:
		p.refs[ref].Path = append(p.refs[ref].Path, k.Value)
	case *ast.IntegerNode:
		p.refs[ref].Path = append(p.refs[ref].Path, k.Value)
	default:
		return noRef
	}
	return ref
}

// markLoneReference sets Bare if the expression consists of a single reference.
func markLoneReference(node ast.Node, refs []Ref) {
	for {
		switch n := node.(type) {
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			if _, ok := constantKey(n.Property); !ok {
				return
			}
			node = n.Node
		case *ast.IdentifierNode:
			if len(refs) == 1 {
				refs[0].Bare = true
			}
			return
		default:
			return
		}
	}
}

// constantKey returns the key of a member if the key is a constant.
func constantKey(property ast.Node) (any, bool) {
	switch k := property.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode:
		return k.Value, true
	default:
		return nil, false
	}
}

// fallbacks finds the values whose absence an expression provides for: those that it tests, that have a substitute, or
// that it uses only under a condition. It has the nodes of the names, and of the # of elements, that these begin with.
type fallbacks struct{ roots []ast.Node }

// fallbacksOf returns those of an expression.
func fallbacksOf(tree ast.Node) *fallbacks {
	found := &fallbacks{}
	ast.Walk(&tree, found)
	return found
}

// Visit implements ast.Visitor.
func (f *fallbacks) Visit(node *ast.Node) {
	switch node := (*node).(type) {
	case *ast.BinaryNode:
		f.addOperands(node)
	case *ast.ConditionalNode:
		f.addTested(node.Cond)
		f.addAll(node.Exp1)
		f.addAll(node.Exp2)
	case *ast.CallNode:
		callee, isName := node.Callee.(*ast.IdentifierNode)
		if isName && slices.Contains([]string{"default", "get", typeFunction}, callee.Value) && len(node.Arguments) > 0 {
			f.addTested(node.Arguments[0])
		}
	}
}

// addOperands adds what an operator provides for.
func (f *fallbacks) addOperands(node *ast.BinaryNode) {
	switch node.Operator {
	case "??", "||", "or":
		f.addTested(node.Left)
		f.addAll(node.Right)
	case "==", "!=":
		if _, isNil := node.Right.(*ast.NilNode); isNil {
			f.addTested(node.Left)
		}
		if _, isNil := node.Left.(*ast.NilNode); isNil {
			f.addTested(node.Right)
		}
	}
}

// addTested adds a value that is tested, which may be a member of another or the result of a function.
func (f *fallbacks) addTested(node ast.Node) {
	switch node := node.(type) {
	case *ast.IdentifierNode, *ast.PointerNode:
		f.roots = append(f.roots, node)
	case *ast.MemberNode:
		f.addTested(node.Node)
	case *ast.ChainNode:
		f.addTested(node.Node)
	case *ast.UnaryNode:
		if node.Operator == "not" || node.Operator == "!" {
			f.addTested(node.Node)
		}
	case *ast.BinaryNode:
		if slices.Contains([]string{"and", "or", "&&", "||"}, node.Operator) {
			f.addTested(node.Left)
			f.addTested(node.Right)
		}
	case *ast.CallNode:
		for _, argument := range node.Arguments {
			f.addTested(argument)
		}
	case *ast.BuiltinNode:
		for _, argument := range node.Arguments {
			f.addTested(argument)
		}
	}
}

// addAll adds everything in a part that is not always evaluated.
func (f *fallbacks) addAll(node ast.Node) { ast.Walk(&node, (*rootFinder)(f)) }

// rootFinder finds the names and # in an expression.
type rootFinder fallbacks

// Visit implements ast.Visitor.
func (f *rootFinder) Visit(node *ast.Node) {
	switch node := (*node).(type) {
	case *ast.IdentifierNode, *ast.PointerNode:
		f.roots = append(f.roots, node)
	}
}

// RequiredRefs returns the references of all expressions, as Refs does, without those whose absence the expression
// provides for, as row.a ?? 0 does.
func (t *Template) RequiredRefs() []Ref {
	provided := map[int]bool{}
	for _, segment := range t.segments {
		if segment.Program == nil {
			continue
		}
		for _, root := range fallbacksOf(segment.Program.tree).roots {
			provided[segment.inner+root.Location().From] = true
		}
	}
	return slices.DeleteFunc(t.Refs(), func(ref Ref) bool { return provided[ref.Offset] })
}

// parts says what a condition consists of.
type parts struct {
	compares bool // a comparison of order, such as a < b
	branches bool // parts that do not always count: and, or, if
	provides bool // see ProvidesForAbsence
	calls    []string
}

// partsOf returns the parts of all expressions of a template.
func (t *Template) partsOf() (of parts) {
	if t == nil {
		return of
	}
	for _, segment := range t.segments {
		if segment.Program != nil {
			ast.Walk(&segment.Program.tree, &of)
		}
	}
	return of
}

// Visit implements ast.Visitor.
func (p *parts) Visit(node *ast.Node) {
	switch node := (*node).(type) {
	case *ast.BinaryNode:
		p.addOperator(node)
	case *ast.ConditionalNode:
		p.branches = true
	case *ast.MemberNode:
		p.provides = p.provides || node.Optional
	case *ast.CallNode:
		if callee, isName := node.Callee.(*ast.IdentifierNode); isName {
			p.calls = append(p.calls, callee.Value)
			p.provides = p.provides || callee.Value == "default" || callee.Value == "get"
		}
	}
}

func (p *parts) addOperator(node *ast.BinaryNode) {
	switch node.Operator {
	case "<", "<=", ">", ">=":
		p.compares = true
	case "and", "or", "&&", "||":
		p.branches = true
	case "??":
		p.provides = true
	case "==", "!=":
		_, left := node.Left.(*ast.NilNode)
		_, right := node.Right.(*ast.NilNode)
		p.provides = p.provides || left || right
	}
}

// ProvidesForAbsence reports whether an expression tests whether a value is there, or has a substitute for one that is
// not. It is false for nil.
func (t *Template) ProvidesForAbsence() bool { return t.partsOf().provides }

// IsPlainComparison reports whether a condition depends on a comparison of order alone, which is false if an operand is
// absent. It is false for nil.
func (t *Template) IsPlainComparison() bool {
	of := t.partsOf()
	return of.compares && !of.branches && !of.provides
}

// Calls reports whether an expression calls a function. It is false for nil.
func (t *Template) Calls(function string) bool { return slices.Contains(t.partsOf().calls, function) }
